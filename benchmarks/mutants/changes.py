"""Small changes of a source file: where cosmic-ray finds some, where neighbours can change places, and a draw of them.

A change is kept as text (the lines before and after), so that it can be made again after the file has moved on.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TYPES = ("dict[", "list[", "tuple[", "Callable[")
Position = tuple[int, int]  # line from 1, column from 0


@dataclass(frozen=True)
class Change:
    """`path`: from the top of the repository. `line`: of the first changed one, from 1. `kind`: the operator's name."""

    path: str
    line: int
    before: str
    after: str
    kind: str

    def made(self, source: str) -> str | None:
        """The source with the change; None when the lines before it are not there (any more). Nearest to `line` if several."""
        lines, wanted = source.split("\n"), self.before.split("\n")
        starts = [start for start in range(len(lines)) if lines[start : start + len(wanted)] == wanted]
        if not starts:
            return None
        start = min(starts, key=lambda candidate: abs(candidate - self.line + 1))
        return "\n".join([*lines[:start], *self.after.split("\n"), *lines[start + len(wanted) :]])


@dataclass(frozen=True)
class Edit:
    """One way to change a place of a file: what comes instead of the text from `begin` to `end`, or an operator of cosmic-ray."""

    begin: Position
    kind: str
    occurrence: int
    swap: tuple[tuple[Position, Position], tuple[Position, Position]] | None = None


def drawn(root: Path, paths: list[str], count: int, seed: int) -> list[Change]:
    """`count` changes, each at another place of the files: every place is as likely, then every way to change it."""
    places = [(path, edits) for path in paths for edits in _places((root / path).read_text(encoding="utf-8"))]
    draw = random.Random(seed)
    draw.shuffle(places)
    changes = (_change(root, path, draw.choice(edits)) for path, edits in places)
    return list(itertools.islice((change for change in changes if change is not None), count))


def places_in(source: str) -> int:
    """At how many places a file can be changed."""
    return len(_places(source))


def _change(root: Path, path: str, edit: Edit) -> Change | None:
    """None when the outcome is no other program."""
    source = (root / path).read_text(encoding="utf-8")
    changed = _swapped(source, *edit.swap) if edit.swap else _by_cosmic_ray(source, edit)
    try:
        if changed is None or ast.dump(ast.parse(changed)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    return difference(path, source, changed, edit.kind)


def difference(path: str, source: str, changed: str, kind: str) -> Change:
    """The lines that differ, as one block."""
    old, new = source.split("\n"), changed.split("\n")
    blocks = [
        code
        for code in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if code[0] != "equal"
    ]
    first, last = blocks[0], blocks[-1]
    return Change(
        path, first[1] + 1, "\n".join(old[first[1] : last[2]]), "\n".join(new[first[3] : last[4]]), kind
    )


# ---- places -------------------------------------------------------------------------------------------------------


def _places(source: str) -> list[list[Edit]]:
    """The edits of each place, in the order of the file; annotations and names of types, which decide nothing, are left alone."""
    annotations = [_span(node, source) for node in _annotations(ast.parse(source))]
    edits = [
        edit
        for edit in (*_edits_of_cosmic_ray(source), *_swaps(source))
        if not _is_within(edit.begin, annotations)
    ]
    edits.sort(key=lambda edit: (edit.begin, edit.kind, edit.occurrence))
    return [list(group) for _, group in itertools.groupby(edits, key=lambda edit: edit.begin)]


def _edits_of_cosmic_ray(source: str) -> Iterator[Edit]:
    from benchmarks.mutants import operators  # wants cosmic-ray, which only `make mutants` installs

    for name, occurrence, begin in operators.positions(source):
        yield Edit(begin, name, occurrence)


def _by_cosmic_ray(source: str, edit: Edit) -> str | None:
    from benchmarks.mutants import operators

    return operators.changed(source, edit.kind, edit.occurrence)


def _swaps(source: str) -> Iterator[Edit]:
    """Neighbours in a tuple, a list or among the values of a dictionary. Not of a call: Python refuses most of these itself."""
    for node in ast.walk(ast.parse(source)):
        for first, second in itertools.pairwise(_row(node)):
            if not isinstance(first, ast.Starred) and not isinstance(second, ast.Starred):
                one, other = _span(first, source), _span(second, source)
                yield Edit(one[0], "SwapNeighbours", 0, (one, other))


def _row(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        return node.elts
    return node.values if isinstance(node, ast.Dict) else []


def _swapped(source: str, one: tuple[Position, Position], other: tuple[Position, Position]) -> str:
    begins = list(itertools.accumulate((len(line) + 1 for line in source.split("\n")), initial=0))
    (a, b), (c, d) = (tuple(begins[line - 1] + column for line, column in span) for span in (one, other))
    return source[:a] + source[c:d] + source[b:c] + source[a:b] + source[d:]


def _annotations(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            yield node.annotation
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            yield node.returns
        elif isinstance(node, ast.Assign) and ast.unparse(node.value).startswith(TYPES):
            yield node.value


def _span(node: ast.expr, source: str) -> tuple[Position, Position]:
    """Columns in characters, where `ast` counts bytes."""
    lines = source.split("\n")

    def place(line: int, column: int) -> Position:
        return line, len(lines[line - 1].encode()[:column].decode())

    return place(node.lineno, node.col_offset), place(node.end_lineno or 0, node.end_col_offset or 0)


def _is_within(position: Position, spans: list[tuple[Position, Position]]) -> bool:
    return any(begin <= position < end for begin, end in spans)
