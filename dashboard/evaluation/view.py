"""The page of an evaluation: which answers, then tabs from the declaration and the domain. Only the open tab draws."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from dashboard import listed, widgets
from dashboard.domain_pages import EVALUATIONS, PAGES
from dashboard.evaluation import epochs, summary
from dashboard.evaluation.shown import (
    DomainPage,
    Shown,
    label,
    names_of,
    stored_answers,
    stored_scores,
)
from dashboard.frame import places
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.supervision.runtime import Runtime

MOST_RUNS = MOST_ANSWERS = 4
VIEW, WITH = "view", "with"  # in the address: the open tab; the runs to compare with
Draw = Callable[[Runtime, Shown], None]


def draw(runtime: Runtime, row: RunRow) -> None:
    """The evaluations of a run, as a tab of its page; `?with=a,b` compares it with others. A sentence where none applies."""
    names = [name for name in PAGES if _applies(runtime, name, row)]
    if not names:
        st.info("No evaluation applies to what this run makes.")
        return
    name = names[0]
    if len(names) > 1:
        titles = {name: EVALUATIONS[name].title for name in names}
        name = st.segmented_control("Evaluation", names, default=name, format_func=titles.__getitem__, key="evaluation.name", required=True)  # fmt: skip
    evaluated = queries.evaluated_runs(runtime.store, name)
    beside: list[RunRow] = []
    if row.run_id in evaluated:
        others = [other for other in queries.runs(runtime.store) if other.run_id in evaluated]
        beside = _compare_with(listed.offered([other for other in others if other != row], _named()))
    evaluation(runtime, name, [row, *beside])


def applies(runtime: Runtime, row: RunRow) -> bool:
    """Whether any evaluation can be asked of a run, or has been."""
    return any(_applies(runtime, name, row) for name in PAGES)


def _applies(runtime: Runtime, name: str, row: RunRow) -> bool:
    return row.run_id in queries.evaluated_runs(runtime.store, name) or PAGES[name].applies(runtime, row)


def _named() -> list[str]:
    return [run_id for run_id in st.query_params.get(WITH, "").split(",") if run_id]


def _compare_with(others: list[RunRow]) -> list[RunRow]:
    """The runs that are picked to be drawn with this one; a choice goes into the address."""
    known = {row.run_id: row for row in others}
    usual = [run_id for run_id in dict.fromkeys(_named()) if run_id in known][: MOST_RUNS - 1]
    if not known:
        return []
    picked = st.multiselect(
        "Compare with",
        list(known),
        default=usual,
        format_func=lambda run_id: widgets.title(known[run_id]),
        max_selections=MOST_RUNS - 1,
        placeholder="Pick runs to compare with",
        key="evaluation.with",
    )
    if set(picked) != set(usual):
        st.query_params[WITH] = ",".join(picked)
    return [known[run_id] for run_id in picked]


def page(runtime: Runtime, name: str) -> None:
    """A page of one evaluation, for `?runs=a,b`: the runs to choose from, and what was measured of those that are picked."""
    rows = pick(runtime, name)
    if not rows:
        st.info("Pick a run above: what was measured of it appears here.")
        return
    evaluation(runtime, name, rows)


def pick(runtime: Runtime, name: str) -> list[RunRow]:
    """Those of `?runs=a,b`, else the newest that was evaluated; ends the page where no run can be. The first is what figures are about."""
    evaluated = queries.evaluated_runs(runtime.store, name)
    named = widgets.named_runs()
    known = {row.run_id: row for row in listed.offered(_candidates(runtime, name, evaluated), named)}
    if not known:
        st.info(PAGES[name].no_run)
        st.page_link(places.DATA, label="Go to Data", icon=":material/photo_library:")
        st.stop()
    asked = [run_id for run_id in named if run_id in known][:MOST_RUNS]
    usual = asked or [run_id for run_id in evaluated if run_id in known][:1] or [next(iter(known))]
    picked = st.multiselect(
        "Runs",
        list(known),
        default=usual,
        format_func=lambda run_id: widgets.title(known[run_id]),
        max_selections=MOST_RUNS,
        placeholder="Pick runs to look at",
        key=f"evaluation.runs.{name}",
        label_visibility="collapsed",
    )
    if set(picked) != set(usual):
        st.query_params["runs"] = ",".join(picked)
    return [known[run_id] for run_id in picked]


def _candidates(runtime: Runtime, name: str, evaluated: list[str]) -> list[RunRow]:
    """Runs of one workload with the same options on one data set are asked once whether it applies."""
    there = {run.run_id for run in runtime.home.run_dirs()}
    apply: dict[tuple[str, str, str], bool] = {}
    rows = []
    for row in queries.runs(runtime.store):
        kind = (row.workload, row.dataset, PAGES[name].kind(row))
        if row.run_id not in evaluated and row.run_id in there and kind not in apply:
            apply[kind] = PAGES[name].applies(runtime, row)
        if row.run_id in evaluated or (row.run_id in there and apply[kind]):
            rows.append(row)
    return rows


def evaluation(runtime: Runtime, name: str, rows: list[RunRow]) -> None:
    """What was measured of these runs, the first of which figures are about; a form where nothing was."""
    domain, runs = PAGES[name], {row.run_id: row for row in rows}
    stored = stored_answers(runtime.store, name, list(runs))
    if not stored:
        st.info(domain.no_answer)
        domain.measure(runtime, rows, True)
        return
    answers = _choose(domain, stored, runs)
    scores = stored_scores(runtime.store, domain, name, stored)
    _tabs(runtime, Shown(EVALUATIONS[name], domain, runs, answers, stored, scores), rows)


def _choose(
    page: DomainPage, stored: list[EvaluationRow], runs: dict[str, RunRow]
) -> dict[str, EvaluationRow]:
    """By a slider where answers of a run differ in the epoch only, else out of a list; names in charts → answers."""
    of_run = {run_id: [row for row in stored if row.run_id == run_id] for run_id in runs}
    of_run = {run_id: rows for run_id, rows in of_run.items() if rows}
    is_alike = all(len({tuple(page.about(row).items()) for row in rows}) == 1 for rows in of_run.values())
    rows = _by_epoch(of_run) if is_alike else _by_name(page, of_run, runs)
    return dict(zip(names_of(rows, runs, page.about), rows, strict=True))


def _by_epoch(of_run: dict[str, list[EvaluationRow]]) -> list[EvaluationRow]:
    """Of each run the answer nearest before the slider's epoch, else its first. The slider begins at the newest."""
    every = sorted({row.epoch for rows in of_run.values() for row in rows})
    epoch = every[0]
    if len(every) > 1:
        epoch = int(
            st.select_slider(
                "Epoch", every, every[-1], key=f"evaluation.epoch.{every[0]}.{every[-1]}", width=420
            )
        )
    return [
        max(
            (row for row in rows if row.epoch <= epoch),
            key=lambda row: row.epoch,
            default=min(rows, key=lambda row: row.epoch),
        )
        for rows in of_run.values()
    ]


