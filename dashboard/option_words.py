"""Options in words: labels, choices, a group in one line, and which options have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard import words
from gan_runtime import catalog
from gan_runtime.base.options import OF_WORKLOAD, Above, OneOf, Option
from gan_runtime.spec import RunSpec
from gan_runtime.spec.nesting import overlaid, workload_of
from gan_runtime.spec.presets import PRESETS

SEVERAL_REPLICAS = Above(("replicas", "workers"), 1, "several replicas")

SHOWN_WHEN: dict[str, OneOf | Above] = {
    "loop": OneOf("engine", ("auto", "tensorflow"), "TensorFlow"),
    "tpu_address": OneOf("accelerator", ("tpu",), "a TPU"),
    "adam_beta_1": OneOf("optimizer", ("adam",), "Adam"),
    "adam_beta_2": OneOf("optimizer", ("adam",), "Adam"),
    "rmsprop_epsilon": OneOf("optimizer", ("rmsprop",), "RMSprop"),
    "momentum": OneOf("optimizer", ("sgd",), "SGD"),
    "restart_epochs": OneOf("learning_rate_schedule", ("cosine_restarts",), "the cosine schedule"),
    "reference_batch": OneOf("learning_rate_scaling", ("linear", "sqrt"), "rates by batch"),
    "samples_from": Above(("ema_decay",), 0, "a moving average"),
    "batch_norm": SEVERAL_REPLICAS,
    "all_reduce_type": SEVERAL_REPLICAS,
    "sync_every_steps": SEVERAL_REPLICAS,
    "count_kernels": OneOf("xla", ("jit",), "XLA jit"),
    "all_reduce_pack_mb": Above(("workers",), 1, "several workers"),
}


def requirement(option: Option) -> OneOf | Above | None:
    """What must be set for an option to have an effect; None if it always has one."""
    return option.needs or SHOWN_WHEN.get(option.name)


def has_effect(option: Option, form: Mapping[str, Any]) -> bool:
    """Whether changing the option would change the run of the form."""
    need = requirement(option)
    return need is None or need.holds(form)


# A choice without an entry here is shown with spaces for underscores.
CHOICES = {
    **{name: entry.title for name, entry in catalog.WORKLOADS.items()},
    **{name: entry.title for name, entry in catalog.DATASETS.items()},
    **{name: entry.title for name, entry in catalog.ENGINES.items()},
    "auto": "Auto",
    "cpu": "CPU",
    "gpu": "GPU",
    "tpu": "TPU",
    "mixed_bfloat16": "mixed bfloat16",
    "mixed_float16": "mixed float16",
    "adam": "Adam",
    "sgd": "SGD",
    "rmsprop": "RMSprop",
    "cosine_restarts": "cosine with restarts",
    "linear": "× batch",
    "sqrt": "× √batch",
    "non_saturating": "non-saturating",
    "together": "together, from one pass",
    "in_turn": "in turn: D, then G",
    "live": "weights in training",
    "ema": "moving average",
    "per_replica": "each replica's share",
    "synchronised": "the whole batch",
    "roll_back": "roll back",
}
# Choices that mean something else in one option than in others.
CHOICES_OF_OPTION = {
    "learning_rate_scaling": {"none": "as given"},
    "rmsprop_epsilon": {"inside": "inside the root", "outside": "outside the root"},
    "loop": {"custom": "custom", "keras": "Keras built-in"},
    "target": {"here": "this machine"},
}
# Phrases for shared options in a line of several; without an entry, the label. Workloads bring
# their own.
PHRASES = {
    "loop": "{} loop",
    "batch_size_global": "batch {}",
    "warmup_epochs": "warm-up {} epochs",
    "adam_beta_1": "beta 1 = {}",
    "adam_beta_2": "beta 2 = {}",
    "rmsprop_epsilon": "epsilon {}",
    "momentum": "momentum {}",
    "learning_rate_schedule": "{}",
    "restart_epochs": "cycle {} epochs",
    "learning_rate_scaling": "rates {}",
    "reference_batch": "reference batch {}",
    "ema_decay": "moving average {}",
    "samples_from": "samples from {}",
    "batch_norm": "batch norm over {}",
    "all_reduce_type": "gradients in {}",
    "sync_every_steps": words.LOCAL_SGD,
    "alarm_action": "on an alarm: {}",
    "still_action": "when stalled: {}",
    "resume_lost": "resumed when lost",
    "count_kernels": "kernels counted",
    "weight_snapshots": "weights stored",
    "name": "{}",
}
# The value of "auto" in the record of a run.
AUTO_VALUES = {"engine": "tensorflow"}
LABEL_LENGTH = 32  # longer labels wrap in the Launch form, and misalign a row of fields
# What a group says when all of it is at its default.
AT_DEFAULT = {"Moving average": "none", "Run": "unnamed", "Monitoring": "alarms are noted"}
# Options that the line of a group always names first; for a workload's group, its learning rates.
ALWAYS_NAMED = {"Optimizer": ("optimizer",), "Numbers": ("precision", "xla")}


def choice(value: Any, option: str = "") -> str:
    """A choice in words, of the option of this name; other values unchanged."""
    words_of = {**CHOICES, **CHOICES_OF_OPTION.get(option, {})}
    return words_of.get(str(value), str(value).replace("_", " "))


def label(option: Option) -> str:
    """The label, with its unit if both fit into a line of the form: "Warm-up (epochs)"."""
    full = f"{option.label} ({option.unit})" if option.unit else option.label
    return full if len(full) <= LABEL_LENGTH else option.label


def value(option: Option, setting: Any) -> str:
    """The value of an option in words, without unit; empty text is "–"."""
    if option.choices:
        return choice(setting, option.name)
    return number(setting) if option.kind is float else str(setting) or "–"


def number(setting: Any) -> str:
    """3e-4 · 0.5 · 10; text that is not a number stays unchanged."""
    try:
        amount = float(setting)
    except ValueError:
        return str(setting)
    if amount == 0 or abs(amount) >= 0.01:
        return f"{amount:g}"
    mantissa, _, exponent = f"{amount:e}".partition("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def phrase(option: Option, setting: Any) -> str:
    """An option and its value in a few words: "warm-up 2 epochs"."""
    usual = PHRASES.get(option.name, f"{_lower_first(option.label)} {{}}")
    return (option.phrase or usual).format(value(option, setting))


def changes(
    form: Mapping[str, Any], options: list[Option], base: Mapping[str, Any] | None = None
) -> list[str]:
    """A phrase for each effective option that differs from `base`, by default the defaults."""
    known = defaults(workload_of(form)) if base is None else base
    effective = [option for option in options if has_effect(option, form)]
    return [
        phrase(option, form[option.name])
        for option in effective
        if differs(option, form[option.name], known[option.name])
    ]


def run_changes(
    values: Mapping[str, Any], without: tuple[str, ...] = ("name",), preset: str = ""
) -> str:
    """What a stored run has changed from its preset, or from the defaults, in one line.

    Options newer than the run count as unchanged.
    """
    workload = workload_of(values)
    base = usual(workload, preset)
    options = [
        option for option in RunSpec.options(workload).values() if option.name not in without
    ]
    return " · ".join(changes({**base, **values}, options, base))


def usual(workload: str, preset: str = "") -> dict[str, Any]:
    """The values of the preset with this workload, and the defaults of all other options."""
    of_preset = (
        overlaid(PRESETS[preset].values, {"workload": workload}) if preset in PRESETS else {}
    )
    return {**defaults(workload), **of_preset}


def fits(option: Option, typed: str) -> bool:
    """Whether the label, name or help of an option contains each word that a user has typed."""
    text = f"{option.label} {option.name} {option.help}".lower()
    return all(word in text for word in typed.lower().split())


def not_found(typed: str) -> str:
    """The sentence for words that no option has."""
    return f"No option has “{words.plain(typed)}” in its name or help."


def group_line(group: str, form: Mapping[str, Any]) -> str:
    """A group of the form in one line: "Adam · warm-up 2 epochs"; "default" if unchanged."""
    options = [
        option for option in RunSpec.options(workload_of(form)).values() if option.group == group
    ]
    named = _always_named(group, form)
    head = [_head(group, form)] if named else []
    rest = changes(form, [option for option in options if option.name not in named])
    return " · ".join([*head, *rest]) or AT_DEFAULT.get(group, "default")


def group_title(group: str, workload: str) -> str:
    """The title of a group above its fields; for a workload's own options, the workload's title."""
    return catalog.WORKLOADS[workload].title if group == OF_WORKLOAD else group


def defaults(workload: str) -> dict[str, Any]:
    """Every option of the workload at its default; for an unknown workload, the shared options."""
    return {name: option.default for name, option in RunSpec.options(workload).items()}


def _always_named(group: str, form: Mapping[str, Any]) -> tuple[str, ...]:
    if group == OF_WORKLOAD:
        return catalog.WORKLOADS[workload_of(form)].rates
    return ALWAYS_NAMED.get(group, ())


def _head(group: str, form: Mapping[str, Any]) -> str:
    if group == OF_WORKLOAD:
        rates = " / ".join(number(form[name]) for name in _always_named(group, form))
        return f"rates {rates}"
    if group == "Optimizer":
        return choice(form["optimizer"])
    return f"{choice(form['precision'])} · XLA {choice(form['xla'])}"


def same(option: Option, setting: Any, usual: Any) -> bool:
    """Whether two values of an option are equal, as numbers or as text of the form."""
    if option.kind is not float:
        return str(setting) == str(usual)
    try:
        return float(setting) == float(usual)
    except ValueError:
        return False


def differs(option: Option, setting: Any, usual: Any) -> bool:
    """Whether a value is neither the usual one nor the automatic choice."""
    return not same(option, setting, usual) and setting != AUTO_VALUES.get(option.name, usual)


def _lower_first(label: str) -> str:
    """A label within a sentence; names and abbreviations keep their capitals."""
    return (
        label
        if label.startswith(("Adam", "XLA", "TPU", "R1", "D-"))
        else label[:1].lower() + label[1:]
    )
