"""A study before it runs: its question, its values, and the runs that answer it.

The runs of a study are ordinary runs. Every other repeat has the reverse order, A B B A, so that a
steady slowdown of the machine cancels in two repeats; each repeat has its own seed, the same for
all variants.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.spec import RunSpec, nesting

MAX_RUNS = 200
MAX_REPEATS = 20
REPEATS_HELP = "2 give an interval, and more make it narrower."
RATES = ("learning_rates",)


@dataclass(frozen=True)
class Question:
    """A question that a study can ask.

    `options`: each gets the value of the variant, or with `parts` its own part of the value, which
    colons separate. RATES are the learning rates of all networks of a workload. `label`: a variant
    in words; each `{}` is the value of an option. `is_about_speed`: the variants learn the same, so
    their report begins with their speed.
    """

    title: str
    asks: str
    options: tuple[str, ...]
    values: tuple[Any, ...]
    label: str
    source: str = ""
    parts: bool = False
    is_about_speed: bool = False

    def varied(self, entry: WorkloadEntry | None) -> tuple[str, ...]:
        """The options that differ between the runs; an unknown workload (None) has no rates."""
        if self.options != RATES:
            return self.options
        return entry.rates if entry else ()

    def changes(self, value: str, entry: WorkloadEntry | None) -> dict[str, str]:
        """Option → its value in the variant `value`. A missing part is empty, which no option
        allows.
        """
        if not self.parts:
            return dict.fromkeys(self.varied(entry), value)
        texts = value.split(":", len(self.options) - 1)
        return dict(
            zip(self.options, [*texts, *[""] * (len(self.options) - len(texts))], strict=True)
        )


QUESTIONS: dict[str, Question] = {
    "batch_size": Question(
        title="Batch size",
        asks="How does the global batch size change time, losses and images?",
        options=("batch_size_global",),
        values=(64, 128, 256, 512),
        label="batch {}",
        source="paper, Figs. 5 to 10",
    ),
    "batch_updates": Question(
        title="Batch size, equal updates",
        asks=(
            "How does the global batch size change images after equally many updates?"
            " (batch:epochs)"
        ),
        options=("batch_size_global", "epochs"),
        values=("64:8", "128:16", "256:32", "512:64"),
        label="batch {} for {} epochs",
        parts=True,
    ),
    "xla": Question(
        title="XLA",
        asks="How much does compiling speed up training, and after how many steps does it pay off?",
        options=("xla",),
        values=("off", "jit"),
        label="XLA {}",
        source="paper, Fig. 12",
        is_about_speed=True,
    ),
    "precision": Question(
        title="Precision",
        asks="How much faster is bfloat16, and do the losses stay the same?",
        options=("precision",),
        values=("float32", "mixed_bfloat16"),
        label="{}",
        source="paper, section 4.3",
    ),
    "replicas": Question(
        title="Replicas",
        asks="How much faster are more devices on the same global batch?",
        options=("replicas",),
        values=(1, 2, 4, 8),
        label="replicas {}",
        source="paper, Fig. 13; CERN's scaling tables",
        is_about_speed=True,
    ),
    "workers": Question(
        title="Workers",
        asks="How much time does the exchange between processes take?",
        options=("workers",),
        values=(1, 2),
        label="workers {}",
        source="CERN's multi-worker runs",
        is_about_speed=True,
    ),
    "loop": Question(
        title="Training loop",
        asks="Which loop is faster: that of Keras or the custom one?",
        options=("loop",),
        values=("keras", "custom"),
        label="{} loop",
        source="the two approaches of Cardoso et al. 2021; TensorFlow engine",
        is_about_speed=True,
    ),
    "learning_rate": Question(
        title="Learning rate",
        asks="Which learning rate of all networks learns best in the same time?",
        options=RATES,
        values=(0.0001, 0.0002, 0.0005),
        label="rate {}",
        source="paper, Fig. 9",
    ),
    "schedule": Question(
        title="Rate schedule",
        asks="How do the losses react when the learning rate falls along a cosine and restarts?",
        options=("learning_rate_schedule",),
        values=("constant", "cosine_restarts"),
        label="{} rate",
        source="paper, Fig. 9",
    ),
    "devices": Question(
        title="Devices",
        asks=(
            "How much faster is another accelerator, or more devices, on the same global batch?"
            " (accelerator:replicas)"
        ),
        options=("accelerator", "replicas"),
        values=("cpu:1", "cpu:8"),
        label="{} x{}",
        source="paper, Fig. 13",
        parts=True,
        is_about_speed=True,
    ),
    "seed": Question(
        title="Seeds",
        asks="How much do runs differ that differ only in the seed?",
        options=("seed",),
        values=(1, 2, 3),
        label="seed {}",
    ),
}


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study. `index`: index of its variant, from 0; `repeat`: from 1."""

    spec: RunSpec
    variant: str
    index: int
    repeat: int


