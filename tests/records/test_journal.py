"""The journal: append-only lines; readers return only whole lines."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import HomeError, JournalError
from gan_runtime.records import journal, run_files
from gan_runtime.records.journal import (
    AttemptStart,
    Event,
    JournalWriter,
    PhaseSeconds,
    Renamed,
    Scalars,
    StatusChange,
)
from tests.support import not_plain

Limit = Callable[[int], AbstractContextManager[None]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal-0.jsonl"


def phase(seconds: float) -> PhaseSeconds:
    return PhaseSeconds(phase="probe", seconds=seconds)


def seconds(records: list[journal.Record]) -> list[float]:
    return [record.seconds for record in records if isinstance(record, PhaseSeconds)]


def test_appended_records_are_read_back_in_order(path: Path) -> None:
    records = [
        AttemptStart(resume_step=28),
        phase(0.25),
        Event(level="info", topic="data", message="zwölf „Zeichen“\n↵"),
    ]
    with JournalWriter(path, attempt=2) as writer:
        writer.write(records[0])
        writer.write(*records[1:])
    chunk = journal.read(path)
    assert chunk.records == [record.model_copy(update={"attempt": 2}) for record in records]
    assert (chunk.end, chunk.skipped) == (path.stat().st_size, ())
    assert len(path.read_bytes().splitlines()) == 3


def test_a_tail_continues_where_it_stopped(path: Path) -> None:
    journal.append(path, 1, phase(1))
    first = journal.read(path)
    journal.append(path, 1, phase(2), phase(3))
    second = journal.read(path, first.end)
    assert (seconds(first.records), seconds(second.records)) == ([1], [2, 3])
    assert journal.read(path, second.end).records == []


def test_a_long_journal_is_read_in_chunks_of_complete_lines(path: Path) -> None:
    journal.append(path, 1, *(phase(number) for number in range(50)))
    offset, values, pieces = 0, [], 0
    while offset < path.stat().st_size:
        chunk = journal.read(path, offset, max_bytes=500)
        values += seconds(chunk.records)
        offset, pieces = chunk.end, pieces + 1
    assert values == list(range(50))
    assert pieces > 5


def test_a_line_longer_than_a_chunk_is_read_completely(path: Path) -> None:
    journal.append(path, 1, Event(level="info", topic="long", message="x" * 1_000), phase(1))
    assert len(journal.read(path, max_bytes=100).records) >= 1


def test_a_torn_last_line_is_not_read(path: Path) -> None:
    journal.append(path, 1, phase(1))
    whole = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"attempt":1,"at":"2026-01-01T12:00:00Z","kind":"pha')
    chunk = journal.read(path)
    assert (seconds(chunk.records), chunk.end, chunk.skipped) == ([1], whole, ())
    assert seconds(journal.read_all(path)) == [1]


def test_a_torn_line_is_skipped_once_a_writer_continues(path: Path) -> None:
    journal.append(path, 1, phase(1))
    with path.open("ab") as file:
        file.write(b'{"attempt":1,"at":"2026-01-01T12:00:00Z","kind":"pha')
    journal.append(path, 2, phase(2))
    chunk = journal.read(path)
    assert (seconds(chunk.records), len(chunk.skipped)) == ([1, 2], 1)
    assert chunk.end == path.stat().st_size


def test_a_tail_skips_a_torn_line_after_the_next_write(path: Path) -> None:
    journal.append(path, 1, phase(1))
    with path.open("ab") as file:
        file.write(b'{"torn')
    first = journal.read(path)
    journal.append(path, 2, phase(2))
    second = journal.read(path, first.end)
    assert (seconds(second.records), [line.line for line in second.skipped]) == ([2], [b'{"torn\n'])


def test_lines_of_a_newer_program_are_skipped_not_fatal(path: Path) -> None:
    path.write_bytes(b'{"kind":"hologram","attempt":1}\n')
    journal.append(path, 1, phase(1))
    chunk = journal.read(path)
    assert (seconds(chunk.records), len(chunk.skipped)) == ([1], 1)


def test_nan_and_infinity_survive(path: Path) -> None:
    numbers = [0.5, math.nan, math.inf, -math.inf]
    journal.append(
        path,
        1,
        Scalars(epoch=1, first_step=1, wall_s=[1, 2, 3, 4], values={"loss_generator": numbers}),
    )
    [record] = journal.read(path).records
    assert isinstance(record, Scalars)
    loss = record.values["loss_generator"]
    assert (loss[0], math.isnan(loss[1]), loss[2], loss[3]) == (0.5, True, math.inf, -math.inf)


def test_small_and_large_numbers_survive_exactly(path: Path) -> None:
    numbers = [0.1 + 0.2, 1e-45, 1.7976931348623157e308, -0.0]
    journal.append(
        path, 1, Scalars(epoch=1, first_step=1, wall_s=[1, 2, 3, 4], values={"x": numbers})
    )
    [record] = journal.read(path).records
    assert isinstance(record, Scalars)
    assert [number.hex() for number in record.values["x"]] == [number.hex() for number in numbers]


def test_a_missing_journal_reads_as_empty(path: Path) -> None:
    assert journal.read_all(path) == []


# ---- full disks and invalid files ----------------------------------------------------------------


def test_a_full_disk_is_reported() -> None:
    """/dev/full fails like a full disk."""
    with pytest.raises(HomeError) as refused:
        journal.append(Path("/dev/full"), 1, phase(1))
    assert (
        str(refused.value)
        == "the disk of /dev/full is full: free space on it; unsaved data was lost."
    )


def test_a_partial_write_is_detected(path: Path, files_end_at: Limit) -> None:
    with JournalWriter(path) as writer, files_end_at(500):
        writer.write(phase(1))
        with pytest.raises(
            HomeError, match=r"journal-0\.jsonl cannot be written \(File too large\): "
        ):
            writer.write(*(phase(number) for number in range(2, 50)))
    assert path.stat().st_size == 500


def test_a_writer_continues_on_a_new_line_after_a_full_disk(
    path: Path, files_end_at: Limit
) -> None:
    with JournalWriter(path) as writer:
        with files_end_at(20), pytest.raises(HomeError):
            writer.write(phase(1))
        writer.write(phase(2))
        writer.write(phase(3))
    chunk = journal.read(path)
    assert (seconds(chunk.records), len(chunk.skipped)) == ([2, 3], 1)


def test_an_endless_line_does_not_exhaust_memory(path: Path) -> None:
    """Ten gigabytes of zeros after valid lines, in a sparse file."""
    journal.append(path, 1, StatusChange(status="running", reason="trains"), Renamed(name="mine"))
    with path.open("ab") as file:
        file.truncate(10**10)
    tracemalloc.start()
    for read in (journal.read, journal.read_all, journal.statuses):
        with pytest.raises(JournalError, match="has a line of more than"):
            read(path)
    assert tracemalloc.get_traced_memory()[1] < 4 * run_files.MAX_LINE
    tracemalloc.stop()


@pytest.mark.parametrize("kind", not_plain.KINDS)
@pytest.mark.parametrize("read", [journal.read, journal.read_all, journal.first, journal.statuses])
def test_an_irregular_file_is_never_opened(
    path: Path, read: Callable[[Path], Any], kind: str
) -> None:
    not_plain.put(path, kind)
    with pytest.raises(JournalError, match=f"{path.name} is not a regular file"):
        read(path)


def test_lines_without_the_requested_name_are_not_parsed(path: Path) -> None:
    path.write_bytes(b"x\n" * 100_000)
    journal.append(path, 1, Renamed(name="one"))
    path.open("ab").write(b"x\n" * 100_000)
    journal.append(path, 1, StatusChange(status="stopped", reason="done"))
    [(renamed, _)] = journal.naming(path, b'"renamed"')
    [(stopped, change)] = journal.statuses(path)
    content = path.read_bytes()
    assert (content[renamed - 1 : renamed + 1], content[stopped - 1 : stopped + 1]) == (
        b"\n{",
        b"\n{",
    )
    assert change.status == "stopped"
    path.write_bytes(b'"status"\n' * (run_files.MAX_BAD_LINES + 1))
    with pytest.raises(JournalError, match="invalid lines"):
        journal.statuses(path)
