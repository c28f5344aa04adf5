"""A stop before the first step ends the process at once; after it, the training loop saves and
ends.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.training.watch import StartupWatch


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal-0.jsonl"


def test_stop_during_compilation_ends_the_trainer_and_records_it(path: Path) -> None:
    stop, ended = threading.Event(), threading.Event()
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    with JournalWriter(path, attempt=2) as writer, StartupWatch(writer, stop.is_set, end):
        stop.set()
        assert ended.wait(10)
    assert codes == [0]
    (last,) = journal.read_all(path)
    assert isinstance(last, StatusChange)
    assert (last.status, last.attempt) == ("stopped", 2)
    assert last.reason == "stopped on request before the first step of this attempt"


def test_startup_watch_stops_after_the_first_step_or_an_error(path: Path) -> None:
    looks = threading.Semaphore(0)

    def stop_requested() -> bool:
        looks.release()
        return False

    with JournalWriter(path) as writer:
        with StartupWatch(writer, stop_requested) as watch:
            assert looks.acquire(timeout=10)
            watch.first_step()
            (thread,) = [
                thread for thread in threading.enumerate() if thread.name == "startup watch"
            ]
        thread.join(10)
        assert not thread.is_alive()
    assert list(journal.read_all(path)) == []
