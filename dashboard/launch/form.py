"""The Launch form, generated from RunSpec's options: one widget per option, its error right below it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import option_words, words
from dashboard.launch import rate_preview
from dashboard.launch.shown_when import SHOWN_WHEN, has_effect
from gan_runtime import catalog
from gan_runtime.errors import SpecError
from gan_runtime.home import command_line
from gan_runtime.hosts import ACCELERATORS, Host
from gan_runtime.options import GROUPS, Option
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS

PREFIX = "spec."
OPEN_GROUPS = (
    "Model and data",
    "Accelerator",
    "Schedule",
)  # what a beginner needs; every other group waits in its expander
COLUMNS = 3
WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class Filled:
    """The form as it is filled in: a spec, or field → message for everything that is wrong."""

    spec: RunSpec | None
    problems: dict[str, str] = field(default_factory=dict)


def keep_values() -> None:
    """Keeps what was typed while the person looks at other pages: Streamlit drops the values of widgets it does not draw."""
    for key in [key for key in st.session_state if str(key).startswith(PREFIX)]:
        st.session_state[key] = st.session_state[key]


def pick_preset() -> str:
    """The chosen preset's name; picking one fills the form with its values."""
    if f"{PREFIX}workload" not in st.session_state:
        _fill(next(iter(PRESETS)))
    name = str(
        st.segmented_control(
            "Preset",
            list(PRESETS),
            format_func=lambda preset: PRESETS[preset].title,
            key=f"{PREFIX}preset",
            required=True,
            wrap=True,
            on_change=lambda: _fill(st.session_state[f"{PREFIX}preset"]),
        )
    )
    st.caption(PRESETS[name].summary)
    return name


def fields(preset: str, host: Host | None, look_again: Callable[[], None], filled: Filled) -> None:
    """The widgets of all groups, three beside each other, each with its help and its error; no host: not known yet."""
    form = values()
    for group in GROUPS:
        options = [
            option
            for option in RunSpec.options().values()
            if option.group == group and option.name != "accelerator"
        ]
        shown = [
            option for option in options if has_effect(option.name, form) or option.name in filled.problems
        ]
        if group in OPEN_GROUPS:
            st.header(group)
            if group == "Accelerator":
                _accelerator_cards(host, look_again)
            _group(preset, shown, filled)
            continue
        if group == GROUPS[len(OPEN_GROUPS)]:
            st.header("More options")
        with _expander(group, form, [option.name for option in options if option.name in filled.problems]):
            _group(preset, shown, filled)
            _not_in_use([option for option in options if option not in shown])
            if group == "Optimizer" and filled.spec is not None:
                rate_preview.show(filled.spec)


def values() -> dict[str, Any]:
    """What stands in the form: whole numbers as numbers, what is none and all other text as typed."""
    typed = {name: st.session_state[PREFIX + name] for name in RunSpec.options()}
    whole = {name for name, option in RunSpec.options().items() if option.kind is int}
    return {
        name: int(text) if name in whole and WHOLE.fullmatch(str(text)) else text
        for name, text in typed.items()
    }


def _expander(group: str, form: dict[str, Any], wrong: list[str]) -> DeltaGenerator:
    """A group that says in its label what is set in it, and opens by itself when something in it is wrong.

    Whether it is open is kept here: a new label makes a new widget, which would close under the hand that typed.
    """
    key = f"group.{group}"
    st.session_state[key] = bool(st.session_state.get(key)) or bool(wrong)
    line = words.plain(option_words.group_line(group, form))
    if wrong:
        line = f":red[{len(wrong)} value{'s' if len(wrong) > 1 else ''} to correct]"
    return st.expander(f"**{group}** · {line}", key=key, on_change="rerun")


def _group(preset: str, options: list[Option], filled: Filled) -> None:
    """Row by row, so that a narrow screen keeps the order."""
    for begin in range(0, len(options), COLUMNS):
        for column, option in zip(st.columns(COLUMNS), options[begin : begin + COLUMNS], strict=False):
            with column:
                _field(option)
                _summary(option)
                _suggestions(preset, option)
                _caution(preset, option, filled.spec)
                if option.name in filled.problems:
                    st.markdown(f":red[{words.plain(filled.problems[option.name])}]")


def _not_in_use(options: list[Option]) -> None:
    """Names what is not shown because it has no effect now, and what it needs."""
    needs: dict[str, list[str]] = {}
    for option in options:
        needs.setdefault(SHOWN_WHEN[option.name].reason, []).append(option.label)
    if needs:
        st.caption(" · ".join(f"Only with {reason}: {', '.join(labels)}" for reason, labels in needs.items()))


