"""What stands in the fields of the Launch form: filled from presets and stored runs, read, and kept."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard import option_words
from gan_runtime import catalog, host_presets
from gan_runtime.home import command_line
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.spec.presets import PRESETS

PREFIX = "spec."
OF = "launch.workload"  # the workload whose options stand in the form
WHOLE = re.compile(r"-?[0-9]{1,18}")


def keep_values() -> None:
    """Keeps what was typed while other pages are read: Streamlit drops the values of widgets it does not draw."""
    for key in [key for key in st.session_state if str(key).startswith(PREFIX)]:
        st.session_state[key] = st.session_state[key]


def values() -> dict[str, Any]:
    """What stands in the form: whole numbers as numbers, what is none and all other text as typed."""
    options = RunSpec.options(st.session_state[f"{PREFIX}workload"])
    typed = {name: st.session_state[PREFIX + name] for name in options}
    return {
        name: int(text) if options[name].kind is int and WHOLE.fullmatch(str(text)) else text
        for name, text in typed.items()
    }


def fill(preset: str) -> None:
    """Fills the form with the values of a preset."""
    put(RunSpec.parse(host_presets.values(preset)).flat())
    st.session_state[f"{PREFIX}preset"] = preset


def fill_again(spec: Mapping[str, Any], preset: str) -> None:
    """Fills the form with the options of a stored run, flat; what it is from before is at its default."""
    given = nesting.workload_of(spec)
    workload = given if given in catalog.WORKLOADS else nesting.DEFAULT_WORKLOAD
    known = option_words.defaults(workload)
    put({**known, **{name: value for name, value in spec.items() if name in known}, "workload": workload})
    st.session_state[f"{PREFIX}preset"] = preset if preset in PRESETS else next(iter(PRESETS))


def put(chosen: Mapping[str, Any]) -> None:
    """Writes values into their fields, which hold text unless they offer choices."""
    workload = chosen.get("workload") or st.session_state[f"{PREFIX}workload"]
    options = RunSpec.options(workload)
    for name, value in chosen.items():
        st.session_state[PREFIX + name] = _typed(value) if options[name].kind is float else str(value)
    st.session_state[OF] = workload


def fit_to_workload() -> None:
    """Another workload was picked: its options take what was typed for the earlier one's of the same name.

    What stood at the earlier workload's default, or is no choice of this one, is at the default of this one.
    """
    before, now = (RunSpec.options(st.session_state[key]) for key in (OF, f"{PREFIX}workload"))
    for name, option in now.items():
        earlier, typed = before.get(name), st.session_state.get(PREFIX + name)
        if earlier == option:
            continue
        untouched = earlier is None or option_words.same(earlier, typed, earlier.default)
        if untouched or (option.choices and typed not in option.choices):
            put({name: option.default})
    st.session_state[OF] = st.session_state[f"{PREFIX}workload"]


def command(preset: str, made: RunSpec) -> str:
    """The command line that starts the same run."""
    base = _of_preset(preset, made.workload).flat()
    own = made.entry.options.model_fields
    changed = [
        f"--set {made.workload + '.' if name in own else ''}{name}={_shell(value)}"
        for name, value in made.flat().items()
        if value != base[name]
    ]
    if made.workload != PRESETS[preset].values["workload"]:
        changed.insert(0, f"--set workload={made.workload}")
    return " ".join([f"{command_line()} train", f"--preset {preset}", *changed])


def _of_preset(preset: str, workload: str) -> RunSpec:
    """What the preset makes of a workload, which need not be its own."""
    return RunSpec.parse(nesting.overlaid(host_presets.values(preset), {"workload": workload}))


def _shell(value: Any) -> str:
    text = str(value)
    return f"'{text}'" if " " in text or not text else text


def _typed(value: float) -> str:
    """Short, unless that loses digits."""
    short = option_words.number(value)
    return short if float(short) == value else repr(value)
