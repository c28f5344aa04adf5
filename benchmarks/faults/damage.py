"""Damaged files, and full disks."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.faults.harm import FAILED, FINISHED, LOST, STOPPED, Harm, reset_machine, running_run
from benchmarks.faults.stage import Stage
from gan_runtime.base import disk
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Event, StatusChange
from tests.support.toy_engine import PACE_VARIABLE

MOST_SECONDS = 5.0  # of a full disk or read-only folder, unless the trainer exits earlier


def cut_journal(stage: Stage) -> Harm:
    """The trainer's journal ends within its last record, as after a power loss."""
    run = reset_machine(stage)
    content = _content(run.trainer_journal())
    begin = content.rfind(b"\n", 0, max(0, len(content) - 1)) + 1
    place = stage.random.randint(begin, max(begin, len(content)))
    stage.actions.append(f"cut at byte {place} of {len(content)}")
    if content:
        run.trainer_journal().write_bytes(content[:place])
    return Harm(run, (LOST, FINISHED))


def append_garbage(stage: Stage) -> Harm:
    """The trainer's journal ends with bytes that are no record."""
    run = reset_machine(stage)
    kinds = (b"\0" * 300, b"{}\n", b'{"kind":"scalars"', stage.random.randbytes(99), b"\n\n\xff\n")
    with run.trainer_journal().open("ab") as file:
        file.write(stage.random.choice(kinds))
    return Harm(run, (LOST, FINISHED))


def flip_bit(stage: Stage) -> Harm:
    """A bit of a journal is flipped. The database is rebuilt from it, since stored records are not
    read again.
    """
    run = reset_machine(stage)
    stage.home.database.unlink()
    path = stage.random.choice((run.trainer_journal(), run.supervisor_journal))
    content = bytearray(_content(path))
    begin = (
        0 if path == run.trainer_journal() else content.find(b"\n") + 1
    )  # without its first line it is no journal of a run
    if len(content) > begin:
        place, bit = stage.random.randrange(begin, len(content)), stage.random.randrange(8)
        content[place] ^= 1 << bit
        path.write_bytes(content)
        stage.actions.append(f"bit {bit} of byte {place} of {path.name}")
    return Harm(run, (LOST, FINISHED, FAILED))


def damage_database(stage: Stage) -> Harm:
    """The database is cut, empty, no database, has other bytes in a block, or a write-ahead log
    without records: it is quarantined, or read up to the damage.
    """
    run = reset_machine(stage)
    database = stage.home.database
    content = bytearray(_content(database))
    how = stage.random.choice(("cut", "empty", "garbage", "block", "log"))
    place = stage.random.randrange(max(1, len(content)))
    stage.actions.append(f"{how} at byte {place} of {len(content)}")
    if how == "log":
        database.with_name(f"{database.name}.wal").write_bytes(
            stage.random.randbytes(place % 9_999)
        )
    elif how == "block":
        content[place : place + 64] = stage.random.randbytes(len(content[place : place + 64]))
        database.write_bytes(content)
    else:
        database.write_bytes(
            {"cut": bytes(content[:place]), "empty": b"", "garbage": b"\1" * 9_999}[how]
        )
    return Harm(run, (LOST, FINISHED))


def damage_checkpoint(stage: Stage) -> Harm:
    """The newest checkpoint is cut, empty, has a flipped bit, or is missing: the run uses the
    checkpoint before it, and an event says so.
    """
    stage.least_calls = 12  # two epochs, so that there is an older checkpoint
    run = reset_machine(stage)
    newest = max(run.checkpoints.glob("step-*.safetensors"))
    how = stage.random.choice(("cut", "empty", "bit", "garbage"))
    content = newest.read_bytes()
    place = stage.random.randrange(len(content))
    other = bytes([content[place] ^ 1 << stage.random.randrange(8)])
    damaged_contents = {
        "cut": content[:place],
        "bit": content[:place] + other + content[place + 1 :],
        "empty": b"",
        "garbage": b"\1" * 99,
    }
    newest.write_bytes(damaged_contents[how])
    stage.actions.append(f"{newest.name}: {how}")

    def damage_is_reported(_: Home) -> list[str]:
        events = [
            record
            for record in journal.read_all(run.trainer_journal())
            if isinstance(record, Event)
        ]
        is_reported = any(
            newest.name in event.message for event in events if event.topic == "checkpoint"
        )
        return (
            []
            if is_reported or stage.finished_before_harm
            else ["no event reports the damaged checkpoint"]
        )

    return Harm(run, (LOST, FINISHED), [damage_is_reported])


def fill_disk(stage: Stage) -> Harm:
    """The disk of the home is full for a while: a small separate disk for root, else its files
    cannot grow.
    """
    if not stage.on_small_disk():
        stage.actions.append("no right to mount: one write without space instead")
        from benchmarks.faults.kills import fail_once

        return fail_once(stage)
    run = running_run(stage)
    filler = stage.home.path / "filler"
    _fill(filler)
    stage.wait_while_it_trains(run, MOST_SECONDS)
    filler.unlink()
    stage.actions.append(f"a disk of {stage.disk_mb} MB, full")
    return Harm(run, (FAILED, LOST, STOPPED, FINISHED))


def nearly_fill_disk(stage: Stage) -> Harm:
    """The disk of the home is nearly full: the run saves and ends as stopped, and continues once
    there is space.
    """
    if not stage.on_small_disk():
        stage.actions.append("no right to mount: one write without space instead")
        from benchmarks.faults.kills import fail_once

        return fail_once(stage)
    run = running_run(
        stage, {PACE_VARIABLE: "0.3"}
    )  # longer than the time between two checks of the disk
    filler = stage.home.path / "filler"
    bytes_left = stage.random.randrange(5, disk.LEAST_BYTES // 1_000_000) * 1_000_000
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, disk.free_bytes(stage.home.path) - bytes_left)
    end = stage.wait_for_end(run)
    filler.unlink()
    stage.actions.append(f"a disk of {stage.disk_mb} MB, {bytes_left // 1_000_000} MB left")
    reasons = [
        record.reason
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, StatusChange)
    ]

    def reason_is_space(_: Home) -> list[str]:
        is_reported = end == FINISHED or any(" MB left, less than " in reason for reason in reasons)
        return (
            [] if is_reported else [f"it ended as {end}, and not for want of space: {reasons[-1:]}"]
        )

    return Harm(run, (STOPPED, FINISHED), [reason_is_space])


def _fill(filler: Path) -> None:
    with filler.open("wb", buffering=0) as file:
        for size in (1_000_000, 1_000):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue


def read_only_folder(stage: Stage) -> Harm:
    """A folder of the run cannot be written for a while."""
    run = running_run(stage)
    run.checkpoints.mkdir(exist_ok=True)
    folder = stage.random.choice((run.path, run.checkpoints, stage.home.runs, stage.home.path))
    rights = folder.stat().st_mode
    folder.chmod(0o555)
    stage.wait_while_it_trains(run, MOST_SECONDS)
    folder.chmod(rights)
    stage.actions.append(f"{folder.relative_to(stage.home.path.parent)} read-only")
    return Harm(run, (FAILED, LOST, FINISHED))


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
