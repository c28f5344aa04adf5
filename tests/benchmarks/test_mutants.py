"""Mutation tests: which mutants are drawn, which tests run for them, and what the page counts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.mutants import draw, page, trial
from gan_runtime.records.home import REPOSITORY


def work_item(path: str, line: int, operator: str) -> Any:
    change = SimpleNamespace(
        module_path=Path(path), start_pos=(line, 4), operator_name=operator, occurrence=0
    )
    return SimpleNamespace(mutations=(change,))


def selection(items: list[Any], seed: int) -> list[tuple[str, int, str]]:
    ways = [place[0].mutations[0] for place in draw.by_location(items, seed)]
    return [(str(way.module_path), way.start_pos[0], way.operator_name) for way in ways]


def test_a_seed_draws_one_mutant_per_location_in_a_stable_order() -> None:
    items = [
        work_item("a.py", line, operator)
        for line in range(9)
        for operator in ("Add", "Not", "Number")
    ]
    first = selection(items, seed=1)
    assert sorted(line for _, line, _ in first) == list(range(9))
    assert len({operator for _, _, operator in first}) > 1
    assert selection(items[::-1], seed=1) == first
    assert selection(items, seed=2) != first
    work_items = [work_item("b.py", line, "Add") for line in range(9)]
    assert [
        change for change in selection(work_items + items, seed=1) if change[0] == "a.py"
    ] == first


def test_invalid_or_equivalent_source_is_not_a_mutant() -> None:
    assert draw.is_different_program("a = b * 2", "a = b / 2")
    assert not draw.is_different_program("a = b * 2", "a = b *  2")
    assert not draw.is_different_program("def f(a, *, b): ...", "def f(a, +, b): ...")


def test_mutated_files_and_their_tests_exist() -> None:
    config = tomllib.loads(trial.CONFIG.read_text(encoding="utf-8"))
    modules = config["cosmic-ray"]["module-path"]
    assert [path for path in modules if not (REPOSITORY / path).exists()] == []
    assert sorted(modules) == sorted(trial.PACKAGE + path for path in config["tests"])
    named = {test for tests in config["tests"].values() for test in tests}
    existing = set(trial.tests_about([], REPOSITORY))
    assert [test for test in named if not {trial.QUICK + test, trial.FULL + test} & existing] == []


def test_quick_tests_run_first_and_the_first_failure_is_stored(
    tmp_path: Path,
) -> None:
    slow, quick = (suite + "workloads/test_layers.py" for suite in (trial.FULL, trial.QUICK))
    for file in (slow, quick):
        (tmp_path / file).parent.mkdir(parents=True)
        (tmp_path / file).touch()
    files = trial.tests_about(["gan_runtime/workloads/layers.py"], tmp_path)
    assert files == [quick, slow]
    failure = trial.FirstFailure(files)
    items: list[Any] = [SimpleNamespace(nodeid=f"{file}::test_a") for file in files[::-1]]
    failure.pytest_collection_modifyitems(items)
    assert [test.nodeid for test in items] == [f"{file}::test_a" for file in files]
    for number, failed in enumerate((False, True, True)):
        failure.pytest_runtest_logreport(SimpleNamespace(failed=failed, nodeid=f"test {number}"))
    assert failure.test == "test 1"


DIFF = """--- mutation diff ---
--- a/gan_runtime/workloads/pair.py
+++ b/gan_runtime/workloads/pair.py
@@ -1,3 +1,3 @@
 first
-    a | b
+    a & b
 last"""


def outcome(test_outcome: str, output: str) -> dict[str, Any]:
    change = SimpleNamespace(
        module_path=Path("gan_runtime/workloads/pair.py"), start_pos=(2, 4), operator_name="core/X"
    )
    return page.outcome(
        change, SimpleNamespace(diff=DIFF, test_outcome=test_outcome, output=output)
    )


def test_the_page_counts_detections_by_suite_and_lists_survivors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mutants = [
        outcome("killed", "F\nnoticed by tests/workloads/test_pair.py::test_a\n"),
        outcome("killed", "F\nnoticed by tests/full/workloads/test_pair.py::test_b\n"),
        outcome("killed", "timeout"),
        outcome("survived", "2 passed\nnoticed by \n"),
    ]
    assert [mutant["by"].rpartition(":")[2] for mutant in mutants] == [
        "test_a",
        "test_b",
        "no end",
        "survived",
    ]
    assert page.counts(mutants) == [4, 3, 1]
    meaning = {"workloads/pair.py: a & b": "nobody looks"}
    monkeypatch.setattr(page, "table", {"meanings": meaning}.__getitem__)
    run = {
        "kind": "run",
        "date": "noon",
        "commit": "abc",
        "command": "make",
        "minutes": 3,
        "machine": "cores",
    }
    text = page.text([*mutants, {**run, "drawn": 5, "counts": page.counts(mutants)}])
    assert "| noon, commit abc: make | 4 of 5 | 3 (75%) | 1 (25%) | cores, 3 min |" in text
    assert "Every mutant was noticed in 0 of 1 files." in text
    assert "| workloads/pair.py:2 | `a \\| b` → `a & b` | nobody looks |" in text


def test_the_committed_page_matches_the_stored_outcomes() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(page.stored())
