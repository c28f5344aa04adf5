"""Selected runs as one HTML file that needs no network: results, scores with intervals, curves
with zoom, samples, options that differ, and statistics of studies.

python -m dashboard.compare.report RUN…    writes the file to stdout, for the home GAN_RUNTIME_HOME

The file contains its data, images and scripts, among them Streamlit's copy of Vega. Its content
policy forbids requests, and every text of a user is escaped.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
import sys
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st
from streamlit import file_util

from dashboard import charts, plots, run_selection, tables
from dashboard.compare import charts as compare_charts
from dashboard.compare import grouping, tabs
from dashboard.compare import view as compare_view
from dashboard.compare.charts import CurveStyle
from dashboard.evaluation.answers import cautions, number, page_of
from dashboard.frame import front_page
from dashboard.samples import sample_images
from dashboard.studies import figures, measures
from dashboard.studies import words as study_words
from gan_runtime import __version__
from gan_runtime.base import formats
from gan_runtime.base.errors import ExportError
from gan_runtime.base.metrics import Better, Metric, of_score
from gan_runtime.catalog import evaluations
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from gan_runtime.store.queries import EvaluationRow, RunRow
from gan_runtime.store.store import Store

MOST_EPOCHS = 8  # with samples, per run
MOST_CURVES = 12  # charts of numbers
DIGITS = 6  # decimals of a value in a chart
AROUND = 80  # pixels of title, axis and its title
_PARTS = Path(__file__).parent
VEGA = ("embed", "vega-interpreter")  # Streamlit's names of its chart scripts
_IMPORT = re.compile(r"""(["'`])\./([\w.-]+)\.js\1""")
# The wheel zooms with Shift only, so that it scrolls the report.
ZOOM = {
    "name": charts.ZOOM,
    "bind": "scales",
    "select": {"type": "interval", "encodings": ["x"], "zoom": "wheel![event.shiftKey]"},
}

ARROWS: dict[Better, str] = {"lower": " ↓", "higher": " ↑", "": ""}
SCORES = (
    "In brackets: the 95% interval. After ±: one standard deviation. Real: real rows scored against"
    " other real rows. Noise: noise scored against real rows."
)
ZOOMING = (
    "Drag to pan. Hold Shift and scroll to zoom. Double-click to show everything. Click a curve to"
    " highlight its run."
)
Section = tuple[str, str]  # title and HTML


def report(store: Store, rows: Sequence[RunRow]) -> str:
    """The HTML file about these runs, in their order.

    Raises ExportError if Streamlit's files are not those of the pinned version.
    """
    runs = list(rows)
    drawings: list[dict[str, Any]] = []
    sections = [section for make in SECTIONS for section in make(store, runs, drawings)]
    words = {
        "TITLE": html.escape(_title(runs)),
        "MADE": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, gan-dashboard {__version__}",
        "LEGEND": _legend(runs),
        "SECTIONS": "\n".join(
            f"<section><h2>{title}</h2>{body}</section>" for title, body in sections
        ),
        "STYLE": (_PARTS / "report.css").read_text(encoding="utf-8"),
        "IMPORTS": json.dumps({"imports": vega()}),
        "CHARTS": _json(drawings),
        "SCRIPT": (_PARTS / "report.js").read_text(encoding="utf-8"),
    }
    template = (_PARTS / "report.html").read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda word: words[word[1]], template)


def _title(rows: list[RunRow]) -> str:
    return rows[0].name if len(rows) == 1 else f"{len(rows)} runs"


def _legend(rows: list[RunRow]) -> str:
    colors, names = run_selection.colors(rows), run_selection.unique_names(rows)
    return "".join(
        f"<li><i style='background:{colors[row.run_id]}'></i>"
        f"<b>{html.escape(names[row.run_id])}</b>"
        f" {html.escape(f'{row.status} · {run_selection.settings(row)}')}</li>"
        for row in rows
    )


# ---- sections ------------------------------------------------------------------------------------


def _numbers(store: Store, rows: list[RunRow], _: list[dict[str, Any]]) -> Iterator[Section]:
    yield "Final numbers", _table(tabs.number_table(store, rows))


def _scores(store: Store, rows: list[RunRow], _: list[dict[str, Any]]) -> Iterator[Section]:
    """A table for each evaluation, with the newest scores of each run."""
    run_ids, names = [row.run_id for row in rows], run_selection.unique_names(rows)
    answers = queries.evaluations(store, run_ids)
    for name in dict.fromkeys(answer.evaluation for answer in answers):
        declaration = evaluations.evaluations().get(name)
        histories = {run_id: queries.score_history(store, run_id, name) for run_id in run_ids}
        newest = {
            names[run_id]: history[history["epoch"] == history["epoch"].max()]
            for run_id, history in histories.items()
            if len(history)
        }
        if declaration is not None and newest:
            table = _table(_score_table(declaration, newest))
            shown = [
                answer
                for answer in answers
                if answer.evaluation == name
                and answer.epoch == histories[answer.run_id]["epoch"].max()
            ]
            subjects = _subjects(names, shown, page_of(declaration).definition)
            note = f"{SCORES} {subjects} {cautions(shown)}"
            yield declaration.title, table + _note(note.strip())


