"""The form of a new study: a question, base options, the values to compare, repeats; what it will
take; and the start button.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field

import streamlit as st

from dashboard import actions, queue_view, widgets, words
from dashboard.frame import places
from dashboard.studies import estimates
from gan_runtime.base import formats
from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware import machine
from gan_runtime.records.home import command_line
from gan_runtime.spec import nesting
from gan_runtime.spec.presets import PRESETS, parse_assignments, preset
from gan_runtime.store import queries
from gan_runtime.studies.design import MAX_REPEATS, QUESTIONS, REPEATS_HELP, StudyDesign

PREFIX = "study."
SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


@dataclass(frozen=True)
class StudyForm:
    """The fields of the form, as typed.

    `sets`: further options, key=value; `share`: the difference to detect, 0.05 for 5%.
    """

    question: str
    preset: str
    values: str
    repeats: str
    epochs: str
    sets: str
    share: float = 0.05

    def design(self) -> StudyDesign:
        """The study. Raises SpecError."""
        typed = parse_assignments(self.sets.split())
        base = nesting.overlaid(
            machine.preset_values(self.preset), {"epochs": self.epochs, **typed}
        )
        values = [part for part in self.values.replace(" ", "").split(",") if part]
        return StudyDesign.parse(self.question, base, list(values), _whole(self.repeats))

    def command(self) -> str:
        """The command line that starts the same study."""
        sets = "".join(
            f" --set {shlex.quote(pair)}" for pair in [f"epochs={self.epochs}", *self.sets.split()]
        )
        values, repeats = shlex.quote(self.values.replace(" ", "")), shlex.quote(self.repeats)
        return (
            f"{command_line()} study {self.question} --values {values} --repeats {repeats} --preset"
            f" {self.preset}{sets}"
        )


@dataclass(frozen=True)
class CheckedForm:
    """The study of the form, or field → message for each problem."""

    design: StudyDesign | None
    problems: dict[str, str] = field(default_factory=dict)


def show(runtime: Runtime) -> None:
    """The form, and on the right what the study will take."""
    form, summary = st.columns([2, 1], gap="large")
    with form:
        typed = _fields()
    checked = check(typed)
    with summary:
        st.header("This study")
        for message in checked.problems.values():
            st.error(words.plain(message), icon=":material/error:")
        if checked.design is None:
            return
        _show_requirements(runtime, checked.design)
        if typed.question != "seed":
            compared = max(planned.index for planned in checked.design.runs)
            st.caption(
                estimates.repeats_suggestion(runtime.store, typed.question, typed.share, compared)
            )
        widgets.cautions(typed.preset, (planned.spec for planned in checked.design.runs))
        if actions.button(
            "Start study", type="primary", icon=":material/play_arrow:", width="stretch"
        ):
            _start(runtime, checked.design)
        widgets.command_line(typed.command())


def check(typed: StudyForm) -> CheckedForm:
    """The study of the form, or its problems."""
    try:
        return CheckedForm(typed.design())
    except SpecError as error:
        return CheckedForm(None, error.by_field())


def _fields() -> StudyForm:
    question = st.segmented_control(
        "Question",
        list(QUESTIONS),
        format_func=lambda key: QUESTIONS[key].title,
        default="batch_size",
        required=True,
        wrap=True,
        key=f"{PREFIX}question",
    )
    selected = QUESTIONS[str(question)]
    st.caption(f"{selected.asks}{f' ({selected.source})' if selected.source else ''}")
    values = st.text_input(
        "Values to compare",
        ",".join(str(value) for value in selected.values),
        key=f"{PREFIX}values.{question}",
        help="Two or more, separated by commas. Each value is trained once per repeat.",
    )
    base, epochs, repeats, share = _size(str(question), "seed" in selected.options)
    sets = st.text_input(
        "Further options",
        key=f"{PREFIX}sets",
        placeholder="such as replicas=2 precision=float32",
        help=(
            "Options of a run as key=value, separated by spaces. `train --help` lists their names."
        ),
    )
    return StudyForm(str(question), base, values, repeats, epochs, sets, share)


def _size(question: str, asks_for_seeds: bool) -> tuple[str, str, str, float]:
    """The preset to start from, epochs and repeats as typed, and the difference as a share."""
    first, second, third, fourth = st.columns([4, 2, 2, 3], vertical_alignment="bottom")
    base = first.selectbox(
        "Starting from",
        list(PRESETS),
        format_func=lambda name: PRESETS[name].title,
        key=f"{PREFIX}preset",
        help="The preset of all other options.",
    )
    # Text fields: a number field would drop what is out of its range, and the study would run with
    # the previous value.
    epochs = second.text_input(
        "Epochs",
        str(preset(base).values["epochs"]),
        key=f"{PREFIX}epochs.{base}",
        help="Passes over the data, in each run.",
    )
    repeats = third.text_input(
        "Repeats",
        "1" if asks_for_seeds else "3",
        key=f"{PREFIX}repeats.{question}",
        disabled=asks_for_seeds,
        help=f"Runs of each value, each with another seed: 1 to {MAX_REPEATS}. {REPEATS_HELP}",
    )
    share = fourth.selectbox(
        "Difference to detect",
        SHARES,
        index=SHARES.index(StudyForm.share),
        format_func=formats.percent,
        key=f"{PREFIX}difference",
        disabled=asks_for_seeds,
        help=(
            "The smallest difference in time per epoch to detect. The repeats that it takes are"
            " shown next to the form."
        ),
    )
    return base, epochs.strip(), repeats.strip(), float(share)


def _whole(repeats: str) -> int:
    """The number of repeats. Raises SpecError if the text is not one."""
    if repeats.isdecimal() and len(repeats) < 10:
        return int(repeats)
    allowed = f"a whole number from 1 to {MAX_REPEATS}"
    raise SpecError(
        [
            FieldError(
                "repeats", f"repeats is {quoted(repeats)}, but allowed is {allowed}. {REPEATS_HELP}"
            )
        ]
    )


def _show_requirements(runtime: Runtime, design: StudyDesign) -> None:
    count = len(design.runs)
    host = queue_view.known_host(runtime)
    seconds = estimates.seconds(runtime, host, [design]) if host else None
    columns = st.columns(2)
    columns[0].metric("Runs", formats.count(count))
    columns[1].metric(
        "Training time, est.",
        f"≈ {formats.duration(seconds)}" if seconds else "unknown",
        help=estimates.TIME_HELP,
    )
    order = " → ".join(words.plain(planned.variant) for planned in design.runs[:6])
    st.caption(
        f"One after another: {order}{' → …' if count > 6 else ''}. With two repeats or more, a"
        " machine that slows down steadily favors no value."
    )


def _start(runtime: Runtime, design: StudyDesign) -> None:
    with st.spinner("Checking data and accelerator …"):
        runs = actions.attempt(lambda: runtime.commands.submit_study(design))
    if runs:
        study_id = queries.run(runtime.store, runs[0].run_id).study_id
        st.switch_page(places.STUDIES, query_params={"study": study_id or ""})
