"""Rules for test code: no private names, no use of benchmarks, and a reason for each skip."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.sources import imported, nodes, packages, python_files, text

TESTS = python_files("tests")
OF_BENCHMARKS = ("tests/benchmarks", "tests/full/benchmarks")
PATCHES = {"setattr", "delattr", "getattr", "object", "patch"}
# Files without a match read no private names and are not parsed: x._y, import _y, a line of an
# import, "_y" and "x._y".
HINT = re.compile(
    r'(?<!self)(?<!cls)\._[a-z]|import [^\n]*\b_[a-z]|^ +_\w+,$|"(\w+\.)*_[a-z]', re.MULTILINE
)
PUBLIC = {"os._exit"}  # despite its name
# Files that read private names, each with the reason.
PRIVATE_READERS = {
    "tests/support/engines/small_engines.py": (
        "TensorFlow counts collective groups for a whole process, which a trainer has one of"
    ),
    "tests/support/own_time.py": (
        "subprocess waits for forgotten children at a moment of its own choice"
    ),
    "tests/pages/conftest.py": "waiting runs keep waiting: no trainer may outlive a test of a page",
    "tests/pages/test_host_view.py": (
        "a process draws its first page once, and other tests have drawn it"
    ),
    "tests/support/command_line.py": "Typer makes its command anew for each call",
    "tests/pages/whole_page.py": (
        "AppTest shows neither the whole tree of a page nor how a widget's value is sent"
    ),
}


def is_private(name: str) -> bool:
    """True for `_state` and "gan_runtime.records.home._place", but not for `__init__`."""
    return any(part.startswith("_") and not part.startswith("__") for part in name.split("."))


def private_names(nodes: tuple[ast.AST, ...]) -> Iterator[str]:
    """Private names of other objects: read as an attribute, imported, or patched by name."""
    for node in nodes:
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not is_own and ast.unparse(node) not in PUBLIC:
                yield ast.unparse(node)
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if is_private(alias.name))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in PATCHES:
            texts = (word.value for word in node.args[:2] if isinstance(word, ast.Constant))
            yield from (text for text in texts if isinstance(text, str) and is_private(text))


def test_private_names_of_other_objects_are_detected() -> None:
    code = """
from a import _b, c
self._mine = other._theirs + os._exit + cls._own + self._held._deep
monkeypatch.setattr(module, "_one", 1)
monkeypatch.setattr("package._two", 2)
monkeypatch.setitem(table, "_three", "__init__")
"""
    assert all(HINT.search(line) for line in code.splitlines() if line and "setitem" not in line)
    names = list(private_names(tuple(ast.walk(ast.parse(code)))))
    assert sorted(names) == ["_b", "_one", "other._theirs", "package._two", "self._held._deep"]


def test_only_listed_test_files_read_private_names() -> None:
    readers = {
        str(path): set(private_names(nodes(path))) for path in TESTS if HINT.search(text(path))
    }
    read = {path: sorted(names) for path, names in readers.items() if names}
    assert {path: names for path, names in read.items() if path not in PRIVATE_READERS} == {}
    assert sorted(PRIVATE_READERS.keys() - read.keys()) == [], (
        "they read none any more: strike them off"
    )


def test_only_benchmark_tests_import_benchmarks() -> None:
    users = {
        path
        for path in TESTS
        if "benchmarks" in text(path) and "benchmarks" in packages(imported(path))
    }
    assert users, "this rule looks in the wrong place"
    assert [str(path) for path in sorted(users) if not str(path).startswith(OF_BENCHMARKS)] == []


def test_every_skip_has_a_reason() -> None:
    calls = [
        (path, node)
        for path in TESTS
        if "skip" in text(path)
        for node in nodes(path)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("pytest.mark.skip", "pytest.mark.skipif", "pytest.skip")
    ]
    assert calls, "this rule looks in the wrong place"
    silent = [
        f"{path}:{node.lineno}"
        for path, node in calls
        if not {word.arg for word in node.keywords} & {"reason"}
    ]
    assert silent == []
