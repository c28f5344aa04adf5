"""A visit skips work to stay fast on any machine: Altair's default checks and repeated queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import altair as alt
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import plots
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.store import Store
from tests.support.measured_showers import measured

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
VISITS = {
    "overview": ("run", {"run": "quick-0001"}),
    "histograms": ("run", {"run": "quick-0001", "tab": "histograms"}),
    "results": ("compare", {"runs": "quick-0001,quick-0002"}),
    "curves": ("compare", {"runs": "quick-0001,quick-0002", "tab": "curves"}),
    "evaluation": (
        "run",
        {"run": "quick-0001", "tab": "evaluation", "with": "quick-0002", "view": "Distributions"},
    ),
}


def spied(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, note: Callable[..., None]
) -> None:
    """Passes the arguments of each call of a method to `note`."""
    method = getattr(owner, name)
    plain = getattr(method, "__func__", method)

    def called(*arguments: Any, **named: Any) -> Any:
        note(*arguments, **named)
        return plain(*arguments, **named)

    monkeypatch.setattr(owner, name, classmethod(called) if plain is not method else called)


def two_runs(trained: Make) -> None:
    """Creates two runs, evaluated after both epochs."""
    for number in (1, 2):
        measured(trained(f"quick-{number:04d}", seconds=10.0 * number), 1, 2)


@pytest.mark.parametrize(("page", "query"), VISITS.values(), ids=list(VISITS))
def test_pages_skip_chart_validation_and_text_conversion(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch, page: str, query: dict[str, str]
) -> None:
    two_runs(trained)
    calls: list[str] = []

    def checked(kind: type, *_: object, **__: object) -> None:
        if issubclass(kind, alt.TopLevelMixin):
            calls.append(f"{kind.__name__} compared with the schema")

    spied(monkeypatch, alt.SchemaBase, "validate", checked)
    spied(
        monkeypatch,
        alt.SchemaBase,
        "from_dict",
        lambda kind, *_, **__: calls.append(f"{kind.__name__} from words"),
    )
    spied(monkeypatch, pd.DataFrame, "to_string", lambda *_, **__: calls.append("a table as text"))
    monkeypatch.setattr(plots, "specification", plots.specification.__wrapped__)  # type: ignore[attr-defined]
    plots.cached_specification.cache_clear()
    app = show(page, **query)
    assert not app.exception
    assert len(app.get("vega_lite_chart")) > 1
    assert calls == []


def test_an_evaluation_repeats_no_database_query(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_runs(trained)
    questions: Counter[str] = Counter()

    def note(_: Store, sql: str, parameters: object = None) -> None:
        questions[f"{sql} {parameters}"] += 1

    app = show("run", **VISITS["evaluation"][1])  # ingests the runs, which runs queries too
    for name in ("rows", "frame"):
        spied(monkeypatch, Store, name, note)
    app.run()
    assert not app.exception
    of_evaluations = {
        question: times for question, times in questions.items() if "FROM evaluation_" in question
    }
    assert len(of_evaluations) == 5, (
        "scores, and of both runs which curves there are and the points of some"
    )
    assert {question: times for question, times in of_evaluations.items() if times > 1} == {}
