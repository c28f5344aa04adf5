"""Mutation tests: how a change is made, what is left alone, how outcomes are counted; and that named changes still have a place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.mutants import changes, equivalents, page, subjects
from benchmarks.mutants.changes import Change
from benchmarks.mutants.named import NAMED, Named
from benchmarks.mutants.trial import Outcome
from gan_runtime.home import REPOSITORY

SOURCE = """def f(x: tuple[int, str]):
    first, second = x
    return {"a": first, "b": second}, [*x, "é", 2]
    return first
"""


def test_neighbours_change_places_and_annotations_are_left_alone() -> None:
    swapped = [changes._swapped(SOURCE, *edit.swap) for edit in changes._swaps(SOURCE) if edit.swap]
    lines = [text.split("\n")[2].strip() for text in swapped if text.split("\n")[2] != SOURCE.split("\n")[2]]
    assert sorted(lines) == [
        'return [*x, "é", 2], {"a": first, "b": second}',
        'return {"a": first, "b": second}, [*x, 2, "é"]',
        'return {"a": second, "b": first}, [*x, "é", 2]',
    ]
    annotations = [changes._span(node, SOURCE) for node in changes._annotations(changes.ast.parse(SOURCE))]
    assert annotations == [((1, 9), (1, 24))]
    assert [changes._is_within(place, annotations) for place in ((1, 8), (1, 9), (1, 23), (1, 24))] == [
        False,
        True,
        True,
        False,
    ]


def test_a_change_is_made_where_its_lines_stand_nearest_and_nowhere_else() -> None:
    source = "a = 1\nb = 2\na = 1\n"
    assert Change("f.py", 3, "a = 1", "a = 2", "").made(source) == "a = 1\nb = 2\na = 2\n"
    assert Change("f.py", 1, "a = 1", "a = 2", "").made(source) == "a = 2\nb = 2\na = 1\n"
    assert Change("f.py", 1, "a = 1\nb = 2", "c", "").made(source) == "c\na = 1\n"
    assert Change("f.py", 1, "a = 3", "a = 2", "").made(source) is None
    found = changes.difference("f.py", source, "a = 1\nb = 3\nc = 4\na = 1\n", "kind")
    assert found == Change("f.py", 2, "b = 2", "b = 3\nc = 4", "kind")
    assert found.made(source) == "a = 1\nb = 3\nc = 4\na = 1\n"


@pytest.mark.parametrize("named", NAMED, ids=lambda one: one.name)
def test_every_named_change_still_has_its_place_and_its_test(named: Named) -> None:
    source = (REPOSITORY / "gan_runtime" / named.path).read_text(encoding="utf-8")
    assert source.count(named.before) == 1
    changed = named.change(source).made(source)
    assert changed is not None
    assert changed.replace(named.after, named.before) == source
    assert [test for test in named.tests if not stands(f"tests/{test}")] == []


def test_every_file_that_is_changed_has_tests_that_exist() -> None:
    assert [path for path in subjects.TESTS if not (REPOSITORY / "gan_runtime" / path).exists()] == []
    assert {
        test
        for path in subjects.TESTS
        for test in subjects.tests_of(f"gan_runtime/{path}")
        if not stands(test)
    } == set()


def stands(node: str) -> bool:
    path, _, function = node.partition("::")
    return f"def {function.partition('[')[0]}" in (REPOSITORY / path).read_text(encoding="utf-8")


def record(outcome: str, **values: Any) -> dict[str, Any]:
    place = {
        "path": "gan_runtime/workloads/pair.py",
        "line": 3,
        "before": "a | b",
        "after": "b | a",
        "operator": "SwapNeighbours",
    }
    return {
        "kind": "mutant",
        **place,
        "outcome": outcome,
        "killed_by": "",
        "seconds": 1.0,
        "name": "",
        "words": "",
        **values,
    }


def test_the_page_counts_what_was_noticed_and_says_what_was_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalents, "REASONS", {("workloads/pair.py", "a + 0"): "adds nothing"})
    records = [
        *[record("killed")] * 4,
        record("killed", words=page.AT_FIRST),
        record("no end"),
        record("survived", words="nobody looks"),
        record("survived", after="    a + 0"),
        record("killed", name="signs are swapped", killed_by="workloads/test_networks.py::test_signs"),
    ]
    text = page.text(records)
    assert "**6 of 7 killed (86%; target 85%).** 8 were tried, of which 1 are equivalent" in text
    assert (
        "so 75% of all; 1 of the killed survived at first, until a test was written; 1 of the killed without a test that"
        in text
    )
    assert "| workloads/pair.py | 8 | 6 | 1 | 1 |" in text
    assert "| workloads/pair.py:3 | `a \\| b` → `b \\| a` | nobody looks |" in text
    assert "| workloads/pair.py:3 | `a \\| b` → `a + 0` | adds nothing |" in text
    assert "| signs are swapped | killed | test_signs |" in text


def test_the_page_in_the_repository_is_made_from_the_stored_outcomes() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(page.stored(Path(page.RESULTS)))


def test_an_outcome_is_kept_with_all_that_makes_the_change_again() -> None:
    change = Change("f.py", 3, "a = 1", "a = 2", "NumberReplacer")
    kept = Outcome(change, "killed", "test_f.py::test_a", 1.5).record()
    assert kept["kind"] == "mutant"
    assert Change(kept["path"], kept["line"], kept["before"], kept["after"], kept["operator"]) == change
    assert (kept["outcome"], kept["killed_by"], kept["name"]) == ("killed", "test_f.py::test_a", "")
