"""Every chart answers "what am I looking at?" in two sentences. Page tests check each chart that
they draw (tests/pages/conftest.py); these tests check each chart that could be drawn.
"""

from __future__ import annotations

import ast

import pandas as pd
import pytest

from dashboard import chart_panels, charts, health_charts
from gan_runtime import catalog
from gan_runtime.base import metrics
from gan_runtime.catalog import declarations
from tests.support.explanations import check, sentences
from tests.support.sources import python_files, text

DRAWERS = {"layered", "finished", "properties", "_titled"}
HELPERS = {"dashboard/charts.py: layered", "dashboard/compare/charts.py: finished"}  # forward it


def name_of(call: ast.Call) -> str:
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def finished_charts() -> list[tuple[str, ast.Call]]:
    """Every call that sets a chart's title or height, with its location."""
    found = []
    for path in python_files("dashboard"):
        for function in ast.walk(ast.parse(text(path))):
            if not isinstance(function, ast.FunctionDef):
                continue
            for call in ast.walk(function):
                named = isinstance(call, ast.Call) and name_of(call) in DRAWERS
                if named and {"title", "height"} & {word.arg for word in call.keywords}:
                    found.append((f"{path}: {function.name}", call))
    return found


def test_every_chart_is_described() -> None:
    charts = finished_charts()
    assert len(charts) > 25, "this rule looks in the wrong place"
    silent = {
        place
        for place, call in charts
        if place not in HELPERS and not {"description", None} & {word.arg for word in call.keywords}
    }
    assert silent == set()


@pytest.mark.parametrize("workload", list(catalog.WORKLOADS))
def test_every_panel_of_every_workload_is_explained(workload: str) -> None:
    declaration = declarations.of(workload)
    table = [
        metric
        for metric in declaration.table().values()
        if metric.panel not in (metrics.NOT_DRAWN, metrics.FURTHER_NUMBERS)
    ]
    assert table
    for group in chart_panels.groups(declaration, table):
        assert group.panel.reading != metrics.UNDECLARED_MEANING, group.panel.name
        rows = pd.DataFrame()
        draw = health_charts.over_epochs if group.per_epoch else health_charts.over_steps
        for chart in (charts.step_curves(rows, group), draw(rows, group)):
            check({"title": group.panel.heading, "description": chart.description})


def test_an_undeclared_metric_is_explained() -> None:
    group = chart_panels.groups(declarations.of("mlp_gan"), [metrics.undeclared("cell_energy")])[0]
    description = health_charts.over_epochs(pd.DataFrame(), group).description
    check({"title": "Cell energy", "description": description})


@pytest.mark.parametrize(
    ("description", "count"),
    [("One. Two.", 2), ("Lines at 0.5 guess; v1.0 does not. Two?", 2), ("One", 1), ("", 0)],
)
def test_sentences_are_counted(description: str, count: int) -> None:
    assert len(sentences(description)) == count


def test_an_empty_short_or_long_description_fails() -> None:
    for description in ("", "Lines over steps.", "One. Two. Three.", "One. " + "word " * 30 + "."):
        with pytest.raises(AssertionError):
            check({"title": "Losses", "description": description})
