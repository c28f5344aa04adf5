"""The values of the fields of the Launch form: filled from presets and stored runs, and read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dashboard import option_words
from dashboard.kept_values import KeptValues
from gan_runtime import catalog
from gan_runtime.hardware import machine
from gan_runtime.records.home import command_line
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.spec.presets import PRESETS

FORM = "launch"
PRESET = "preset"
WHOLE = re.compile(r"-?[0-9]{1,18}")


def kept() -> KeptValues:
    """The text of each field by the name of its option, and the name of the preset."""
    return KeptValues(FORM)


def values() -> dict[str, Any]:
    """The values of the form: whole numbers as numbers, all other text as typed."""
    typed = kept().read()
    return {
        name: int(typed[name])
        if option.kind is int and WHOLE.fullmatch(typed[name])
        else typed[name]
        for name, option in RunSpec.options(typed["workload"]).items()
    }


def fill(preset: str) -> None:
    """Fills the form with the values of a preset."""
    put(RunSpec.parse(machine.preset_values(preset)).flat())
    kept().put(PRESET, preset)


def fill_from_run(spec: Mapping[str, Any], preset: str) -> None:
    """Fills the form with the options of a stored run, flat; newer options get their defaults."""
    name = nesting.workload_of(spec)
    workload = name if name in catalog.WORKLOADS else nesting.DEFAULT_WORKLOAD
    defaults = option_words.defaults(workload)
    put(
        {
            **defaults,
            **{name: value for name, value in spec.items() if name in defaults},
            "workload": workload,
        }
    )
    kept().put(PRESET, preset if preset in PRESETS else next(iter(PRESETS)))


def put(values: Mapping[str, Any]) -> None:
    """Writes values into their fields, as text unless they offer choices."""
    form = kept()
    options = RunSpec.options(values.get("workload") or form["workload"])
    for name, value in values.items():
        form.put(name, _short(value) if options[name].kind is float else str(value))


def fit_to_workload(workload_before: str) -> None:
    """Fits the form to a newly picked workload, which takes typed values of options with the same
    name.

    Unchanged values, and choices that it lacks, come from the preset if that is made for this
    workload, else from the defaults.
    """
    before = _preset_values(workload_before)
    typed = kept().read()
    now, options = _preset_values(typed["workload"]), RunSpec.options(typed["workload"])
    put(
        {
            name: now[name]
            for name, option in options.items()
            if name not in before
            or option_words.same(option, typed[name], before[name])
            or (option.choices and typed[name] not in option.choices)
        }
    )


def _preset_values(workload: str) -> dict[str, Any]:
    """The chosen preset's values for a workload; for another workload than its own, without the
    options that this has defaults for.
    """
    preset_values = machine.preset_values(kept()[PRESET])
    if workload != preset_values["workload"]:
        options = {*nesting.own_options(workload), *nesting.own_defaults(workload), "workload"}
        preset_values = {
            name: value for name, value in preset_values.items() if name not in options
        }
    defaults = option_words.defaults(workload)
    return {
        **defaults,
        **{name: value for name, value in preset_values.items() if name in defaults},
        "workload": workload,
    }


def command(preset: str, spec: RunSpec) -> str:
    """The command line that starts the same run."""
    base = _of_preset(preset, spec.workload).flat()
    workload_options = spec.entry.options.model_fields
    changed = [
        f"--set {spec.workload + '.' if name in workload_options else ''}{name}={_shell(value)}"
        for name, value in spec.flat().items()
        if value != base[name]
    ]
    if spec.workload != PRESETS[preset].values["workload"]:
        changed.insert(0, f"--set workload={spec.workload}")
    return " ".join([f"{command_line()} train", f"--preset {preset}", *changed])


def _of_preset(preset: str, workload: str) -> RunSpec:
    """The preset's options for any workload."""
    return RunSpec.parse(nesting.overlaid(machine.preset_values(preset), {"workload": workload}))


def _shell(value: Any) -> str:
    text = str(value)
    return f"'{text}'" if " " in text or not text else text


def _short(value: float) -> str:
    """A short form, unless it loses digits."""
    short = option_words.number(value)
    return short if float(short) == value else repr(value)
