"""Two TensorFlow workers that do not share a folder."""

from __future__ import annotations

from pathlib import Path

from gan_runtime.records.home import Home
from gan_runtime.records.processes import TRAINER
from tests.support.split_folder import assert_both_end_with_a_sentence, run_apart


def test_tensorflow_workers_on_unshared_folders_exit_with_an_error(
    home: Home, tmp_path: Path
) -> None:
    apart = run_apart(home, tmp_path / "elsewhere")
    # They load TensorFlow, on a shared host.
    assert_both_end_with_a_sentence(apart, TRAINER, seconds=240.0, says_rank=False)
