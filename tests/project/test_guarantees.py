"""docs/guarantees.md: every promise names a test that exists, or a kind of fault scenario."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support import sources

PAGE = sources.text(Path("docs/guarantees.md"))
PROMISES = [
    " ".join(entry.split()) for entry in re.split(r"\n- ", PAGE.partition("## Not promised")[0])[1:]
]
FAULTS = set(re.findall(r"`faults: (\w+)`", PAGE))
TESTS = sorted(set(re.findall(r"`(tests/[a-z_/]+\.py)::(test_\w+)`", PAGE)))


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise[:60])
def test_every_promise_names_a_test_or_fault_scenario(promise: str) -> None:
    assert re.search(r"::test_|`faults: ", promise), promise


@pytest.mark.parametrize(("path", "name"), TESTS)
def test_every_named_test_exists(path: str, name: str) -> None:
    assert name in {
        node.name for node in sources.tree(Path(path)).body if isinstance(node, ast.FunctionDef)
    }


def test_every_named_fault_exists() -> None:
    listed = re.findall(r"[a-z_]+\.([a-z_]+)[,)]", sources.text(Path("benchmarks/faults/kinds.py")))
    assert not FAULTS - set(listed)


def test_the_page_has_promises_and_tests() -> None:
    assert len(FAULTS) > 20
    assert len(PROMISES) > 20
    assert len(TESTS) > 20
