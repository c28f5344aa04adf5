"""The values of the fields of the Launch form: filled from presets and stored runs, read, and
stored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import option_words
from gan_runtime import catalog
from gan_runtime.hardware import machine
from gan_runtime.records.home import command_line
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.spec.presets import PRESETS

PREFIX = "spec."
VALUES = "launch.values"  # name of an option, or PRESET → the text of its field
TURNS = "launch.turns"  # name → how often the form itself has filled the field
PRESET = "preset"
WHOLE = re.compile(r"-?[0-9]{1,18}")


def store_typed() -> dict[str, str]:
    """Stores what was typed since the last view, and returns the text of all fields.

    Stored apart from the widgets, because Streamlit drops values of widgets that are not drawn: in
    a closed group, or on another page.
    """
    typed: dict[str, str] = st.session_state.setdefault(VALUES, {})
    typed.update(
        {name: st.session_state[key(name)] for name in typed if key(name) in st.session_state}
    )
    return typed


def text_of(name: str) -> str:
    """The text of a field."""
    return str(st.session_state[VALUES][name])


def key(name: str) -> str:
    """The key of a field's widget, a new one each time the form itself fills the field.

    A browser sends the values of all widgets with each request, also values that a page on its way
    has replaced. Under the same key they would return and undo half of a preset.
    """
    turns: dict[str, int] = st.session_state.setdefault(TURNS, {})
    return f"{PREFIX}{name}.{turns.get(name, 0)}"


def key_to_draw(name: str) -> str:
    """The key of a field's widget, initialized with the text of the field."""
    st.session_state.setdefault(key(name), text_of(name))
    return key(name)


def values() -> dict[str, Any]:
    """The values of the form: whole numbers as numbers, all other text as typed."""
    typed = store_typed()
    return {
        name: int(typed[name])
        if option.kind is int and WHOLE.fullmatch(typed[name])
        else typed[name]
        for name, option in RunSpec.options(typed["workload"]).items()
    }


def fill(preset: str) -> None:
    """Fills the form with the values of a preset."""
    put(RunSpec.parse(machine.preset_values(preset)).flat())
    _write(PRESET, preset)


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
    _write(PRESET, preset if preset in PRESETS else next(iter(PRESETS)))


def put(values: Mapping[str, Any]) -> None:
    """Writes values into their fields, as text unless they offer choices."""
    typed = store_typed()
    options = RunSpec.options(values.get("workload") or typed["workload"])
    for name, value in values.items():
        _write(name, _short(value) if options[name].kind is float else str(value))


def fit_to_workload() -> None:
    """Fits the form to a newly picked workload, which takes typed values of options with the same
    name.

    Unchanged values, and choices that it lacks, come from the preset if that is made for this
    workload, else from the defaults.
    """
    before = _preset_values(st.session_state[VALUES]["workload"])
    typed = store_typed()
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
    preset_values = machine.preset_values(str(st.session_state[VALUES][PRESET]))
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


def _write(name: str, text: str) -> None:
    typed, turns = st.session_state[VALUES], st.session_state.setdefault(TURNS, {})
    if typed.get(name) == text:
        return
    if name in typed:
        turns[name] = turns.get(name, 0) + 1
    typed[name] = text


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
