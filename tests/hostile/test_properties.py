"""The readers of journals, options and IDX files, with inputs that hypothesis makes up: few of them
here, the same each time.

More: HYPOTHESIS_EXAMPLES=10000 .venv/bin/python -m pytest tests/hostile/test_properties.py
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gan_runtime.base.errors import DatasetError, GanRuntimeError, JournalError
from gan_runtime.data import idx_files
from gan_runtime.records import journal
from gan_runtime.records.journal import Event, StatusChange
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_spec import read_values
from tests.hostile.cases import idx as idx_header
from tests.hostile.test_hostile_inputs import check_sentence

FEW = settings(
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "40")),
    deadline=None,  # other processes share the cores
    database=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture
    ],  # each example writes its file again
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4)
    ),
)
KINDS = st.sampled_from(
    [
        "created",
        "status",
        "event",
        "scalars",
        "epoch",
        "sample",
        "histogram",
        "renamed",
        "plan",
        "x",
    ]
)
FIELDS = st.dictionaries(
    st.sampled_from(
        [
            "epoch",
            "step",
            "first_step",
            "values",
            "wall_s",
            "status",
            "reason",
            "name",
            "spec",
            "file",
            "at",
            "attempt",
            "asker",
        ]
    ),
    JSON,
)
OPTIONS = sorted(RunSpec.options("dcgan_mnist"))


def lines_of(kind: str, fields: dict[str, Any]) -> bytes:
    """One line of a journal, checked by nobody."""
    return (
        json.dumps({"kind": kind, "attempt": 1, "at": "2026-01-01T12:00:00Z", **fields}).encode()
        + b"\n"
    )


@FEW
@given(
    lines=st.lists(st.binary(max_size=200) | st.builds(lines_of, KINDS, FIELDS), max_size=8),
    cut=st.integers(0, 2_000),
)
def test_journal_keeps_its_good_records_when_read_in_pieces(
    tmp_path: Path, lines: list[bytes], cut: int
) -> None:
    """Records before a bad line are read, and reading in pieces gives the same as reading at
    once.
    """
    file = tmp_path / "journal-0.jsonl"
    file.unlink(missing_ok=True)
    good = Event(level="info", topic="run", message="first")
    journal.append(file, 1, good)
    with file.open("ab") as tail:
        tail.write(b"".join(lines)[:cut])
    try:
        whole = journal.read(file)
        pieces, offset = journal.read(file, 0, max_bytes=300), 0
        records = list(pieces.records)
        while pieces.end > offset:
            offset = pieces.end
            pieces = journal.read(file, offset, max_bytes=300)
            records += pieces.records
    except JournalError as error:
        check_sentence(error)
        return
    assert getattr(whole.records[0], "message", "") == "first"
    assert [repr(record) for record in records] == [
        repr(record) for record in whole.records
    ]  # NaN is not itself


@FEW
@given(values=st.dictionaries(st.sampled_from(OPTIONS) | st.text(max_size=10), JSON, max_size=6))
def test_options_are_accepted_unchanged_or_refused_in_a_sentence(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(values), encoding="utf-8")
    try:
        spec = RunSpec.parse(read_values(file))
    except GanRuntimeError as error:
        check_sentence(error)
    else:
        assert RunSpec.parse(json.loads(spec.model_dump_json())) == spec


@FEW
@given(
    shape=st.lists(st.integers(0, 2**32 - 1), max_size=4),
    kind=st.integers(0, 255),
    body=st.binary(max_size=4_000),
)
def test_idx_file_matches_its_header_or_is_refused(
    tmp_path: Path, shape: list[int], kind: int, body: bytes
) -> None:
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(idx_header(tuple(shape), kind) + body)
    try:
        rows = idx_files.read(file)
    except DatasetError as error:
        check_sentence(error)
    else:
        assert rows.shape == tuple(shape)
        assert rows.tobytes() == body


@FEW
@given(count=st.integers(1, 3), fill=st.integers(0, 255))
def test_valid_idx_file_is_read_as_written(tmp_path: Path, count: int, fill: int) -> None:
    """So that the test before this one does not pass by refusing everything."""
    file = tmp_path / "train-images-idx3-ubyte"
    file.write_bytes(idx_header((count, 28, 28)) + bytes([fill]) * count * 784)
    assert np.array_equal(idx_files.read(file), np.full((count, 28, 28), fill, np.uint8))


def test_journal_reader_keeps_good_lines_between_bad_ones(tmp_path: Path) -> None:
    file = tmp_path / "journal-0.jsonl"
    journal.append(file, 1, StatusChange(status="running", reason="training"))
    file.write_bytes(b"{torn\n" + file.read_bytes() + b"[]\n")
    chunk = journal.read(file)
    assert [record.kind for record in chunk.records] == ["status"]
    assert [line.line for line in chunk.skipped] == [b"{torn\n", b"[]\n"]
