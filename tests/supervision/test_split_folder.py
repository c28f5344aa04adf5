"""Two real workers with a toy engine that do not share their folder."""

from __future__ import annotations

from pathlib import Path

from gan_runtime.records.home import Home
from tests.support import toy_trainer
from tests.support.split_folder import assert_both_end_with_a_sentence, run_apart


def test_both_workers_exit_with_a_message_instead_of_waiting(home: Home, tmp_path: Path) -> None:
    apart = run_apart(home, tmp_path / "elsewhere")
    assert_both_end_with_a_sentence(apart, toy_trainer.MODULE, seconds=60.0, says_rank=True)
