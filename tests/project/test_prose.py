"""Rule 10 of docs/architecture.md: no decision reads prose.

Checked in the syntax trees, and in the SQL in them.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from gan_runtime.records.home import REPOSITORY
from tests.support.sources import nodes, python_files, tree

FILES = python_files("gan_runtime", "dashboard", "pages", "app.py", "benchmarks/faults")
PROSE = re.compile(r"[A-Za-z]{2,}[,;:.]? [A-Za-z]{2,}")
SEARCHES = {
    "startswith",
    "endswith",
    "contains",
    "count",
    "find",
    "index",
    "match",
    "fullmatch",
    "search",
    "compile",
}
FOR_PEOPLE = {"reason", "note", "message", "sentence"}  # attributes and columns that contain prose
GROUP = "the name of a group of options"
# Texts of libraries and the operating system without a code: file → start of the text → source.
EXTERNAL = {
    "gan_runtime/base/disk.py": {"(os error ": "object stores written in Rust, on a full disk"},
    "gan_runtime/data/image_files.py": {"system volume information": "a folder of Windows"},
    "gan_runtime/data/hdf5_files.py": {
        "unable to lock": "HDF5, of a file that another program has open",
        "already open for write": "HDF5, of a file that was not closed",
        "truncated file": "HDF5, of a file that was cut",
    },
    "gan_runtime/store/database_file.py": {
        "Could not set lock": "DuckDB, of a file that another process has open",
        "held in ": "the same message",
        "Corrupt database": "DuckDB, of a damaged file, here and below",
        "Could not read": "the same",
        "Input/output error": "the same",
        "database has been invalidated": "DuckDB, after a fatal error",
    },
    "gan_runtime/targets/kubernetes.py": dict.fromkeys(
        ("timed out", "unable to connect", "no route"),
        "kubectl, which exits with 1 for every failure",
    ),
    "gan_runtime/targets/slurm.py": {
        "timed out": "sbatch, which exits with 1 for every failure",
        "unable to contact": "the same",
        "zero bytes": "the same",
        "^(slurmstepd|srun)": "slurmstepd and srun: such a job can fail as any other",
    },
    "gan_runtime/engines/tf/profile.py": {"XLA Ops": "a line of a device in TensorFlow's profile"},
    "dashboard/tpu/words.py": {"out of memory": "the compiler of the TPU"},
    "dashboard/run/record_view.py": {
        "^(?:[IW]0000": "TensorFlow, XLA and CUDA in a log, which is only shown"
    },
    # What another process prints, which is all that a check of it has.
    "benchmarks/faults/clocks_and_owners.py": {"is in use by process": "the message under test"},
    "benchmarks/faults/scenario.py": {"file operations: ": "what a toy process prints at its end"},
    # Names, not sentences: older runs and the form have nothing else.
    "dashboard/paper/words.py": {"xla jit": "the name of a variant in the studies of 0.2.0"},
    "dashboard/compare/grouping.py": {"Model and data": GROUP, "Moving average": GROUP},
    "dashboard/launch/form.py": {"Model and data": GROUP, "Moving average": GROUP},
    "gan_runtime/base/options.py": {"Model and data": GROUP, "Moving average": GROUP},
    "gan_runtime/spec/run_spec.py": {"Model and data": GROUP, "Moving average": GROUP},
}

SQL = re.compile(r"\b(SELECT|WHERE|CASE WHEN)\b")
IN_SQL = (
    re.compile(
        r"(?:=|<>|\bLIKE|\bILIKE|\bIN\s*\(|[,(])\s*'([^']*[A-Za-z]{2,} [A-Za-z]{2,}[^']*)'",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:contains|starts_with|ends_with|regexp_\w+)\(\s*(?:\w+\.)?(reason|note|message)\b"
    ),
    re.compile(r"\b(?:\w+\.)?(reason|note|message)\s+(?:=|<>|LIKE|ILIKE|IN)\s", re.IGNORECASE),
)

Constants = Mapping[str, list[str]]  # name → its texts


def constants(module: ast.Module) -> dict[str, list[str]]:
    """Texts of the constants of a module, including those in tuples and patterns."""
    texts: dict[str, list[str]] = {}
    for statement in module.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    texts[target.id] = list(literals(statement.value))
    return texts


def literals(node: ast.AST) -> Iterator[str]:
    """Prose in a literal, or in a tuple, list or set of literals."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and PROSE.search(node.value):
        yield node.value
    elif isinstance(node, ast.Tuple | ast.List | ast.Set):
        for element in node.elts:
            yield from literals(element)
    elif isinstance(node, ast.Starred):
        yield from literals(node.value)
    elif isinstance(node, ast.JoinedStr):
        text = "".join(part.value for part in node.values if isinstance(part, ast.Constant))
        if PROSE.search(text):
            yield text


