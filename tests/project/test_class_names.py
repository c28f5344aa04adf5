"""Class names are unique, so that a reader or a search finds one class."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable

from tests.support import sources

# How many classes still share a name. Only lower these numbers; an unlisted name has one class.
STILL: dict[str, int] = {}


def shared(trees: Iterable[ast.Module]) -> dict[str, int]:
    """The number of classes per shared name, including nested classes."""
    nodes = (node for tree in trees for node in ast.walk(tree))
    counts = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    return {name: count for name, count in counts.items() if count > 1}


def test_a_class_name_occurs_once_in_the_program() -> None:
    trees = [sources.tree(path) for path in sources.python_files("gan_runtime")]
    assert len(trees) > 150, "this rule looks in the wrong place"
    counts = shared(trees)
    more = {name: count for name, count in counts.items() if count > STILL.get(name, 1)}
    assert more == {}, "several classes have these names"
    fewer = {name: count for name, count in STILL.items() if counts.get(name, 1) < count}
    assert fewer == {}, "fewer classes have these names now: lower the table"


def test_a_shared_class_name_is_detected() -> None:
    texts = ("class Loss: ...\nclass Batch: ...", "def made():\n    class Loss: ...")
    assert shared(map(ast.parse, texts)) == {"Loss": 2}
