"""The page of an evaluation: the selection of answers, then tabs from the declaration and the
domain.

Only the open tab draws.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import plots, run_selection, widgets, words
from dashboard.evaluation import charts as evaluation_charts
from dashboard.evaluation import epochs, form, summary
from dashboard.evaluation.answers import (
    MOST_ANSWERS,
    DomainPage,
    DomainTab,
    Selection,
    label,
    names_of,
    stored_answers,
    stored_scores,
)
from dashboard.evaluation.answers import page_of as declared_page
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.evaluation import jobs
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow, RunRow

MOST_RUNS, COMPARE_WIDTH = 4, 560
TAB = "evaluation"  # on the page of a run
VIEW, WITH = "view", "with"  # in the address: the open tab; the runs to compare with
Draw = Callable[[Runtime, Selection], None]


def draw(runtime: Runtime, row: RunRow) -> None:
    """The evaluations of a run, as a tab of its page; `?with=a,b` compares it with others.

    A sentence if none applies.
    """
    applicable = of_run(runtime, row)
    if not applicable:
        st.info("No evaluation applies to this run's outputs.")
        return
    name = next(iter(applicable))
    if len(applicable) > 1:
        name = str(
            st.segmented_control(
                "Evaluation",
                list(applicable),
                default=name,
                format_func=lambda name: applicable[name].title,
                key=f"evaluation.name.{'+'.join(applicable)}",
                required=True,
                label_visibility="collapsed",
            )
        )
    evaluated = queries.evaluated_runs(runtime.store, name)
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    compared: list[RunRow] = []
    if row.run_id in evaluated:
        candidates = [other for other in queries.runs(runtime.store) if other.run_id in evaluated]
        with bar:
            compared = _compare_with(
                row,
                run_selection.visible_runs(
                    [other for other in candidates if other != row], _compared_ids()
                ),
            )
    evaluation(runtime, applicable[name], [row, *compared], bar)


def applies(runtime: Runtime, row: RunRow) -> bool:
    """Whether any evaluation of a run is stored or possible."""
    return bool(of_run(runtime, row))


def of_run(runtime: Runtime, row: RunRow) -> dict[str, Evaluation]:
    """By name: the evaluations with answers of a run, then those that are possible now or once the
    run has a checkpoint.
    """
    answered = {stored.evaluation for stored in queries.evaluations(runtime.store, [row.run_id])}
    run = RunDir(runtime.home.runs / row.run_id)
    possible = jobs.evaluations_of(runtime.home, run) if run.path.is_dir() else []
    names = {
        declaration.name
        for declaration, reason in possible
        if not reason or declaration.needs_checkpoint
    }
    ordered = sorted(
        evaluations().items(), key=lambda entry: (entry[0] not in answered, not entry[1].page)
    )
    return {name: declaration for name, declaration in ordered if name in answered | names}


def _compared_ids() -> list[str]:
    return [run_id for run_id in st.query_params.get(WITH, "").split(",") if run_id]


def _compare_with(row: RunRow, candidates: list[RunRow]) -> list[RunRow]:
    """The runs selected for comparison; a change goes into the address."""
    rows = {row.run_id: row for row in candidates}
    default = [run_id for run_id in dict.fromkeys(_compared_ids()) if run_id in rows][
        : MOST_RUNS - 1
    ]
    if not rows:
        return []
    run_ids = st.multiselect(
        "Compare with",
        list(rows),
        default=default,
        format_func=lambda run_id: widgets.title(rows[run_id]),
        max_selections=MOST_RUNS - 1,
        placeholder="Pick runs to compare with",
        key=f"evaluation.with.{row.run_id}",
        width=COMPARE_WIDTH,
    )
    if set(run_ids) != set(default):
        st.query_params[WITH] = ",".join(run_ids)
    return [rows[run_id] for run_id in run_ids]


def page_of(name: str) -> DomainPage:
    """What is added to the page of an evaluation; its curves if the domain has no tabs."""
    page = declared_page(evaluations()[name])
    return page if page.tabs else replace(page, tabs=(DomainTab("Curves", draw_curves),))


def evaluation(
    runtime: Runtime, declaration: Evaluation, rows: list[RunRow], bar: DeltaGenerator
) -> None:
    """The answers of these runs, of which figures show the first; the form if there are none.
    `bar`: the container of the widgets that select answers.
    """
    page, runs = page_of(declaration.name), {row.run_id: row for row in rows}
    stored = stored_answers(runtime.store, declaration.name, list(runs))
    if not stored:
        st.info(page.no_answer)
        form.measure(runtime, declaration, page, rows, is_first=True)
        return
    with bar:
        answers = _choose(page, stored, runs)
    scores = stored_scores(runtime.store, page, declaration.name, stored)
    _tabs(runtime, Selection(declaration, page, runs, answers, stored, scores))


def _choose(
    page: DomainPage, stored: list[EvaluationRow], runs: dict[str, RunRow]
) -> dict[str, EvaluationRow]:
    """Answers by name in charts, selected with a slider if the answers of a run differ only in the
    epoch, else from a list.
    """
    of_run = {run_id: [row for row in stored if row.run_id == run_id] for run_id in runs}
    of_run = {run_id: rows for run_id, rows in of_run.items() if rows}
    is_alike = all(
        len({tuple(page.about(row).items()) for row in rows}) == 1 for rows in of_run.values()
    )
    rows = _by_epoch(of_run) if is_alike else _by_name(page, of_run, runs)
    return dict(zip(names_of(rows, runs, page.about), rows, strict=True))


def _by_epoch(of_run: dict[str, list[EvaluationRow]]) -> list[EvaluationRow]:
    """The answer of each run nearest before the slider's epoch, else its first.

    The slider starts at the newest epoch.
    """
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
    rows_by_key = {f"{row.run_id}.{row.key}": row for rows in of_run.values() for row in rows}
    keys = st.multiselect(
        "Measurements",
        list(rows_by_key),
        default=[f"{row.run_id}.{row.key}" for rows in of_run.values() for row in page.usual(rows)][
            :MOST_ANSWERS
        ],
        format_func=lambda key: label(
            rows_by_key[key], runs[rows_by_key[key].run_id], page.about(rows_by_key[key])
        ),
        max_selections=MOST_ANSWERS,
        placeholder="Pick evaluations to compare",
        key=f"evaluation.answers.{'+'.join(of_run)}",
        help="Figures and films show the first evaluation.",
    )
    if not keys:
        st.info("Pick an evaluation above to see its numbers.")
        st.stop()
    return [rows_by_key[key] for key in keys]


def _tabs(runtime: Runtime, selection: Selection) -> None:
    tabs_by_title: dict[str, Draw] = {"Summary": summary.draw}
    tabs_by_title |= {tab.title: tab.draw for tab in selection.page.tabs}
    if selection.page.scores:
        tabs_by_title["Epochs"] = epochs.draw
    if selection.page.literature or selection.evaluation.published:
        tabs_by_title["Speed and literature"] = summary.draw_literature
    tabs_by_title["Measure again"] = _measure_again
    tabs = st.tabs(list(tabs_by_title), key=VIEW, on_change="rerun", bind="query-params")
    for tab, part in zip(tabs, tabs_by_title.values(), strict=True):
        if tab.open:
            with tab:
                part(runtime, selection)


def _measure_again(runtime: Runtime, selection: Selection) -> None:
    form.measure(
        runtime, selection.evaluation, selection.page, list(selection.runs.values()), is_first=False
    )


CURVES_ACROSS = 2


def draw_curves(runtime: Runtime, selection: Selection) -> None:
    """The curves of each answer."""
    count = 0
    for name, row in selection.answers.items():
        curves = queries.evaluation_curves(runtime.store, row)
        points = queries.curve_points(runtime.store, row, [curve.number for curve in curves])
        if curves:
            st.markdown(f"**{words.plain(name)}**")
        for begin in range(0, len(curves), CURVES_ACROSS):
            for column, curve in zip(
                st.columns(CURVES_ACROSS), curves[begin : begin + CURVES_ACROSS], strict=False
            ):
                rows = points[points["number"] == curve.number]
                is_map = "columns" in curve.facts and bool(rows["y"].notna().all())
                chart = evaluation_charts.heat_map if is_map else evaluation_charts.lines
                title = curve.name.replace("_", " ").capitalize()
                with column:
                    draw_one = partial(chart, title=title)
                    plots.steady_chart(
                        draw_one, rows, f"evaluation.curve.{row.run_id}.{row.key}.{curve.number}"
                    )
                count += 1
    if not count:
        st.info("These evaluations have no curves. See the tab Summary.")
