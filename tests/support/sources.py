"""The project's source files, for tests that read them: paths, syntax trees, imports and pinned
packages.

Each file is read and parsed once per session.
"""

from __future__ import annotations

import ast
import functools
import os
import re
from collections.abc import Iterable, Iterator, Set
from pathlib import Path

from gan_runtime.records.home import REPOSITORY as ROOT


def python_files(*places: str) -> list[Path]:
    """Every Python file of the project, or those under the given files and folders; hidden folders
    are excluded.
    """
    return [
        path
        for path in _files()
        if not places or any(path.is_relative_to(place) for place in places)
    ]


@functools.cache
def _files() -> tuple[Path, ...]:
    """All Python files, sorted.

    Hidden folders are skipped: .venv has twenty times as many files.
    """
    paths = []
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".")]
        paths += [Path(folder, name).relative_to(ROOT) for name in names if name.endswith(".py")]
    return tuple(sorted(path for path in paths if not path.name.startswith(".")))


@functools.cache
def text(path: Path) -> str:
    """The text of a file."""
    return (ROOT / path).read_text(encoding="utf-8")


@functools.cache
def tree(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(text(path))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of a file's syntax tree, in the order of `ast.walk`."""
    return tuple(ast.walk(tree(path)))


@functools.cache
def imported(path: Path) -> Set[str]:
    """Dotted names of the modules that a file imports anywhere, also in functions: {"keras",
    "gan_runtime.store.queries"}.
    """
    return frozenset(_imports(path, nodes(path)))


@functools.cache
def imported_on_loading(path: Path) -> Set[str]:
    """Like `imported`, but only what loading the file imports."""
    return frozenset(_imports(path, _outside_functions(tree(path))))


def packages(modules: Set[str]) -> set[str]:
    """The first part of each name: {"keras.layers"} gives {"keras"}."""
    return {module.partition(".")[0] for module in modules}


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from _outside_functions(child)


def _imports(path: Path, of_file: Iterable[ast.AST]) -> Iterator[str]:
    for node in of_file:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}: relative imports hide who depends on whom; write the full name"
            )
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@functools.cache
def file_of(module: str) -> Path | None:
    """The file of a module of the project; None for libraries and for names inside a module."""
    stem = Path(*module.split("."))
    return next(
        (
            path
            for path in (stem.with_suffix(".py"), stem / "__init__.py")
            if (ROOT / path).is_file()
        ),
        None,
    )


def loaded_with(paths: list[Path]) -> dict[str, str]:
    """Every package that loading `paths` imports through the project's modules, and the file that
    imports it.
    """
    files: dict[str, str] = {}
    waiting, visited = list(paths), set(paths)
    while waiting:
        path = waiting.pop()
        for module in imported_on_loading(path):
            files.setdefault(module.partition(".")[0], str(path))
            file = file_of(module)
            if file is not None and file not in visited:
                visited.add(file)
                waiting.append(file)
    return files


def pins(file: str) -> dict[str, str]:
    """Package and version of every line of a requirements file: {"keras": "3.15.1"}."""
    lines = text(Path(file)).splitlines()
    requirements = [line for line in lines if line and not line.startswith(("#", "-r"))]
    matches = [
        re.fullmatch(r"([a-z0-9-]+)(?:\[[a-z-]+\])?==([0-9.]+)(?:; .+)?", line)
        for line in requirements
    ]
    assert all(matches), f"{file}: every line must be name==version, but these are {requirements}"
    return {match[1]: match[2] for match in matches if match}
