"""The floors of docs/architecture.md: imports only go down. Reads the syntax trees of all modules.

Part of `make check`. Imports in functions and for types only (`if TYPE_CHECKING`) count too: a
package that needs another's types depends on it. Module names in tables (jobs/job.py, catalog/) are
not imports: that code runs in another process.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.support.sources import file_of, imported, python_files, text

PACKAGE = Path("gan_runtime")
# From the bottom up. A package can import packages of its own floor and of lower ones; no two
# packages import each other.
FLOORS: tuple[tuple[str, ...], ...] = (
    ("__init__", "base", "catalog", "spec", "records", "device_locks"),
    ("workloads", "data", "pictures", "targets"),
    ("engines", "hardware"),
    ("training", "worker"),
    ("supervision", "commands", "jobs", "store", "bundles", "studies", "evaluation", "tpu", "gpu"),
    ("domains",),
    ("cli", "__main__", "api"),
)
# Imports that still go up. Only remove entries.
STILL_UPWARD: set[tuple[str, str]] = set()
FLOOR = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}


def room(path: Path) -> str:
    """The folder or module directly below gan_runtime/ that a file belongs to:
    gan_runtime/store/queries/comparing.py gives store.
    """
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_within(place: Path) -> Iterator[tuple[Path, Path]]:
    """(importing file, imported file) for every import among the files below a folder."""
    for path in python_files(str(place)):
        files = map(file_of, imported(path))
        yield from (
            (path, file) for file in files if file is not None and file.is_relative_to(place)
        )


def first_circle(arrows: Iterable[tuple[str, str]]) -> list[str]:
    """The names of an import cycle, which ends with its first name; empty without a cycle."""
    graph: dict[str, set[str]] = {}
    for begin, end in arrows:
        if begin != end:
            graph.setdefault(begin, set()).add(end)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_every_package_has_one_floor() -> None:
    rooms = {room(path) for path in python_files(str(PACKAGE))}
    assert len(FLOOR) == sum(map(len, FLOORS)), "a room stands on two floors"
    assert rooms == set(FLOOR)


def test_imports_only_go_down_the_floors() -> None:
    arrows = list(imports_within(PACKAGE))
    assert len(arrows) > 500, "this rule looks in the wrong place"
    upwards = {
        f"{path} imports {file}"
        for path, file in arrows
        if FLOOR[room(path)] < FLOOR[room(file)]
        and (str(path.relative_to(PACKAGE)), room(file)) not in STILL_UPWARD
    }
    assert sorted(upwards) == []


def test_packages_have_no_circular_imports() -> None:
    arrows = {(room(path), room(file)) for path, file in imports_within(PACKAGE)}
    upward = {(path.partition("/")[0], end) for path, end in STILL_UPWARD}
    assert first_circle(arrows - upward) == []


WITH_FOLDERS = [
    *sorted({path.parent.parent for path in python_files(str(PACKAGE)) if len(path.parts) > 3}),
    Path("dashboard"),
]


@pytest.mark.parametrize("place", WITH_FOLDERS, ids=str)
def test_folders_of_a_package_have_no_circular_imports(place: Path) -> None:
    """For example engines/tf and engines/jax, or the folders of two pages; their shared code is
    next to them.
    """

    def folder(path: Path) -> str:
        below = path.relative_to(place).parts
        return below[0] if len(below) > 1 else ""

    arrows = ((folder(path), folder(file)) for path, file in imports_within(place))
    assert first_circle((begin, end) for begin, end in arrows if begin and end) == []


# These re-export names of a file below them.
RE_EXPORTS = {Path("gan_runtime/spec/__init__.py"), Path("gan_runtime/store/queries/__init__.py")}


def test_no_two_files_import_each_other() -> None:
    """Also not for types, and not in functions."""
    arrows = {arrow for place in (PACKAGE, Path("dashboard")) for arrow in imports_within(place)}
    pairs = {
        tuple(sorted(arrow)) for arrow in arrows if arrow[::-1] in arrows and len(set(arrow)) > 1
    }
    assert [pair for pair in sorted(pairs) if not RE_EXPORTS & set(pair)] == []


def test_a_circular_import_is_detected() -> None:
    assert first_circle([("a", "b"), ("b", "c"), ("c", "b")]) in (["b", "c", "b"], ["c", "b", "c"])
    assert first_circle([("a", "a"), ("a", "b"), ("c", "b")]) == []


def test_the_architecture_document_refers_to_the_floors_table() -> None:
    assert "tests/project/test_floors.py" in text(Path("docs/architecture.md"))
