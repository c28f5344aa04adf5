"""The Launch form, generated from RunSpec's options: a widget for each option, with its error below
it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import chart_panels, data_summary, health_charts, option_words, plots, widgets, words
from dashboard.launch import fields, where
from dashboard.option_words import has_effect, requirement
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, SpecError, TargetSettingError
from gan_runtime.base.options import GROUPS, Option
from gan_runtime.catalog import declarations
from gan_runtime.data import loading
from gan_runtime.data.loading import DataSetInfo
from gan_runtime.engines.task import rate_curves, rate_plan
from gan_runtime.hardware import machine
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from gan_runtime.spec.run_options import HERE
from gan_runtime.supervision.queue import changeable
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import AnyTarget
from gan_runtime.targets.target import Offer

OPEN_GROUPS = ("Model and data", "Accelerator", "Schedule")  # outside of expanders
COLUMNS = 3
FIND = "launch.find"


@dataclass(frozen=True)
class FormState:
    """The form as filled in: a spec, or field → message for each problem.

    `data_sets`: by name. `targets`: other places where runs train, by name; `offer_of`: what one
    has, None until it has answered. `add_target`: draws what adds another one.
    """

    data_sets: dict[str, DataSetInfo]
    spec: RunSpec | None
    problems: dict[str, str] = field(default_factory=dict)
    targets: Mapping[str, AnyTarget] = field(default_factory=dict)
    offer_of: Callable[[str], Offer | None] = lambda _: None
    add_target: Callable[[], None] = lambda: None


def pick_preset() -> str:
    """The name of the selected preset; a selection fills the form with its values."""
    form = fields.kept()
    if fields.PRESET not in form:
        fields.fill(next(iter(PRESETS)))
    name: str = st.pills(
        "Preset",
        list(PRESETS),
        default=form[fields.PRESET],
        format_func=lambda preset: PRESETS[preset].title,
        key=form.key(fields.PRESET),
        required=True,
        wrap=True,
        on_change=form.on_change(fields.PRESET, lambda: fields.fill(form[fields.PRESET])),
    )
    fitted = f" {machine.PRESET_IN_FLOAT32}" if machine.is_preset_changed(name) else ""
    st.caption(f"{PRESETS[name].summary}{fitted}")
    return name


def show(
    preset: str,
    host: Host | None,
    detect_again: Callable[[], None],
    state: FormState,
) -> None:
    """The widgets of all groups, three side by side, with their help and errors. `host`: None while
    it is not known.
    """
    form = fields.values()
    declared, rates = RunSpec.options(form["workload"]), changeable(form["workload"])
    typed = str(st.session_state.get(FIND, "")).strip()
    if state.targets or form["target"] != HERE:
        _group(preset, [declared["target"]], state)
        where.offers(state.targets, state.offer_of)
        state.add_target()
    in_groups = [
        option for option in declared.values() if option.name not in ("accelerator", "target")
    ]
    for group in GROUPS:
        options = [option for option in in_groups if _group_of(option, rates) == group]
        in_use = [
            option
            for option in options
            if has_effect(option, form) or option.name in state.problems
            if option.name != "job_options" or where.is_slurm(state.targets.get(form["target"]))
        ]
        if group in OPEN_GROUPS:
            st.header(group)
            if group == "Accelerator":
                if not state.targets:
                    state.add_target()
                where.accelerators(host, detect_again, form["target"], state.targets)
            _group(preset, in_use, state)
            continue
        if group == GROUPS[len(OPEN_GROUPS)]:
            st.header("More options")
            widgets.option_search(FIND, "Find, such as learning rate or checkpoint")
        if typed:
            found = [option for option in options if option_words.fits(option, typed)]
            wrong = [option for option in in_use if option.name in state.problems]
            _group(preset, [each for each in in_use if each in (*found, *wrong)], state)
            _not_in_use([option for option in found if option not in in_use])
            continue
        with _expander(
            group, form, [option.name for option in options if option.name in state.problems]
        ):
            if not st.session_state[_group_key(group)]:
                continue  # contents of a closed group are drawn once it is opened
            _group(preset, in_use, state)
            _not_in_use([option for option in options if option not in in_use])
            if group == "Optimizer" and state.spec is not None:
                _learning_rates(state.spec, state.data_sets[state.spec.dataset].rows)
    found = [option for option in in_groups if option_words.fits(option, typed)]
    if typed and all(_group_of(option, rates) in OPEN_GROUPS for option in found):
        st.caption("See the fields above." if found else option_words.not_found(typed))


def _group_of(option: Option, rates: Collection[str]) -> str:
    """The group of a field: the name and the learning rates, which change most, are in open
    groups.
    """
    if option.name == "name":
        return OPEN_GROUPS[0]
    return "Schedule" if option.name in rates else option.group


def _expander(group: str, form: dict[str, Any], wrong: list[str]) -> DeltaGenerator:
    """The expander of a group, whose label summarizes its values, and which opens by itself if
    some are wrong.

    Its state is stored here: a new label makes a new widget, which would close while the user
    types.
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


