"""The Launch form, generated from RunSpec's options: one widget per option, its error right
below it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import actions, chart_panels, data_summary, health_charts, option_words, plots, words
from dashboard.frame import places
from dashboard.launch import fields
from dashboard.option_words import has_effect, needed
from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.base.options import GROUPS, Option
from gan_runtime.catalog import declarations
from gan_runtime.data import loading
from gan_runtime.data.loading import DataSetInfo
from gan_runtime.engines.task import rate_curves, rate_plan
from gan_runtime.hardware import machine
from gan_runtime.hardware.hosts import ACCELERATORS, Host
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from gan_runtime.supervision.queue import changeable

OPEN_GROUPS = (
    "Model and data",
    "Accelerator",
    "Schedule",
)  # what a beginner needs; every other group waits in its expander
COLUMNS = 3


@dataclass(frozen=True)
class Filled:
    """The form as it is filled in: a spec, or field → message for everything that is wrong.

    `data_sets`: data sets by name.
    """

    data_sets: dict[str, DataSetInfo]
    spec: RunSpec | None
    problems: dict[str, str] = field(default_factory=dict)


def pick_preset() -> str:
    """The chosen preset's name; picking one fills the form with its values."""
    if fields.PRESET not in fields.keep_typed():
        fields.fill(next(iter(PRESETS)))
    name = str(
        st.pills(
            "Preset",
            list(PRESETS),
            format_func=lambda preset: PRESETS[preset].title,
            key=fields.key_to_draw(fields.PRESET),
            required=True,
            wrap=True,
            on_change=lambda: fields.fill(fields.keep_typed()[fields.PRESET]),
        )
    )
    fitted = f" {machine.PRESET_IN_FLOAT32}" if machine.is_preset_changed(name) else ""
    st.caption(f"{PRESETS[name].summary}{fitted}")
    return name


def show(
    preset: str,
    host: Host | None,
    look_again: Callable[[], None],
    filled: Filled,
    is_first_screen: bool = False,
) -> None:
    """The widgets of all groups, three side by side, each with its help and its error; no host: not
    known yet. A first screen ends with the accelerator.
    """
    form = fields.values()
    rates = changeable(form["workload"])
    for group in GROUPS:
        options = [
            option
            for option in RunSpec.options(form["workload"]).values()
            if _group_of(option, rates) == group and option.name != "accelerator"
        ]
        in_use = [
            option
            for option in options
            if has_effect(option, form) or option.name in filled.problems
        ]
        if group in OPEN_GROUPS:
            st.header(group)
            if group == "Accelerator":
                _accelerator_cards(host, look_again)
            _group(preset, in_use, filled)
            if is_first_screen and group == "Accelerator":
                return
            continue
        if group == GROUPS[len(OPEN_GROUPS)]:
            st.header("More options")
        with _expander(
            group, form, [option.name for option in options if option.name in filled.problems]
        ):
            if not st.session_state[_group_key(group)]:
                continue  # half of the page is not visible; it comes when the group is opened
            _group(preset, in_use, filled)
            _not_in_use([option for option in options if option not in in_use])
            if group == "Optimizer" and filled.spec is not None:
                _learning_rates(filled.spec, filled.data_sets[filled.spec.dataset].rows)


def _group_of(option: Option, rates: Collection[str]) -> str:
    """Where a field is drawn: the run's name and learning rates, which are changed most, wait
    in no closed group.
    """
    if option.name == "name":
        return OPEN_GROUPS[0]
    return "Schedule" if option.name in rates else option.group


def _expander(group: str, form: dict[str, Any], wrong: list[str]) -> DeltaGenerator:
    """A group that says in its label what is set in it, and opens by itself when something in it is
    wrong.

    Whether it is open is kept here: a new label makes a new widget, which would close under the
    hand that typed.
    """
    key = _group_key(group)
    st.session_state[key] = bool(st.session_state.get(key)) or bool(wrong)
    line = words.plain(option_words.group_line(group, form))
    if wrong:
        line = f":red[{len(wrong)} value{'s' if len(wrong) > 1 else ''} to correct]"
    title = option_words.group_title(group, form["workload"])
    return st.expander(f"**{title}** · {line}", key=key, on_change="rerun")


def _group_key(group: str) -> str:
    return f"group.{group}"


def _group(preset: str, options: list[Option], filled: Filled) -> None:
    """Row by row, so that a narrow screen keeps the order."""
    for begin in range(0, len(options), COLUMNS):
        for column, option in zip(
            st.columns(COLUMNS), options[begin : begin + COLUMNS], strict=False
        ):
            with column:
                _field(option, filled.data_sets)
                _summary(option, filled.data_sets)
                _suggestions(preset, option)
                _caution(preset, option, filled.spec)
                _slow_here(option, filled.spec)
                if option.name in filled.problems:
                    st.markdown(f":red[{words.plain(filled.problems[option.name])}]")


def _not_in_use(options: list[Option]) -> None:
    """Names what is not shown because it has no effect now, and what it needs."""
    needs: dict[str, list[str]] = {}
    for option in options:
        if need := needed(option):
            needs.setdefault(need.reason, []).append(option.label)
    if needs:
        st.caption(
            " · ".join(
                f"Only with {reason}: {', '.join(labels)}" for reason, labels in needs.items()
            )
        )