def _subjects(
    names: Mapping[str, str],
    shown: list[EvaluationRow],
    definition: Callable[[Mapping[str, Any]], str],
) -> str:
    """A sentence for each of these answers: its run and epoch, and what its scores depend on."""
    sentences = []
    for answer in shown:
        samples = f" ({answer.facts['samples']} images)" if "samples" in answer.facts else ""
        sentence = f"{names[answer.run_id]} after epoch {answer.epoch}{samples}"
        sentences.append(". ".join(filter(None, (sentence, definition(answer.facts)))) + ".")
    return " ".join(sentences)


def _score_table(declaration: Evaluation, scores: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each score in declared order, a column for each run.

    `scores`: run → rows of `queries.score_history`.
    """
    columns = {
        run: {
            metric.name: _score(metric, row)
            for row in frame.to_dict("records")
            if (metric := of_score(declaration.scores, str(row["score"])))
        }
        for run, frame in scores.items()
    }
    present = [
        metric
        for metric in declaration.scores
        if any(metric.name in of_run for of_run in columns.values())
    ]
    titles = [f"{metric.title}{ARROWS[metric.better]}" for metric in present]
    cells = {
        run: [of_run.get(metric.name, "–") for metric in present] for run, of_run in columns.items()
    }
    return tables.of_runs({"Score": titles}, cells)


def _score(metric: Metric, row: Mapping[Hashable, Any]) -> str:
    """0.052 (0.047 to 0.058) · real 0.001 · noise 0.9."""

    def text(name: str, error: float = math.nan) -> str:
        return number(metric, row[name], error)

    if pd.isna(row["value"]):
        return "–"
    has_interval = pd.notna(row["low"]) and pd.notna(row["high"])
    value = (
        f"{text('value')} ({text('low')} to {text('high')})"
        if has_interval
        else text("value", row["error"])
    )
    ends = {"real": "floor", "noise": "ceiling"}
    references = [f"{word} {text(name)}" for word, name in ends.items() if pd.notna(row[name])]
    return " · ".join([value, *references])


def _curves(store: Store, rows: list[RunRow], drawings: list[dict[str, Any]]) -> Iterator[Section]:
    """The losses, then rated numbers, then all others."""
    numbers = list(compare_view.numbers(store, rows).values())
    numbers.sort(key=lambda metric: (metric.role != "loss", not metric.better))
    x, lines = compare_view.usual_axis(rows), grouping.each_run(rows)
    names = {line.run_ids[0]: line.name for line in lines}
    colors = {line.name: line.color for line in lines}
    points = queries.points_each(len(lines))
    figures_of_curves: list[str] = []
    left_out = 0
    for metric in numbers:
        frame = queries.curves(store, list(names), (metric.name,), x, points)
        frame = frame.assign(run=frame["run_id"].map(names)).drop(columns=["run_id", "metric"])
        frame = compare_charts.drawable(frame, metric, "auto")
        if len(figures_of_curves) == MOST_CURVES:
            left_out += bool(len(frame))
        elif len(frame):
            drawing = compare_charts.run_curves(frame, colors, x, metric, CurveStyle())
            figures_of_curves.append(_figure(drawing, drawings))
    if figures_of_curves:
        more = formats.quantity(left_out, "more recorded number")
        note = f"{ZOOMING} Not drawn: {more}." if left_out else ZOOMING
        yield "Curves", _note(note) + f"<div class='charts'>{''.join(figures_of_curves)}</div>"


def _samples(store: Store, rows: list[RunRow], _: list[dict[str, Any]]) -> Iterator[Section]:
    """Images of some epochs of each run, always with the last; a slider picks the epoch."""
    run_ids, names = [row.run_id for row in rows], run_selection.unique_names(rows)
    stored = queries.sample_epochs(store, run_ids)
    places = range(min(MOST_EPOCHS, len(stored)))
    epochs = [stored[(len(stored) - 1) * place // max(1, len(places) - 1)] for place in places]
    images = {
        run_id: {
            grid.epoch: grid.png
            for epoch in epochs
            if (grid := queries.sample(store, run_id, epoch)) and sample_images.is_image(grid.png)
        }
        for run_id in run_ids
    }
    if not any(images.values()):
        return
    slider = (
        f"<label>Epoch <output>{epochs[-1]}</output><input type='range' max='{len(epochs) - 1}'"
        f" value='{len(epochs) - 1}' data-epochs='{json.dumps(epochs)}'></label>"
    )
    runs = "".join(
        f"<figure><figcaption>{html.escape(names[run_id])}</figcaption>{_images(of_run)}</figure>"
        for run_id, of_run in images.items()
        if of_run
    )
    yield "Samples", f"{slider}<div class='samples'>{runs}</div>"


def _images(of_run: dict[int, bytes]) -> str:
    last = max(of_run)
    return "".join(
        f"<img data-epoch='{epoch}' alt='Generated images after epoch {epoch}'"
        f"{'' if epoch == last else ' hidden'} src='{_data_url('image/png', png)}'>"
        for epoch, png in of_run.items()
    )


def _differences(_: Store, rows: list[RunRow], __: list[dict[str, Any]]) -> Iterator[Section]:
    if len(rows) > 1:
        table = tabs.difference_table(rows)
        yield (
            "Options that differ",
            (_note("These runs have the same options.") if table.empty else _table(table)),
        )


def _studies(store: Store, rows: list[RunRow], drawings: list[dict[str, Any]]) -> Iterator[Section]:
    """The statistics of each study with two or more of the runs, over these runs only."""
    titles = {study.study_id: study.title for study in queries.studies(store)}
    for study_id in dict.fromkeys(row.study_id for row in rows if row.study_id):
        members = [row.run_id for row in rows if row.study_id == study_id]
        results = queries.study_results(store, study_id)
        results = results[results["run_id"].isin(members)].reset_index(drop=True)
        if len(results) < 2:
            continue
        measure_names = [measures.TIME, *measures.outcomes(results)[:1]]
        charts_html = "".join(
            _figure(
                figures.variant_points(
                    tables.harmless(study_words.points(results, name)),
                    measures.measure_of(name, results).unit,
                    measures.measure_of(name, results).title,
                    measures.measure_of(name, results).mean_word,
                ),
                drawings,
            )
            for name in measure_names
            if results[name].notna().any()
        )
        yield (
            f"Study: {html.escape(titles.get(study_id, study_id))}",
            _table(study_words.table(results))
            + f"<div class='charts'>{charts_html}</div>"
            + _note(f"{formats.quantity(len(results), 'run')}. {study_words.levels(results)}"),
        )


SECTIONS: tuple[Callable[[Store, list[RunRow], list[dict[str, Any]]], Iterator[Section]], ...] = (
    *(_numbers, _scores, _curves, _samples, _differences, _studies),
)


# ---- parts ---------------------------------------------------------------------------------------


def _note(text: str) -> str:
    return f"<p class='note'>{html.escape(text)}</p>"


def _table(frame: pd.DataFrame) -> str:
    """An HTML table; texts are escaped and cannot become formulas in a spreadsheet."""
    harmless = tables.harmless(frame)
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in harmless)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in harmless.itertuples(index=False)
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div class='table'>{table}</div>"


def _figure(drawing: alt.LayerChart, drawings: list[dict[str, Any]]) -> str:
    """A chart's place with its explanation; specification and rows are appended to `drawings`."""
    spec, frames = plots.split_tables(drawing)
    spec["layer"] = [
        layer for layer in spec["layer"] if layer.get("data", {}).get("name") != charts.GROUND
    ]
    spec["params"] = [
        {**param, **ZOOM} if param["name"] == charts.ZOOM else param
        for param in spec.get("params", ())
        if param["name"] != charts.WHOLE
    ]
    spec["datasets"] = {
        name: json.loads(frame.to_json(orient="records", double_precision=DIGITS))
        for name, frame in frames.items()
    }
    drawings.append({**spec, "width": "container", "usermeta": {}})
    place = f"<div class='chart' style='height:{spec['height'] + AROUND}px'></div>"
    return f"<figure>{place}{_note(spec['description'])}</figure>"


def _json(value: Any) -> str:
    """JSON for a script element, which the text "</script>" would end."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def _data_url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


@cache
def vega() -> dict[str, str]:
    """Name of a script module → its content as a data URL."""
    static = Path(file_util.get_static_dir())
    paths = [static / file for file in front_page.files(static, VEGA)]
    if not paths:
        raise ExportError(
            "the report needs the chart scripts of the pinned Streamlit version, and another"
            " version is installed: run `make setup`."
        )
    modules = {path.name.removesuffix(".js"): path.read_text(encoding="utf-8") for path in paths}
    urls = {
        name: _data_url("text/javascript", _IMPORT.sub(r"\1\2\1", text).encode())
        for name, text in modules.items()
    }
    return {
        **urls,
        **{name: urls[whole] for whole in urls for name in VEGA if whole.startswith(f"{name}.")},
    }


def button(store: Store, rows: list[RunRow]) -> None:
    """A button that builds and downloads the report about these runs."""
    st.download_button(
        "Download report",
        data=lambda: report(store, rows).encode(),
        file_name=f"report-{'-'.join(row.run_id for row in rows)[:80]}.html",
        mime="text/html",
        on_click="ignore",
        key="compare.report",
        type="tertiary",
        icon=":material/lab_profile:",
        help="These runs as one HTML file that opens without a network.",
    )


def main(run_ids: list[str]) -> None:
    """Writes the report about these runs of the home to stdout."""
    home = Home.choose()
    store = ingest.store_of(home, [home.run_dir(run_id) for run_id in run_ids])
    rows = [queries.run(store, run_id) for run_id in run_ids]
    sys.stdout.buffer.write(report(store, rows).encode())


if __name__ == "__main__":
    main(sys.argv[1:])