def compared(of_file: tuple[ast.AST, ...], texts_by_name: Constants) -> Iterator[tuple[int, str]]:
    """Lines and texts of prose in comparisons and searches, and comparisons of prose attributes."""
    loops = {
        loop.target.id: named(loop.iter, texts_by_name)
        for node in of_file
        if isinstance(node, ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp)
        for loop in node.generators
        if isinstance(loop.target, ast.Name)
    }
    texts_by_name = {**texts_by_name, **loops}
    for node in of_file:
        if isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in SEARCHES
        ):
            operands = [node.func.value, *node.args]
        elif isinstance(node, ast.MatchValue):
            operands = [node.value]
        else:
            continue
        line = node.lineno
        yield from ((line, text) for operand in operands for text in named(operand, texts_by_name))
        if any(is_for_people(operand) for operand in operands) and not is_with_nothing(operands):
            yield line, ast.unparse(node)


def named(node: ast.AST, texts_by_name: Constants) -> list[str]:
    """Prose in a node: its literals, or the texts of the constant it names, in any module."""
    name = ast.unparse(node) if isinstance(node, ast.Name | ast.Attribute | ast.Subscript) else ""
    return list(literals(node)) or list(texts_by_name.get(name.partition("[")[0], ()))


def is_for_people(node: ast.AST) -> bool:
    """Whether a node is an attribute that contains prose, such as `row.note`."""
    return isinstance(node, ast.Attribute) and node.attr in FOR_PEOPLE


def is_with_nothing(operands: list[ast.expr]) -> bool:
    """Whether an operand is "" or None, which only checks whether there is text."""
    return any(isinstance(operand, ast.Constant) and not operand.value for operand in operands)


def in_sql(text: str) -> Iterator[str]:
    """Comparisons with prose, or with a column of prose, in an SQL statement."""
    yield from (match[0] for pattern in IN_SQL for match in pattern.finditer(text))


def statements(of_file: tuple[ast.AST, ...]) -> Iterator[tuple[int, str]]:
    """Line and text of each string that may be SQL."""
    for node in of_file:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and SQL.search(node.value)
        ):
            yield node.lineno, node.value


MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in FILES}


@functools.cache
def constants_of(module: str) -> Constants:
    """The constants of a module of the project; none for other modules."""
    return constants(tree(MODULES[module])) if module in MODULES else {}


def constants_seen_by(path: Path) -> Constants:
    """The file's own and imported constants by their names in the file, such as "WAITS" or
    "jobs.WAITS".
    """
    names = dict(constants(tree(path)))
    for statement in (node for node in nodes(path) if isinstance(node, ast.ImportFrom)):
        for alias in statement.names:
            name, module = alias.asname or alias.name, statement.module or ""
            names[name] = list(constants_of(module).get(alias.name, ()))
            of_module = constants_of(f"{module}.{alias.name}")
            names |= {
                f"{name}.{texts_by_name}": texts for texts_by_name, texts in of_module.items()
            }
    return names


@pytest.mark.parametrize(
    "planted",
    [
        'if row.note == "moved in the queue": pass',
        'if "it stood still" in text: pass',
        "if text.startswith(BEGINS): pass",
        "if any(words in str(error) for words in SAID): pass",
        'if text in ("one word", "x"): pass',
        're.search(r"stopped after step (\\d+)", text)',
        "match text:\n    case 'it stood still': pass",
        "if newest.reason == reason: pass",
        "if row.note.startswith(beginning): pass",
    ],
)
def test_a_prose_comparison_is_detected(planted: str) -> None:
    texts_by_name = constants(
        ast.parse('BEGINS = "starts when run "\nSAID = ("no such file", "x")')
    )
    assert list(compared(tuple(ast.walk(ast.parse(planted))), texts_by_name))


@pytest.mark.parametrize(
    "harmless",
    [
        'if row.status == "queued": pass',
        'if row.note != "": pass',
        'title = f"at epoch {number}"',
        'table.get(kind, "give other images")',
    ],
)
def test_codes_and_displayed_text_are_not_prose_comparisons(harmless: str) -> None:
    assert not list(compared(tuple(ast.walk(ast.parse(harmless))), {}))


def test_prose_in_sql_is_detected() -> None:
    assert list(in_sql("SELECT 1 FROM runs WHERE status = 'it stood still'"))
    assert list(in_sql("SELECT 1 WHERE contains(reason, ?)"))
    assert list(in_sql("SELECT 1 WHERE reason LIKE ?"))
    assert not list(in_sql("SELECT reason AS note FROM runs WHERE status = 'lost'"))


def test_no_decision_depends_on_prose() -> None:
    """EXTERNAL lists texts that no code replaces, with reasons."""
    used: set[tuple[str, str]] = set()
    offenders = []
    for path in FILES:
        of_file, external = nodes(path), EXTERNAL.get(str(path), {})
        for line, text in compared(of_file, constants_seen_by(path)):
            beginning = next((start for start in external if text.startswith(start)), None)
            if beginning is None:
                offenders.append(f"{path}:{line}: {text}")
            else:
                used.add((str(path), beginning))
        offenders += [
            f"{path}:{line}: {what}" for line, sql in statements(of_file) for what in in_sql(sql)
        ]
    for path in sorted((REPOSITORY / "gan_runtime").rglob("*.sql")):
        offenders += [f"{path.name}: {what}" for what in in_sql(path.read_text(encoding="utf-8"))]
    assert offenders == []
    assert used >= {(path, start) for path, starts in EXTERNAL.items() for start in starts}, (
        "too many exceptions"
    )
