"""The page of a run: its head with verdict and buttons, and its tabs, of which only the open one
is drawn.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import (
    actions,
    histogram_view,
    rendering,
    run_selection,
    target_job,
    widgets,
    words,
)
from dashboard.evaluation import view as evaluation_view
from dashboard.frame import places
from dashboard.run import buttons, overview, record_view
from dashboard.samples import generate_view, players
from gan_runtime.base.errors import UnknownRunError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.journal import ACTIVE
from gan_runtime.records.states import WAITS_IN_TURN
from gan_runtime.store import queries
from gan_runtime.store.queries import RunProgress, RunRow
from gan_runtime.store.store import LATELY_SECONDS, Store

PAGE = "run"
OVERVIEW, EVALUATION = "overview", "evaluation"
TITLES = {
    OVERVIEW: "Overview",
    "samples": "Samples",
    "histograms": "Histograms",
    EVALUATION: "Evaluation",
    "log": "Log and events",
    "options": "Options",
}
NOTHING_STORED = "No run is stored yet. Start one on the Launch page; its curves appear here."


@dataclass(frozen=True)
class Head:
    """The containers above the tabs."""

    verdict: DeltaGenerator
    buttons: DeltaGenerator
    next_steps: DeltaGenerator


def pick(runtime: Runtime) -> RunRow:
    """The run of the address, else the last opened run, the newest live one, or the newest.

    Only a choice goes into the address: otherwise Back would take one more press. Ends the page if
    no run is stored.
    """
    title, picker = st.columns([3, 2], vertical_alignment="bottom")
    address_run, before = (
        st.query_params.get(places.RUN_KEY, ""),
        st.session_state.get(places.CHOSEN_RUN, ""),
    )
    rows = {row.run_id: row for row in run_selection.runs(runtime.store, (address_run, before))}
    if not rows:
        _nothing_stored(runtime)
    live = next((row.run_id for row in rows.values() if row.status in ACTIVE), next(iter(rows)))
    run_id = next(run_id for run_id in (address_run, before, live) if run_id in rows)
    if address_run and address_run not in rows:
        st.warning(
            f"Run '{words.plain(address_run[: widgets.MOST_LETTERS])}' is not stored here."
            f" This page shows {words.plain(run_id)}."
        )
    key = f"{PAGE}.picked"
    st.session_state[key] = run_id  # with each render: see kept_values.py

    def picked() -> None:
        st.query_params[places.RUN_KEY] = st.session_state[key]

    with picker:
        st.selectbox(
            "Run",
            [row.run_id for row in run_selection.pinned_first(list(rows.values()))],
            format_func=lambda run_id: widgets.title(rows[run_id]),
            key=key,
            on_change=picked,
            label_visibility="collapsed",
        )
    st.session_state[places.CHOSEN_RUN] = run_id
    title.title(words.plain(rows[run_id].name), anchor=False)
    return rows[run_id]


def _nothing_stored(runtime: Runtime) -> None:
    st.title("Run")
    st.info(NOTHING_STORED)
    st.page_link(places.LAUNCH, label="Go to Launch", icon=":material/rocket_launch:")
    actions.offer_examples(runtime, PAGE)
    st.stop()


def head(row: RunRow) -> Head:
    """The settings of the run, and the containers of its verdict and buttons, created before the
    fragments that fill them.
    """
    facts, own_buttons = st.columns([2, 1], vertical_alignment="center")
    with facts:
        verdict = st.container(key="run_verdict")  # style.css keeps its height
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(words.plain(run_selection.settings(row)), width="content")
            buttons.present(row)
        widgets.local_sgd(row.sync_every_steps)
    return Head(verdict, own_buttons, st.container())


def titles(runtime: Runtime, row: RunRow) -> dict[str, str]:
    """The tabs of this run: name in the address → title."""
    has_evaluation = evaluation_view.applies(runtime, row)
    return {name: title for name, title in TITLES.items() if name != EVALUATION or has_evaluation}


def show(runtime: Runtime, row: RunRow, tab: str, place: DeltaGenerator, head: Head) -> None:
    """Fills the head and the open tab, and redraws both while the run is live."""
    if tab != OVERVIEW or row.status == "queued":
        _draw_live(runtime, row, head, None)
        with place:
            _tab(runtime, row, tab)
        return
    with place:
        parts = overview.parts(row.run_id)
    _draw_live(runtime, row, head, parts)


def _tab(runtime: Runtime, row: RunRow, tab: str) -> None:
    if tab == OVERVIEW:
        overview.show_waiting(runtime.store, row)
    elif tab == "samples":
        players.sample_player(runtime.store, [row], key=f"samples.{row.run_id}")
        generate_view.show(runtime, row)
        generate_view.show_export(runtime, row)
    elif tab == "histograms":
        histogram_view.show(runtime.store, [row])
    elif tab == EVALUATION:
        evaluation_view.draw(runtime, row)
    elif tab == "log":
        record_view.show_log(runtime, row)
    else:
        record_view.show_options(row)


def _draw_live(runtime: Runtime, row: RunRow, head: Head, parts: overview.Parts | None) -> None:
    """Two fragments: what changes with each step, and the rest less often.

    They redraw the whole page when the run begins or ends, and when its quality is measured.
    Widgets keep their state between refreshes, and the first steps and results show at once.
    """
    store, run_id = runtime.store, row.run_id
    is_changing = _is_changing(runtime, row)
    had_results = _has_results(store, run_id)
    had_begun = row.status == "queued" or queries.progress(store, run_id).step > 0
    every = rendering.interval(row.accelerator) if had_begun else rendering.FIRST_SECONDS
    drawn_step = 0

    @st.fragment(run_every=every if row.is_live else None)
    def newest() -> None:
        nonlocal drawn_step
        now = current(store, run_id)
        if now is None:
            _deleted(run_id)
            return
        is_as_drawn = (
            now.is_live
            and (now.status == "queued") == (row.status == "queued")
            and had_results == _has_results(store, run_id)
        )
        right = rendering.interval(now.accelerator)
        keeps_interval = rendering.is_close(every, right) if had_begun else drawn_step == 0
        if row.is_live and not (is_as_drawn and keeps_interval):
            st.rerun()
        progress = overview.shared(
            store, now, rendering.age_s(now.accelerator), queries.progress, run_id
        )
        _verdict(store, now, progress)
        target_job.show(runtime, now)
        if parts is not None:
            overview.show_newest(store, now, progress, parts)
        drawn_step = progress.step

    @st.fragment(run_every=rendering.rest_interval(row.accelerator) if is_changing else None)
    def rest() -> None:
        now = current(store, run_id)
        if now is None:
            return
        if is_changing and (now.is_live != row.is_live or not _is_changing(runtime, now)):
            st.rerun()
        with head.buttons:
            buttons.stop_or_resume(runtime, now)
        if not now.is_live:
            with st.container(horizontal=True, vertical_alignment="center"):
                buttons.next_steps(runtime, now)
        if parts is not None:
            overview.show_rest(runtime, now, parts)

    with head.verdict:
        newest()
    with head.next_steps:
        rest()


def current(store: Store, run_id: str) -> RunRow | None:
    """The run now; None if it was deleted."""
    try:
        return queries.run(store, run_id)
    except UnknownRunError:
        return None


def _is_changing(runtime: Runtime, row: RunRow) -> bool:
    """Whether the run is live, or its quality is still being measured."""
    return row.is_live or overview.awaits_quality(runtime, row)


def _has_results(store: Store, run_id: str) -> bool:
    """Whether an epoch has stored samples."""
    return bool(queries.sample_epochs(store, [run_id]))


def _deleted(run_id: str) -> None:
    """The notice for a run that was deleted while its page was open."""
    st.info(
        f"Run {words.plain(run_id)} was deleted while this page was open.", icon=":material/delete:"
    )
    st.page_link(places.RUNS, label="Go to Runs", icon=":material/table_rows:")


def _verdict(store: Store, row: RunRow, progress: RunProgress) -> None:
    verdicts = overview.shared(store, row, LATELY_SECONDS, queries.verdicts, (row.run_id,))
    note = "" if row.status == "running" else _note(row)
    zone = st.context.timezone or "UTC"
    when = words.age(progress.written_at) if row.is_live else words.ended(row.finished_at, zone)
    text = " · ".join(filter(None, (note, when)))
    widgets.state(row.status, text, verdicts.get(row.run_id, widgets.NO_VERDICT))
    if stall := overview.shared(store, row, LATELY_SECONDS, queries.stall_event, row.run_id):
        st.warning(words.plain(stall), icon=":material/hourglass_disabled:")
    elif words.is_silent(row.status, progress.written_at):
        st.warning(
            f"The trainer has not reported for a while ({words.age(progress.written_at)}). Open"
            " the tab Log and events to find the cause."
        )


def _note(row: RunRow) -> str:
    """The reason for the state, as a sentence."""
    if row.reason_code in WAITS_IN_TURN and row.status == "queued":
        return "Waiting: each device trains one run at a time. See the queue on Home."
    return words.capitalized(row.note)
