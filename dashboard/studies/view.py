"""The report of a study: its progress, the results of its variants, and how sure they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import actions, palette, run_selection, tables, widgets, words
from dashboard.frame import places
from dashboard.samples import players
from dashboard.studies import figures
from dashboard.studies import measures as study_measures
from dashboard.studies import words as study_words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.store.store import Store
from gan_runtime.studies.design import QUESTIONS

PAGE, PICKED = "studies", "studies.picked"
TITLES = {
    "reports": "Reports",
    "xla": "When XLA pays off",
    "precision": "Same losses?",
    "paper": "The paper",
}
CHECK_S = 2.0
OUTCOME, BY_CHANCE = "study.outcome", "seed"  # a key of the address; the question about chance


def show(runtime: Runtime) -> None:
    """The report of a study; redraws alone while its runs wait or train."""
    study = picker(runtime.store)
    if study is None:
        st.info(empty_text(runtime.store))
        st.page_link(
            places.LAUNCH,
            label="Ask a question",
            icon=":material/science:",
            query_params={"tab": "study"},
        )
        actions.offer_examples(runtime, PAGE)
        return
    study_id, was_live = study.study_id, study.is_live

    @st.fragment(run_every=CHECK_S if was_live else None)
    def panel() -> None:
        now = next(
            (row for row in queries.studies(runtime.store) if row.study_id == study_id), None
        )
        if now is None or (was_live and not now.is_live):
            st.rerun()
        runs = queries.study_runs(runtime.store, study_id)
        progress(runtime, now, runs)
        report(runtime.store, now, runs)

    panel()


def picker(store: Store) -> StudyRow | None:
    """The study of `?study=…` or the newest; a choice goes into the address.

    None if there is none.
    """
    address_study = st.query_params.get("study", "")
    rows = {row.study_id: row for row in run_selection.studies(store, address_study)}
    if not rows:
        return None
    if address_study and address_study not in rows:
        st.warning(
            f"Study {words.plain(address_study[: widgets.MOST_LETTERS])} is not stored here."
            " This page shows the newest one."
        )
    study_id = address_study if address_study in rows else next(iter(rows))
    st.session_state[PICKED] = study_id  # with each render: see kept_values.py
    st.selectbox(
        "Study",
        list(rows),
        format_func=lambda study_id: f"{rows[study_id].title} ({study_id})",
        label_visibility="collapsed",
        key=PICKED,
        on_change=_to_address,
    )
    return rows[study_id]


def _to_address() -> None:
    st.query_params["study"] = st.session_state[PICKED]


def empty_text(store: Store) -> str:
    """Why the page has no study to show."""
    if queries.studies(store):
        return "All runs of studies are hidden. To see them, show hidden runs on the Runs page."
    return (
        "No study is stored yet. A study trains several runs that differ in one option and"
        " measures its effect."
    )


def progress(runtime: Runtime, study: StudyRow, runs: list[RunRow]) -> None:
    """State, progress, time left, and buttons for the state."""
    now = queries.study_progress(runtime.store, study.study_id)
    question = QUESTIONS.get(study.question)
    widgets.state(study.status, question.asks if question else study.title)
    remaining = (
        f" · about {formats.duration(now.seconds_left)} left"
        if study.is_live and now.seconds_left is not None
        else ""
    )
    st.progress(
        min(1.0, now.share), text=f"{study.finished} of {study.runs} runs are finished{remaining}"
    )
    run_ids = [row.run_id for row in runs]
    with st.container(horizontal=True, vertical_alignment="center"):
        # Always there, so it comes first and stays in place when others come and go.
        st.page_link(
            places.COMPARE,
            label=f"Compare {len(runs)} runs",
            icon=":material/stacked_line_chart:",
            query_params={"runs": ",".join(run_ids)},
        )
        training = next((row for row in runs if row.is_live and row.status != "queued"), None)
        if training is not None:
            st.page_link(
                places.RUN,
                label=f"Watch {words.plain(training.name)}",
                icon=":material/monitoring:",
                query_params={"run": training.run_id},
            )
        if study.is_live and actions.button(
            "Stop study", icon=":material/stop_circle:", key="study.stop"
        ):
            _run_and_redraw(partial(runtime.commands.stop_all, run_ids))
        if (
            not study.is_live
            and study.finished < study.runs
            and actions.button("Resume study", icon=":material/play_arrow:", key="study.resume")
        ):
            _run_and_redraw(partial(runtime.commands.resume_all, run_ids))


def _run_and_redraw(action: Callable[[], None]) -> None:
    if actions.succeeded(action):
        st.rerun()


def report(store: Store, study: StudyRow, runs: list[RunRow]) -> None:
    """Sentences, two charts, a table, the repeats for a clear difference, images."""
    results = queries.study_results(store, study.study_id)
    if results["seconds"].isna().all():
        st.info("The report appears here when the first run has results.")
        return
    st.caption(
        f"{study_words.conditions(queries.conditions(store, [row.run_id for row in runs]))}."
    )
    by_chance = study.question == BY_CHANCE
    if study.is_live and not by_chance:
        st.info(study_words.early_looks(), icon=":material/visibility:")
    measures = _chart_measures(results, study.question)
    st.markdown("\n".join(f"- {line}" for line in _headlines(results, study.question, measures)))
    for column, measure in zip(st.columns(2, gap="medium"), measures, strict=True):
        with column:
            figures.show_measure(results, measure, "study")
    _pick_outcome(results, study.question)
    _numbers(results, runs, by_chance)
    st.header("Images of the first repeat")
    first_repeat = [row for row in runs if row.repeat == 1]
    players.sample_player(store, first_repeat, "study.samples", colors=_colors(results))


def _colors(results: pd.DataFrame) -> dict[str, str]:
    """run_id → the color of its variant in the charts."""
    return {
        run_id: palette.run_color(variant)
        for run_id, variant in zip(results["run_id"], results["variant_index"], strict=True)
    }


def _numbers(results: pd.DataFrame, runs: list[RunRow], by_chance: bool) -> None:
    st.header("Means with 95% intervals")
    tables.show(
        study_words.table(results), hide_index=True, key="study.table", column_config=_help(results)
    )
    st.caption(study_words.levels(results))
    if not by_chance:
        st.caption(study_words.repeats(results))
    figures.show_published(results, runs)


def _chart_measures(results: pd.DataFrame, question: str) -> tuple[str, str]:
    """The measures of the two charts, first the one that the question asks for."""
    outcomes = study_measures.outcomes(results, QUESTIONS.get(question))
    usual = outcomes[0] if outcomes else study_measures.USUAL_OUTCOME
    selected = st.session_state.get(OUTCOME, st.query_params.get(OUTCOME, usual))
    outcome = str(selected) if selected in outcomes else usual
    if _asks_for_time(question):
        return study_measures.TIME, outcome
    return outcome, study_measures.TIME


def _asks_for_time(question: str) -> bool:
    declared_question = QUESTIONS.get(question)
    return declared_question is None or declared_question.is_about_speed or question == BY_CHANCE


def _headlines(results: pd.DataFrame, question: str, measures: tuple[str, str]) -> list[str]:
    if question == BY_CHANCE:
        return [study_words.scatter(results)]
    times = study_words.sentences(results)
    if _asks_for_time(question):
        return times
    return [*filter(None, [study_words.outcome(results, measures[0])]), *times]


def _pick_outcome(results: pd.DataFrame, question: str) -> None:
    """The selection of any measure except time per epoch."""
    outcomes = study_measures.outcomes(results, QUESTIONS.get(question))
    if outcomes:
        st.selectbox(
            "Outcome",
            outcomes,
            format_func=lambda name: study_measures.measure_of(name, results).title,
            key=OUTCOME,
            bind="query-params",
            help=study_measures.OUTCOME_HELP,
            width=320,
        )


def _help(results: pd.DataFrame) -> dict[str, Any]:
    return {
        measure.label: st.column_config.TextColumn(help=measure.help or None)
        for measure in study_measures.measures(results).values()
    }
