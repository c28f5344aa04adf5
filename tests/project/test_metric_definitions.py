"""Every declared number has a row with formula, range and source in docs/metrics.md or on the page
of its workload.
"""

from __future__ import annotations

import pytest

from gan_runtime import catalog
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import evaluations
from scripts.reference import definitions
from scripts.reference.definitions import Definition, of_metric, of_page

DEFINED = definitions.of_workloads()
UNITS = {"nats", "%", "rad", "dB", "U/D", "steps", "frames", "ms"}
CLASS_MEANS = ("score/real/cat", "score/fake/cat")

PAGE = """
## Numbers

| Name | Definition | Range | Source |
|---|---|---|---|
| `rate_<network>`, `share` | \\|x\\| | 0 to 1 | a paper |

## Scores

Each score is a number, `quality_<score>`.

| Score | Definition | Range; best | Source |
|---|---|---|---|
| `recall` | y | |
"""


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_every_number_of_a_workload_has_a_formula_a_range_and_a_source(workload: str) -> None:
    numbers = declarations.of(workload).table()
    rows = {name: of_metric(name, DEFINED[workload]) for name in numbers}

    assert len(rows) > 30
    assert [name for name, row in rows.items() if row is None] == []
    complete = {
        name: bool(row.formula and row.range and row.source) for name, row in rows.items() if row
    }
    assert [name for name, is_complete in complete.items() if not is_complete] == []


@pytest.mark.parametrize("workload", catalog.WORKLOADS)
def test_a_range_names_the_declared_unit(workload: str) -> None:
    numbers = declarations.of(workload).table()
    rows = {name: of_metric(name, DEFINED[workload]) for name in numbers}
    units = {
        name: (number.unit, rows[name]) for name, number in numbers.items() if number.unit in UNITS
    }

    assert units, "this rule looks in the wrong place"
    assert [name for name, (unit, row) in units.items() if row and unit not in row.range] == []


def test_every_score_of_an_evaluation_is_defined() -> None:
    rows = [row for of_workload in DEFINED.values() for row in of_workload]
    scores = [score.name for evaluation in evaluations().values() for score in evaluation.scores]

    assert len(scores) > 50
    assert [name for name in scores if of_metric(name, rows) is None] == []


def test_every_definition_is_of_a_declared_number_and_given_once_on_its_page() -> None:
    numbers = {
        name
        for workload in catalog.WORKLOADS
        for name in declarations.of(workload).table(CLASS_MEANS)
    }
    rows = {row for of_workload in DEFINED.values() for row in of_workload}
    places = [(row.address.partition("#")[0], row.name) for row in rows]

    assert [row.name for row in rows if not any(map(row.defines, numbers))] == []
    assert len(set(places)) == len(places)


def test_rows_with_several_names_networks_prefixes_and_missing_cells_are_read() -> None:
    rows = of_page(PAGE, "page.md")

    assert rows == [
        Definition("rate_<network>", "page.md#numbers", r"\|x\|", "0 to 1", "a paper"),
        Definition("share", "page.md#numbers", r"\|x\|", "0 to 1", "a paper"),
        Definition("quality_recall", "page.md#scores", "y", "", ""),
    ]
    assert of_metric("rate_critic", rows) == rows[0]
    assert of_metric("rate_", rows) is None
    assert of_metric("recall", rows) is None
