"""The Launch form, generated from RunSpec's options: one widget per option, its error right below it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from gan_runtime import catalog
from gan_runtime.errors import SpecError
from gan_runtime.home import command_line
from gan_runtime.hosts import ACCELERATORS, Host
from gan_runtime.options import GROUPS, Option
from gan_runtime.presets import PRESETS
from gan_runtime.spec import RunSpec

PREFIX = "spec."
TITLES = {
    **{name: entry.title for name, entry in catalog.WORKLOADS.items()},
    **{name: entry.title for name, entry in catalog.DATASETS.items()},
    **{name: entry.title for name, entry in catalog.ENGINES.items()},
    "float32": "float32",
    "mixed_bfloat16": "mixed bfloat16",
    "mixed_float16": "mixed float16",
    "off": "off",
    "jit": "jit",
}
ACCELERATOR_TITLES = {"auto": "Auto", "cpu": "CPU", "gpu": "GPU", "tpu": "TPU"}


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
            on_change=lambda: _fill(st.session_state[f"{PREFIX}preset"]),
        )
    )
    st.caption(PRESETS[name].summary)
    return name


def fields(preset: str, host: Host, look_again: Callable[[], None], problems: dict[str, str]) -> None:
    """The widgets of all groups, three beside each other, each with its help and its error."""
    for group in GROUPS:
        options = [option for option in RunSpec.options().values() if option.group == group and _is_shown(option)]
        st.subheader(group)
        if group == "Accelerator":
            _accelerator_cards(host, look_again)
        columns = st.columns(3)
        for index, option in enumerate(options):
            with columns[index % 3]:
                _field(option)
                _summary(option)
                _suggestions(preset, option)
                if option.name in problems:
                    st.markdown(f":red[{problems[option.name]}]")


def _is_shown(option: Option) -> bool:
    """The accelerator has its cards; the TPU's address matters only for a TPU."""
    if option.name == "tpu_address":
        return bool(st.session_state[f"{PREFIX}accelerator"] == "tpu")
    return option.name != "accelerator"


def _accelerator_cards(host: Host, look_again: Callable[[], None]) -> None:
    """What this host offers; what is missing stands there greyed, with the reason and what to do."""
    chosen = st.session_state[f"{PREFIX}accelerator"]
    columns = st.columns(4)
    for column, name in zip(columns, ("auto", *reversed(ACCELERATORS)), strict=True):
        device = host.devices.get(name)
        with column.container(border=True, height="stretch"):
            available = device is None or device.available
            st.button(
                ACCELERATOR_TITLES[name],
                key=f"accelerator.{name}",
                icon=":material/check_circle:" if name == chosen else ":material/radio_button_unchecked:",
                disabled=not available,
                on_click=_choose,
                args=("accelerator", name),
                width="stretch",
            )
            st.caption(_card_text(name, host))
    st.button(
        "Look again", on_click=look_again, type="tertiary", icon=":material/refresh:", help="Asks this host again what it offers."
    )


def _card_text(name: str, host: Host) -> str:
    if name == "auto":
        best = next(kind for kind in ACCELERATORS if host.devices[kind].available)
        return f"The best this host has: {ACCELERATOR_TITLES[best]}."
    device = host.devices[name]
    if not device.available:
        return f":gray[Not here: {device.reason}]"
    if name == "cpu":
        return f"{device.name}, {device.count} cores. Any number of replicas as simulated cores."
    return f"{device.count} × {device.name}"


def read() -> Filled:
    """What stands in the form right now."""
    try:
        return Filled(RunSpec.parse({name: st.session_state[PREFIX + name] for name in RunSpec.options()}))
    except SpecError as error:
        return Filled(None, error.by_field())


def command(preset: str, made: RunSpec) -> str:
    """The command line that starts the same run."""
    base = RunSpec.parse(PRESETS[preset].values).model_dump()
    changed = [f"--set {name}={_shell(value)}" for name, value in made.model_dump().items() if value != base[name]]
    return " ".join([f"{command_line()} train", f"--preset {preset}", *changed])


def _shell(value: Any) -> str:
    text = str(value)
    return f"'{text}'" if " " in text or not text else text


def _fill(preset: str) -> None:
    made = RunSpec.parse(PRESETS[preset].values).model_dump()
    for name, option in RunSpec.options().items():
        st.session_state[PREFIX + name] = f"{made[name]:g}" if option.kind is float else made[name]
    st.session_state[f"{PREFIX}preset"] = preset


def _choose(name: str, value: Any) -> None:
    st.session_state[PREFIX + name] = value


def _field(option: Option) -> None:
    label = f"{option.label} ({option.unit})" if option.unit else option.label
    text = f"{option.help} Allowed: {option.allowed}." + (f" Source: {option.source}." if option.source else "")
    key = PREFIX + option.name
    if len(option.choices) > 1:
        st.selectbox(label, option.choices, key=key, help=text, format_func=lambda choice: TITLES.get(choice, choice))
    elif option.choices:
        st.selectbox(
            label, option.choices, key=key, help=text, format_func=lambda choice: TITLES.get(choice, choice), disabled=True
        )
    elif option.kind is int and option.minimum is not None and option.maximum is not None:
        st.number_input(label, int(option.minimum), int(option.maximum), step=1, key=key, help=text)
    else:
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
                st.button(str(value), key=f"suggest.{option.name}.{value}", on_click=_choose, args=(option.name, value))
