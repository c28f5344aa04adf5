"""The report of a study: how far it is, what its variants took and learnt, and how sure that is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import actions, run_selection, tables, widgets, words
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
    "xla": "XLA pay-back",
    "precision": "Same losses?",
    "paper": "The paper",
}
LOOK_AGAIN_S = 2.0


def show(runtime: Runtime) -> None:
    """The report of one study; redraws alone while its runs wait or train."""
    study = picker(runtime.store)
    if study is None:
        st.info(why_none(runtime.store))
        st.page_link(
            places.LAUNCH,
            label="Ask a question",
            icon=":material/science:",
            query_params={"tab": "study"},
        )
        actions.offer_examples(runtime, PAGE)
        return
    study_id, was_live = study.study_id, study.is_live

    @st.fragment(run_every=LOOK_AGAIN_S if was_live else None)
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
    """One study, from `?study=…` or the newest; the choice goes into the address.

    None: there is none.
    """
    asked = st.query_params.get("study", "")
    rows = {row.study_id: row for row in run_selection.studies(store, asked)}
    if not rows:
        return None
    if asked and asked not in rows:
        st.warning(
            f"Study {words.plain(asked[: widgets.MOST_LETTERS])} is not stored here; showing the"
            " newest instead."
        )
    chosen = asked if asked in rows else next(iter(rows))
    if st.session_state.get(PICKED) != chosen:
        st.session_state[PICKED] = chosen
    st.selectbox(
        "Study",
        list(rows),
        format_func=lambda study_id: f"{rows[study_id].title} ({study_id})",
        label_visibility="collapsed",
        key=PICKED,
        on_change=_to_address,
    )
    return rows[chosen]


def _to_address() -> None:
    st.query_params["study"] = st.session_state[PICKED]


def why_none(store: Store) -> str:
    """What the page says where it has no study to show."""
    if queries.studies(store):
        return (
            "The runs of all studies are hidden. The switch above the table of Runs shows them,"
            " here too."
        )
    return (
        "No study is stored yet. A study starts several runs that differ in one thing, and says"
        " what that thing does."
    )


def progress(runtime: Runtime, study: StudyRow, runs: list[RunRow]) -> None:
    """State, bar, time left, and the buttons that fit the state."""
    now = queries.study_progress(runtime.store, study.study_id)
    question = QUESTIONS.get(study.question)
    widgets.state(study.status, question.asks if question else study.title)
    left = (
        f" · about {formats.duration(now.seconds_left)} left"
        if study.is_live and now.seconds_left is not None
        else ""
    )
    st.progress(
        min(1.0, now.share), text=f"{study.finished} of {study.runs} runs are finished{left}"
    )
    run_ids = [row.run_id for row in runs]
    with st.container(horizontal=True, vertical_alignment="center"):
        # What is always there comes first, so that it stays in its place when the others come and
        # go.
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
            _do(partial(runtime.commands.stop_all, run_ids))
        if (
            not study.is_live
            and study.finished < study.runs
            and actions.button("Go on", icon=":material/play_arrow:", key="study.resume")
        ):
            _do(partial(runtime.commands.resume_all, run_ids))


def _do(action: Callable[[], None]) -> None:
    if actions.succeeded(action):
        st.rerun()


def report(store: Store, study: StudyRow, runs: list[RunRow]) -> None:
    """Sentences, two charts, one table, how many repeats would tell; a sentence instead while
    there is nothing to say.
    """
    results = queries.study_results(store, study.study_id)
    if results["seconds"].isna().all():
        st.info("The report appears here as soon as the first run has numbers.")
        return
    st.caption(
        f"{study_words.conditions(queries.conditions(store, [row.run_id for row in runs]))}."
    )
    by_chance = study.question == "seed"
    if study.is_live and not by_chance:
        st.info(study_words.early_looks(), icon=":material/visibility:")
    sentences = [study_words.scatter(results)] if by_chance else study_words.sentences(results)
    for sentence in sentences:
        st.markdown(f"- {sentence}")
    drawn = (study_measures.TIME, _outcome(results, study.question))
    for column, measure in zip(st.columns(2, gap="medium"), drawn, strict=True):
        with column:
            figures.show_measure(results, measure, "study")
    st.header("Means and how sure they are")
    tables.show(
        study_words.table(results), hide_index=True, key="study.table", column_config=_help(results)
    )
    st.caption(study_words.levels(results))
    if not by_chance:
        st.caption(study_words.repeats(results))
    figures.show_published(results, runs)
    st.header("Images of the first repeat")
    players.sample_player(store, [row for row in runs if row.repeat == 1], key="study.samples")


def _outcome(results: pd.DataFrame, question: str) -> str:
    """What the study is asked for beside time: any measure that one of its runs has."""
    there = study_measures.outcomes(results, QUESTIONS.get(question))
    if not there:
        return study_measures.USUAL_OUTCOME
    picked = st.selectbox(
        "Outcome",
        there,
        format_func=lambda name: study_measures.measure_of(name, results).title,
        key="study.outcome",
        bind="query-params",
        help=study_measures.OUTCOME_HELP,
        width=320,
    )
    return str(picked)


def _help(results: pd.DataFrame) -> dict[str, Any]:
    return {
        one.label: st.column_config.TextColumn(help=one.help or None)
        for one in study_measures.measures(results).values()
    }