@dataclass(frozen=True)
class StudyDesign:
    """Built by `parse`, which checks every run."""

    question: str
    title: str
    runs: tuple[PlannedRun, ...]

    @classmethod
    def parse(
        cls,
        question: str,
        base: dict[str, Any],
        values: list[Any] | None = None,
        repeats: int = 1,
        title: str = "",
    ) -> StudyDesign:
        """The study of `question` over `values` (None: the question's own) around the options
        `base`.

        Raises:
            SpecError: an unknown question, fewer than two values, a value twice, too many runs,
                variants that are the same program, or an invalid run; the message names the value.
        """
        entry = _question(question)
        texts = [str(value).strip() for value in (entry.values if values is None else values)]
        _check_size(texts, repeats, entry)
        specs = [_variant_specs(entry, base, value, repeats) for value in texts]
        _check_difference(entry, specs)
        labels = [_label(entry, variant[0]) for variant in specs]
        twice = sorted({label for label in labels if labels.count(label) > 1})
        if twice:
            sentence = f"values has {', '.join(twice)} twice: give each value once."
            raise SpecError([FieldError("values", sentence)])
        planned = [
            PlannedRun(spec, labels[index], index, repeat)
            for repeat, row in enumerate(zip(*specs, strict=True), 1)
            for index, spec in list(enumerate(row))[:: 1 if repeat % 2 else -1]
        ]
        RunSpec.parse({"name": title})
        return cls(question, title or entry.title, tuple(planned))


def _question(name: str) -> Question:
    if name not in QUESTIONS:
        sentence = (
            f"question is {quoted(name)}, but allowed is {', '.join(QUESTIONS)}: pick one of them."
        )
        raise SpecError([FieldError("question", sentence)])
    return QUESTIONS[name]


def _check_size(values: list[str], repeats: int, question: Question) -> None:
    errors = []
    if len(values) < 2:
        example = ",".join(str(value) for value in question.values)
        sentence = (
            f"values has {len(values)} value(s), but a study compares at least 2: try {example}."
        )
        errors.append(FieldError("values", sentence))
    if not 1 <= repeats <= MAX_REPEATS:
        sentence = f"repeats is {repeats}, but allowed is 1 to {MAX_REPEATS}: {REPEATS_HELP}"
        errors.append(FieldError("repeats", sentence))
    elif repeats > 1 and "seed" in question.options:
        sentence = f"repeats is {repeats}, but each seed is a repeat already: use repeats=1."
        errors.append(FieldError("repeats", sentence))
    elif len(values) * repeats > MAX_RUNS:
        sentence = (
            f"the study has {len(values) * repeats} runs, but allowed are {MAX_RUNS}: use fewer"
            " values or repeats."
        )
        errors.append(FieldError("values", sentence))
    if errors:
        raise SpecError(errors)


def _check_difference(question: Question, specs: list[list[RunSpec]]) -> None:
    """Refuses a study of `xla` with JAX, which always compiles each step."""
    if question.options == ("xla",) and all(
        spec.engine == "jax" for repeats in specs for spec in repeats
    ):
        sentence = (
            "question is xla, but engine=jax compiles every step, so all variants are the same"
            " program: use engine=tensorflow."
        )
        raise SpecError([FieldError("question", sentence)])


def _variant_specs(
    question: Question, base: dict[str, Any], value: str, repeats: int
) -> list[RunSpec]:
    """The spec of each repeat of one variant."""
    changed = question.changes(value, nesting.entry_of(base))
    try:
        first = RunSpec.parse(nesting.overlaid(base, changed))
        specs = [
            RunSpec.parse(nesting.overlaid(base, {"seed": first.seed + number, **changed}))
            for number in range(repeats)
        ]
    except SpecError as error:
        raise SpecError(
            [
                FieldError("values" if wrong.field in changed else wrong.field, wrong.message)
                for wrong in error.errors
            ]
        ) from None
    name = _label(question, first)
    return [
        spec.model_copy(update={"name": f"{name} seed {spec.seed}" if repeats > 1 else name})
        for spec in specs
    ]


def _label(question: Question, spec: RunSpec) -> str:
    values = [spec.value(name) for name in question.varied(spec.entry)]
    return question.label.format(
        *(
            f"{value:g}" if isinstance(value, float) else str(value).replace("_", " ")
            for value in values
        )
    )
