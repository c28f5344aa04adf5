"""Benchmark conditions: the machine is idle and the commit describes the code that ran."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks import conditions
from benchmarks.results import command


def test_a_row_waits_until_the_machine_is_idle() -> None:
    loads, slept = [2.0, 0.9, 0.5], list[float]()
    assert conditions.wait_until_idle(lambda: loads.pop(0), slept.append) == 0.5
    assert len(slept) == 2


def test_a_busy_machine_is_measured_after_max_wait_and_its_load_reported() -> None:
    slept: list[float] = []
    assert conditions.wait_until_idle(lambda: 3.0, slept.append) == 3.0
    assert sum(slept) == conditions.MAX_WAIT_S


def test_only_non_result_files_count_as_changed(tmp_path: Path) -> None:
    files = [
        tmp_path / "engine.py",
        tmp_path / "benchmarks" / "results" / "latest.jsonl",
        tmp_path / "docs" / "benchmarks.md",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("before")
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    for file in files[1:]:
        file.write_text("after")
    assert conditions.changed_since_commit(tmp_path) is False
    files[0].write_text("after")
    assert conditions.changed_since_commit(tmp_path) is True


def test_the_recorded_command_hides_the_referee_path() -> None:
    assert (
        command(["--only", "referee", "--referee", "/home/me/loop.py"])
        == "python -m benchmarks.bench --only referee --referee SCRIPT"
    )