def _by_name(
    page: DomainPage, of_run: dict[str, list[EvaluationRow]], runs: dict[str, RunRow]
) -> list[EvaluationRow]:
    known = {f"{row.run_id}.{row.key}": row for rows in of_run.values() for row in rows}
    picked = st.multiselect(
        "Answers",
        list(known),
        default=[f"{row.run_id}.{row.key}" for row in map(page.usual, of_run.values())],
        format_func=lambda key: label(known[key], runs[known[key].run_id], page.about(known[key])),
        max_selections=MOST_ANSWERS,
        placeholder="Pick answers to draw together",
        key=f"evaluation.answers.{'+'.join(of_run)}",
        help="Figures and films are those of the first one.",
    )
    if not picked:
        st.info("Pick an answer above: its numbers appear here.")
        st.stop()
    return [known[key] for key in picked]


def _tabs(runtime: Runtime, shown: Shown, rows: list[RunRow]) -> None:
    drawn: dict[str, Draw] = {"Summary": summary.draw}
    drawn |= {tab.title: tab.draw for tab in shown.page.tabs}
    drawn["Epochs"] = epochs.draw
    drawn["Speed and literature"] = shown.page.literature
    drawn["Measure again"] = lambda runtime, shown: shown.page.measure(runtime, rows, False)
    for tab, part in zip(
        st.tabs(list(drawn), key=VIEW, on_change="rerun", bind="query-params"), drawn.values(), strict=True
    ):
        if tab.open:
            with tab:
                part(runtime, shown)