def _accelerator_cards(host: Host | None, look_again: Callable[[], None]) -> None:
    """What this host offers; what is missing stands there greyed, with the reason and what to do."""
    chosen = st.session_state[f"{PREFIX}accelerator"]
    columns = st.columns(4)
    for column, name in zip(columns, ("auto", *reversed(ACCELERATORS)), strict=True):
        device = host.devices.get(name) if host else None
        with column.container(border=True, height="stretch"):
            available = device is None or device.available
            st.button(
                option_words.choice(name),
                key=f"accelerator.{name}",
                icon=":material/check_circle:" if name == chosen else ":material/radio_button_unchecked:",
                disabled=not available,
                on_click=_set,
                args=({"accelerator": name},),
                width="stretch",
            )
            st.caption(_card_text(name, host))
    st.button(
        "Detect hardware again",
        on_click=look_again,
        type="tertiary",
        icon=":material/refresh:",
        help="Asks this host again what it offers.",
    )


def _card_text(name: str, host: Host | None) -> str:
    if host is None:
        return "Not known yet."
    if name == "auto":
        best = next(kind for kind in ACCELERATORS if host.devices[kind].available)
        return f"The best this host has: {option_words.choice(best)}."
    device = host.devices[name]
    if not device.available:
        return f"Not here: {words.plain(device.reason)}"
    if name == "cpu":
        return f"{device.name}, {device.count} cores. Any number of replicas as simulated cores."
    return f"{device.count} × {device.name}"


def read() -> Filled:
    """What stands in the form right now."""
    try:
        return Filled(RunSpec.parse(values()))
    except SpecError as error:
        return Filled(None, error.by_field())


def command(preset: str, made: RunSpec) -> str:
    """The command line that starts the same run."""
    base = RunSpec.parse(PRESETS[preset].values).model_dump()
    changed = [
        f"--set {name}={_shell(value)}" for name, value in made.model_dump().items() if value != base[name]
    ]
    return " ".join([f"{command_line()} train", f"--preset {preset}", *changed])


def _shell(value: Any) -> str:
    text = str(value)
    return f"'{text}'" if " " in text or not text else text


def _fill(preset: str) -> None:
    _set(RunSpec.parse(PRESETS[preset].values).model_dump())
    st.session_state[f"{PREFIX}preset"] = preset


def fill_again(spec: Mapping[str, Any], preset: str) -> None:
    """Fills the form with the options of a stored run; what it is from before is at its default."""
    _set({**option_words.defaults(), **spec})
    st.session_state[f"{PREFIX}preset"] = preset if preset in PRESETS else next(iter(PRESETS))


def _set(chosen: Mapping[str, Any]) -> None:
    """Writes values into their fields, which hold text unless they offer choices."""
    for name, value in chosen.items():
        option = RunSpec.options()[name]
        st.session_state[PREFIX + name] = _typed(value) if option.kind is float else str(value)


def _typed(value: float) -> str:
    """Short, unless that loses digits."""
    short = option_words.number(value)
    return short if float(short) == value else repr(value)


def _field(option: Option) -> None:
    label = option_words.label(option)
    text = f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}." + (
        f" Source: {option.source}." if option.source else ""
    )
    key = PREFIX + option.name
    if option.choices:
        alone = len(option.choices) == 1
        st.selectbox(
            label, option.choices, key=key, help=text, format_func=option_words.choice, disabled=alone
        )
    else:
        # Numbers too: a number field keeps what is out of its range to itself, and the run would train with the value before.
        st.text_input(label, key=key, help=text)


def _summary(option: Option) -> None:
    """What the chosen workload or dataset is, in a sentence."""
    chosen = st.session_state[PREFIX + option.name]
    if option.name == "workload":
        st.caption(catalog.WORKLOADS[chosen].summary)
    elif option.name == "dataset":
        st.caption(catalog.DATASETS[chosen].summary)


def _suggestions(preset: str, option: Option) -> None:
    """Values that the preset's source studies, one click each."""
    offered = PRESETS[preset].suggestions.get(option.name, ())
    if offered:
        with st.container(horizontal=True, gap="xsmall"):
            for value in offered:
                st.button(
                    str(value),
                    key=f"suggest.{option.name}.{value}",
                    on_click=_set,
                    args=({option.name: value},),
                )


def _caution(preset: str, option: Option, spec: RunSpec | None) -> None:
    """What was seen to go wrong with the preset at this value of the option, and the way out."""
    caution = PRESETS[preset].caution
    if caution is None or spec is None or option.name != caution.option:
        return
    if caution.concerns(spec.model_dump(), RunSpec.parse(PRESETS[preset].values).model_dump()):
        st.warning(caution.text, icon=":material/warning:")
        st.button("Use the repaired setting", icon=":material/build:", on_click=_set, args=(caution.repair,))