def _accelerator_cards(host: Host | None, look_again: Callable[[], None]) -> None:
    """What this host offers; what is missing is grayed, with the reason and what to
    do.
    """
    selected = fields.text_of("accelerator")
    columns = st.columns(4)
    for column, name in zip(columns, ("auto", *reversed(ACCELERATORS)), strict=True):
        device = host.devices.get(name) if host else None
        with column.container(border=True, height="stretch"):
            available = device is None or device.available
            st.button(
                option_words.choice(name),
                key=f"accelerator.{name}",
                icon=(
                    ":material/check_circle:"
                    if name == selected
                    else ":material/radio_button_unchecked:"
                ),
                disabled=not available,
                on_click=fields.put,
                args=({"accelerator": name},),
                width="stretch",
            )
            st.caption(_card_text(name, host))
            if name == "tpu":
                st.page_link(places.TPU, label="TPU check", icon=":material/memory:")
    actions.button(
        "Detect hardware again",
        on_click=look_again,
        type="tertiary",
        icon=":material/refresh:",
        help="Detects the hardware of this host again.",
    )


def _card_text(name: str, host: Host | None) -> str:
    if host is None:
        return "Not known yet."
    if name == "auto":
        best = next(kind for kind in ACCELERATORS if host.devices[kind].available)
        return f"Best available: {option_words.choice(best)}."
    device = host.devices[name]
    if not device.available:
        return f"Not here: {words.plain(device.reason)}"
    if name == "cpu":
        return f"{device.name}, {device.count} cores. Any number of replicas as simulated cores."
    return f"{device.count} × {device.name}"


def read(home: Home) -> Filled:
    """The values of the form right now, with a data set that fits the workload."""
    data_sets = loading.data_sets(home)
    try:
        spec = RunSpec.parse(fields.values())
        loading.check(spec, home)
    except SpecError as error:
        return Filled(data_sets, None, error.by_field())
    except DatasetError as error:
        return Filled(data_sets, None, {"dataset": str(error)})
    return Filled(data_sets, spec)


def _field(option: Option, data_sets: Mapping[str, DataSetInfo]) -> None:
    label = option_words.label(option)
    text = (
        f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}."
        + (f" Source: {option.source}." if option.source else "")
    )
    key = fields.key_to_draw(option.name)
    choices = _choices(option, data_sets)
    if choices:
        st.selectbox(
            label,
            choices,
            key=key,
            help=text,
            format_func=lambda value: option_words.choice(value, option.name),
            disabled=len(choices) == 1,
            on_change=fields.fit_to_workload if option.name == "workload" else None,
        )
    else:
        # Numbers too: a number field keeps what is out of its range to itself, and the run would
        # train with the value before.
        st.text_input(label, key=key, help=text)


def _choices(option: Option, data_sets: Mapping[str, DataSetInfo]) -> tuple[str, ...]:
    """What a field offers.

    Data sets are those known here, and that of a run which is to be trained again.
    """
    if option.name != "dataset":
        return option.choices
    return tuple(dict.fromkeys([*data_sets, fields.text_of(option.name)]))


def _summary(option: Option, data_sets: Mapping[str, DataSetInfo]) -> None:
    """What the chosen workload or dataset is, in a sentence."""
    selected = fields.text_of(option.name)
    if option.name == "workload":
        st.caption(catalog.WORKLOADS[selected].summary)
    elif option.name == "dataset" and selected in data_sets:
        known_set = data_sets[selected]
        st.caption(_of_set(known_set))
        if known_set.preparation is not None:
            data_summary.folded(known_set.rows, known_set.preparation, "launch.summary")


def _of_set(known_set: DataSetInfo) -> str:
    """What it is; of one that people have prepared, what a row of it is.

    Its source is shown next to the form.
    """
    if known_set.is_prepared and not known_set.problem:
        return data_summary.row(known_set.fields)
    return words.plain(known_set.summary)


def _suggestions(preset: str, option: Option) -> None:
    """Values that the preset's source studies, one click each."""
    offered = PRESETS[preset].suggestions.get(option.name, ())
    if offered:
        with st.container(horizontal=True, gap="xsmall"):
            for value in offered:
                st.button(
                    str(value),
                    key=f"suggest.{option.name}.{value}",
                    on_click=fields.put,
                    args=({option.name: value},),
                )


def _caution(preset: str, option: Option, spec: RunSpec | None) -> None:
    """What was seen to go wrong with the preset at this value of the option, and the way out."""
    caution = machine.preset_caution(preset, spec) if spec else None
    if caution and option.name == caution.option:
        st.warning(caution.text, icon=":material/warning:")
        st.button(
            "Use the repaired setting",
            icon=":material/build:",
            on_click=fields.put,
            args=(caution.repair,),
        )


def _slow_here(option: Option, spec: RunSpec | None) -> None:
    """That this host has no arithmetic for the precision, and the way out."""
    if spec is None or option.name != "precision" or not (why := machine.precision_warning(spec)):
        return
    st.warning(why, icon=":material/warning:")
    st.button(
        "Use float32",
        icon=":material/build:",
        on_click=fields.put,
        args=(dict(machine.FLOAT32),),
    )


def _learning_rates(spec: RunSpec, rows: int) -> None:
    """The rates of all networks over the epochs, on a data set of so many rows.

    Nothing for constant rates, and none can be drawn for a run without a step.
    """
    steps_per_epoch = spec.steps_per_epoch(rows)
    declaration = declarations.of(spec.workload)
    # Warm-up and schedule are the same for all networks.
    if (
        not steps_per_epoch
        or rate_plan(spec, declaration.networks[0].name, steps_per_epoch).is_constant
    ):
        return
    titles = {network.name: network.title for network in declaration.networks}
    colors = {
        title: chart_panels.network_color(declaration, name) for name, title in titles.items()
    }
    wide = pd.DataFrame(rate_curves(spec, steps_per_epoch)).rename(columns=titles)
    frame = wide.melt("epoch", var_name="series", value_name="rate")
    plots.chart(health_charts.planned_rates(frame, colors), key="launch.rates")
