"""Damaged files, and full disks."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.faults.fault import (
    FAILED,
    FINISHED,
    LOST,
    STOPPED,
    Expectation,
    reset_machine,
    running_run,
)
from benchmarks.faults.stage import Stage
from gan_runtime.base import disk
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Event, StatusChange
from gan_runtime.records.states import Reason
from tests.support.toy_engine import PACE_VARIABLE

MAX_SECONDS = 5.0  # a disk is full or a folder read-only, unless the trainer exits earlier


def cut_journal(stage: Stage) -> Expectation:
    """The trainer's journal ends within its last record, as after a power loss."""
    run = reset_machine(stage)
    content = _content(run.trainer_journal())
    begin = content.rfind(b"\n", 0, max(0, len(content) - 1)) + 1
    offset = stage.random.randint(begin, max(begin, len(content)))
    stage.actions.append(f"cut at byte {offset} of {len(content)}")
    if content:
        run.trainer_journal().write_bytes(content[:offset])
    return Expectation(run, (LOST, FINISHED))


def append_garbage(stage: Stage) -> Expectation:
    """The trainer's journal ends with bytes that are not a record."""
    run = reset_machine(stage)
    kinds = (b"\0" * 300, b"{}\n", b'{"kind":"scalars"', stage.random.randbytes(99), b"\n\n\xff\n")
    with run.trainer_journal().open("ab") as file:
        file.write(stage.random.choice(kinds))
    return Expectation(run, (LOST, FINISHED))


def flip_bit(stage: Stage) -> Expectation:
    """A bit of a journal flips. The database is deleted, since records that it has are not read
    again.
    """
    run = reset_machine(stage)
    stage.home.database.unlink()
    path = stage.random.choice((run.trainer_journal(), run.supervisor_journal))
    content = bytearray(_content(path))
    # Without the first line of the supervisor's journal there is no run.
    begin = 0 if path == run.trainer_journal() else content.find(b"\n") + 1
    if len(content) > begin:
        offset, bit = stage.random.randrange(begin, len(content)), stage.random.randrange(8)
        content[offset] ^= 1 << bit
        path.write_bytes(content)
        stage.actions.append(f"bit {bit} of byte {offset} of {path.name}")
    return Expectation(run, (LOST, FINISHED, FAILED))


def damage_database(stage: Stage) -> Expectation:
    """The database is cut, empty or garbage, has a damaged block, or a garbage write-ahead log.

    It is quarantined, or read up to the damage.
    """
    run = reset_machine(stage)
    database = stage.home.database
    content = bytearray(_content(database))
    how = stage.random.choice(("cut", "empty", "garbage", "block", "log"))
    offset = stage.random.randrange(max(1, len(content)))
    stage.actions.append(f"{how} at byte {offset} of {len(content)}")
    if how == "log":
        database.with_name(f"{database.name}.wal").write_bytes(
            stage.random.randbytes(offset % 9_999)
        )
    elif how == "block":
        content[offset : offset + 64] = stage.random.randbytes(len(content[offset : offset + 64]))
        database.write_bytes(content)
    else:
        database.write_bytes(
            {"cut": bytes(content[:offset]), "empty": b"", "garbage": b"\1" * 9_999}[how]
        )
    return Expectation(run, (LOST, FINISHED))


def damage_checkpoint(stage: Stage) -> Expectation:
    """The newest checkpoint is cut, empty, garbage, or has a flipped bit: the run resumes from the
    checkpoint before it, and an event says so.
    """
    stage.min_calls = 12  # two epochs, so that there is an older checkpoint
    run = reset_machine(stage)
    newest = max(run.checkpoints.glob("step-*.safetensors"))
    how = stage.random.choice(("cut", "empty", "bit", "garbage"))
    content = newest.read_bytes()
    offset = stage.random.randrange(len(content))
    flipped = bytes([content[offset] ^ 1 << stage.random.randrange(8)])
    damaged_contents = {
        "cut": content[:offset],
        "bit": content[:offset] + flipped + content[offset + 1 :],
        "empty": b"",
        "garbage": b"\1" * 99,
    }
    newest.write_bytes(damaged_contents[how])
    stage.actions.append(f"{newest.name}: {how}")

    def check_event(_: Home) -> list[str]:
        events = [
            record
            for record in journal.read_all(run.trainer_journal())
            if isinstance(record, Event)
        ]
        is_reported = ("checkpoint", "warning") in [(event.topic, event.level) for event in events]
        return (
            []
            if is_reported or stage.finished_before_fault
            else ["no event reports the damaged checkpoint"]
        )

    return Expectation(run, (LOST, FINISHED), [check_event])


def fill_disk(stage: Stage) -> Expectation:
    """The disk of the home is full for a while: a small disk in memory. Without the right to mount
    one, one write fails instead.
    """
    if not stage.mount_small_disk():
        stage.actions.append("no right to mount: one write without space instead")
        from benchmarks.faults.kills import fail_once

        return fail_once(stage)
    run = running_run(stage)
    filler = stage.home.path / "filler"
    _fill(filler)
    stage.wait_while_it_trains(run, MAX_SECONDS)
    filler.unlink()
    stage.actions.append(f"a disk of {stage.disk_mb} MB, full")
    return Expectation(run, (FAILED, LOST, STOPPED, FINISHED))


def nearly_fill_disk(stage: Stage) -> Expectation:
    """The disk of the home is nearly full: the run saves and ends as stopped, and continues once
    there is space.
    """
    if not stage.mount_small_disk():
        stage.actions.append("no right to mount: one write without space instead")
        from benchmarks.faults.kills import fail_once

        return fail_once(stage)
    # Calls must take longer than the time between two checks of the disk.
    run = running_run(stage, {PACE_VARIABLE: "0.3"})
    filler = stage.home.path / "filler"
    bytes_left = stage.random.randrange(5, disk.LEAST_BYTES // 1_000_000) * 1_000_000
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.free_bytes(stage.home.path) - bytes_left)
    end = stage.wait_for_end(run)
    filler.unlink()
    stage.actions.append(f"a disk of {stage.disk_mb} MB, {bytes_left // 1_000_000} MB left")
    codes = [
        record.code
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, StatusChange)
    ]

    def check_reason(_: Home) -> list[str]:
        is_reported = end == FINISHED or Reason.LOW_DISK in codes
        return (
            []
            if is_reported
            else [f"it ended as {end}, and not for lack of disk space: {codes[-1:]}"]
        )

    return Expectation(run, (STOPPED, FINISHED), [check_reason])


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        for size in (1_000_000, 1_000):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def read_only_folder(stage: Stage) -> Expectation:
    """A folder of the run cannot be written for a while."""
    run = running_run(stage)
    run.checkpoints.mkdir(exist_ok=True)
    folder = stage.random.choice((run.path, run.checkpoints, stage.home.runs, stage.home.path))
    mode = folder.stat().st_mode
    folder.chmod(0o555)
    stage.wait_while_it_trains(run, MAX_SECONDS)
    folder.chmod(mode)
    stage.actions.append(f"{folder.relative_to(stage.home.path.parent)} read-only")
    return Expectation(run, (FAILED, LOST, FINISHED))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
