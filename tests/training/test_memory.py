"""The memory of this process, as the operating system counts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gan_runtime.training import watch


def test_peak_includes_freed_memory() -> None:
    before = watch.process_memory()
    block = bytearray(b"x") * (
        before.peak_bytes - before.bytes + 200_000_000
    )  # above the peak of earlier tests in this process
    memory = watch.process_memory()
    del block
    after = watch.process_memory()
    assert memory.bytes - before.bytes > 150_000_000
    assert after.bytes < memory.bytes
    assert after.peak_bytes == pytest.approx(
        memory.bytes, rel=0.01
    )  # the kernel counts pages roughly


def test_peak_comes_from_getrusage_without_proc(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    exact = watch.process_memory().peak_bytes
    monkeypatch.setattr(watch, "STATUS", tmp_path / "absent")
    assert watch.process_memory().peak_bytes == pytest.approx(exact, rel=0.2)
