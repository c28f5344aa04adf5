"""docs/threat-model.md: its claims are covered by existing tests, and its lists are complete."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from streamlit.proto.BackMsg_pb2 import BackendOperationRequest, BackMsg

from tests.hostile.cases import counts
from tests.support.sources import ROOT, nodes, pins, python_files, text, tree

TEXT = text(Path("docs/threat-model.md"))
LOCKED = sorted(path.name for path in (ROOT / "locks").iterdir())
WITHOUT_DEPENDENCIES = {"requirements-gpu-compiler.txt"}  # installed next to those of the program
WITHOUT_HASHES = {"requirements-bench.txt"}  # uses another package index


def test_every_test_named_in_the_threat_model_exists() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)::([a-z0-9_]+)`", TEXT)
    assert len(named) > 40
    defined = {
        file: {node.name for node in tree(Path(file)).body if isinstance(node, ast.FunctionDef)}
        for file, _ in named
    }
    assert [f"{file}::{name}" for file, name in named if name not in defined[file]] == []


def test_every_threat_has_a_test() -> None:
    rows = [
        line
        for line in TEXT.split("## Libraries")[0].splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    threats = [row for row in rows if not row.endswith("| Test |")]
    assert len(threats) > 25
    assert [row for row in threats if "::test_" not in row.rpartition(" | ")[2]] == []


def test_every_streamlit_protocol_message_is_listed() -> None:
    """Kinds that a later Streamlit adds fail here, so that they are reviewed."""
    table = TEXT.split("## Messages of Streamlit's protocol")[1].split("\n## ")[0]
    names = set(re.findall(r"`([a-z_]+)`", table))
    operations = BackendOperationRequest.DESCRIPTOR.oneofs_by_name["payload"].fields
    assert {field.name for field in (*BackMsg.DESCRIPTOR.fields, *operations)} - names == set()


def test_no_page_uses_a_cache_that_a_browser_can_clear() -> None:
    """Clearing `st.cache_resource` loses process-wide objects; `st.cache_data` only recomputes."""
    users = [
        path
        for path in python_files("app.py", "pages", "dashboard")
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr == "cache_resource"
    ]
    assert users == []


def test_hostile_input_counts_match_the_threat_model() -> None:
    numbers = {
        kind: int(number.replace(",", ""))
        for kind, number in re.findall(r"\| ([A-Za-z0-9 ]+) \| ([\d,]+) \|", TEXT)
    }
    listed = {**counts(), "all": sum(counts().values())}
    assert numbers.keys() == listed.keys()
    assert {kind for kind in listed if not 0.8 <= numbers[kind] / listed[kind] <= 1} == set()
    assert numbers["all"] >= 1_000


def test_no_code_unpickles_evaluates_or_runs_a_shell() -> None:
    forbidden = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
    uses = []
    for path in python_files("app.py", "pages", "dashboard", "gan_runtime"):
        for node in nodes(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name.partition(".")[0] for alias in node.names} | {
                    (getattr(node, "module", None) or "").partition(".")[0]
                }
                uses += [f"{path}: {name}" for name in names & forbidden]
            elif isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                words = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if called in ("eval", "exec", "os.system", "os.popen") or "True" in (
                    words.get("shell"),
                    words.get("allow_pickle"),
                ):
                    uses.append(f"{path}:{node.lineno} {called}")
    assert uses == []


def test_every_package_is_pinned_with_hashes() -> None:
    lists = {path.name for path in ROOT.glob("requirements*.txt")}
    assert set(LOCKED) == lists - WITHOUT_HASHES
    for name in LOCKED:
        entries = re.split(r"\n(?=\S)", text(Path("locks", name)).strip())
        locked = {}
        for entry in (entry for entry in entries if not entry.startswith("#")):
            pinned = re.match(r"([A-Za-z0-9._-]+)(?:\[[a-z,-]+\])?==([^ ;\\]+)", entry)
            assert pinned, entry[:80]
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", entry), pinned[0]
            locked[pinned[1].lower()] = pinned[2]
        assert len(locked) > 20 or name in WITHOUT_DEPENDENCIES, name
        assert {package: locked.get(package) for package in pins(name)} == pins(name), name