def _group(preset: str, options: list[Option], state: FormState) -> None:
    """The fields row by row, so that a narrow screen keeps their order."""
    for begin in range(0, len(options), COLUMNS):
        for column, option in zip(
            st.columns(COLUMNS), options[begin : begin + COLUMNS], strict=False
        ):
            with column:
                _field(option, state)
                _summary(option, state)
                _suggestions(preset, option)
                _rows_seen(preset, option, state)
                _known_problem(preset, option, state.spec)
                _precision_warning(option, state.spec)
                if option.name in state.problems:
                    st.markdown(f":red[{words.plain(state.problems[option.name])}]")


def _not_in_use(options: list[Option]) -> None:
    """Names the options that have no effect now, and what they need."""
    needs: dict[str, list[str]] = {}
    for option in options:
        if need := requirement(option):
            needs.setdefault(need.reason, []).append(option.label)
    if needs:
        st.caption(
            " · ".join(
                f"Only with {reason}: {', '.join(labels)}" for reason, labels in needs.items()
            )
        )


def read(home: Home) -> FormState:
    """The current values of the form, checked against the data set."""
    data_sets, targets = loading.data_sets(home), _targets(home)
    try:
        spec = RunSpec.parse(fields.values())
        loading.check(spec, home)
    except SpecError as error:
        return FormState(data_sets, None, error.by_field(), targets)
    except DatasetError as error:
        return FormState(data_sets, None, {"dataset": str(error)}, targets)
    return FormState(data_sets, spec, targets=targets)


def _targets(home: Home) -> dict[str, AnyTarget]:
    """The targets; none if their settings cannot be read; `targets list` says why."""
    try:
        return configuration.targets_of(home)
    except TargetSettingError:
        return {}


def _field(option: Option, state: FormState) -> None:
    label = option_words.label(option)
    text = (
        f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}."
        + (f" Source: {option.source}." if option.source else "")
    )
    form = fields.kept()
    value, key = form[option.name], form.key(option.name)
    choices = _choices(option, state, value)
    if choices:
        st.selectbox(
            label,
            choices,
            choices.index(value),
            key=key,
            help=text,
            format_func=lambda value: option_words.choice(value, option.name),
            disabled=len(choices) == 1,
            on_change=(
                form.on_change(option.name, partial(fields.fit_to_workload, value))
                if option.name == "workload"
                else None
            ),
        )
    else:
        # Also for numbers: a number field would drop what is out of its range, and the run would
        # train with the previous value.
        st.text_input(label, value, key=key, help=text)


def _choices(option: Option, state: FormState, value: str) -> tuple[str, ...]:
    """The choices of a field; empty if it has none.

    Data sets and targets are those known here. The value of a run to be trained again can be none
    of them.
    """
    known: Collection[str] = option.choices
    if option.name == "dataset":
        known = state.data_sets
    elif option.name == "target":
        known = (HERE, *state.targets)
    return tuple(dict.fromkeys([*known, value])) if known else ()


def _summary(option: Option, state: FormState) -> None:
    """What the selected workload or data set is, in a sentence."""
    selected, data_sets = fields.kept()[option.name], state.data_sets
    if option.name == "workload":
        st.caption(catalog.WORKLOADS[selected].summary)
    elif option.name == "dataset" and selected in data_sets:
        data_set = data_sets[selected]
        st.caption(_data_set_text(data_set))
        if data_set.preparation is not None:
            data_summary.expander(data_set.rows, data_set.preparation, "launch.summary")


def _data_set_text(data_set: DataSetInfo) -> str:
    """What a data set is; for a prepared one, what a row of it is.

    Its source is next to the form.
    """
    if data_set.is_prepared and not data_set.problem:
        return data_summary.row(data_set.fields)
    return words.plain(data_set.summary)


def _suggestions(preset: str, option: Option) -> None:
    """Buttons for values that the preset's source studies."""
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


def _rows_seen(preset: str, option: Option, state: FormState) -> None:
    """How many images the epochs show, next to those of the preset on its own data set."""
    own = PRESETS[preset].values
    if option.name != "epochs" or state.spec is None or state.spec.dataset == own["dataset"]:
        return
    data_set = state.data_sets[state.spec.dataset]
    noun = data_summary.noun(data_set.fields)
    seen = formats.quantity(state.spec.epochs * data_set.rows, noun)
    usual = formats.count(loading.rows_of_preset(preset) * own["epochs"])
    title = PRESETS[preset].title.partition(":")[0]
    st.caption(f"Shows {seen}. On its own data set, the preset {title} shows {usual}.")


def _known_problem(preset: str, option: Option, spec: RunSpec | None) -> None:
    """A known problem of the preset with this value, and a button that repairs it."""
    if spec is None or all(option.name != each.option for each in PRESETS[preset].cautions):
        return
    for caution in machine.preset_cautions(preset, [spec]):
        if option.name != caution.option:
            continue
        st.warning(caution.text, icon=":material/warning:")
        st.button(
            "Use the repaired setting",
            icon=":material/build:",
            on_click=fields.put,
            args=(caution.repair,),
        )


def _precision_warning(option: Option, spec: RunSpec | None) -> None:
    """A warning if this host has no fast arithmetic for the precision, and a button that fixes
    it.
    """
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
    """A chart of the learning rates over the epochs, for a data set of `rows` rows.

    Nothing for constant rates, or for a run without a step.
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
