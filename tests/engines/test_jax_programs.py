"""The folder of programs that JAX has compiled."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gan_runtime.engines.jax import devices


@pytest.fixture(autouse=True)
def no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user's cache in a temporary folder, and no folder that the user names."""
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")  # tests/conftest.py sets it
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_each_kind_of_processor_has_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = []
    for flags in (["avx2"], ["avx2", "avx512f"]):
        monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
        monkeypatch.setattr(devices.processor, "flags", lambda flags=flags: flags)
        devices.keep_programs()
        folders.append(Path(os.environ["JAX_COMPILATION_CACHE_DIR"]))
    assert folders[0] != folders[1]
    assert {folder.parent for folder in folders} == {tmp_path / "gan-runtime"}


def test_folder_of_the_user_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/mine")
    devices.keep_programs()
    assert os.environ["JAX_COMPILATION_CACHE_DIR"] == "/mine"


def test_oldest_programs_are_removed_above_the_limit(tmp_path: Path) -> None:
    for age_s, name in enumerate(("newest", "older", "oldest")):
        program = tmp_path / f"jit_{name}-cache"
        program.write_bytes(bytes(100))
        os.utime(program, (1_000 - age_s, 1_000 - age_s))
    other = tmp_path / "notes.txt"
    other.write_bytes(bytes(1_000))
    devices.remove_oldest(tmp_path, 200)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "jit_newest-cache",
        "jit_older-cache",
        "notes.txt",
    ]
    devices.remove_oldest(tmp_path / "missing", 200)
