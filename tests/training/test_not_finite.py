"""Weights that become NaN while losses stay finite: they are never saved, and the error explains
how to resume.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.errors import AlarmError, CheckpointError, NonFiniteError
from gan_runtime.engines.contract import Arrays, StepNumbers
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, loop
from tests.support.counting_engine import (
    HEALTHY,
    IMAGES,
    SPEC,
    CountingEngine,
    events,
    recorded,
    train,
)


class Overflowing(CountingEngine):
    """The update of step `breaks_at` turns its weight into NaN. Its losses, computed before an
    update, stay finite until `nan_at`.
    """

    def __init__(
        self, breaks_at: int, nan_at: int = 0, scores: tuple[dict[str, float], ...] = ()
    ) -> None:
        super().__init__(nan_at, scores)
        self.breaks_at, self.weight, self.loaded = breaks_at, 1.0, list[int]()

    def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
        """Like a CountingEngine, except for the weight."""
        numbers = super().run(steps, stop_requested)
        if self.step - steps < self.breaks_at <= self.step:
            self.weight = float("nan")
        return numbers

    def state(self) -> Arrays:
        """The weight and the step."""
        return {"generator/kernel": np.asarray([self.weight], np.float32), **super().state()}

    def load(self, arrays: Arrays) -> None:
        """Loads both."""
        super().load(arrays)
        self.weight = float(arrays["generator/kernel"][0])
        self.loaded.append(self.step)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An empty run folder."""
    path = tmp_path / "runs" / "toy-0001"
    path.mkdir(parents=True)
    return RunDir(path)


def saved(run: RunDir) -> list[str]:
    return sorted(path.stem for path in run.checkpoints.iterdir())


# ---- saving --------------------------------------------------------------------------------------


def test_weights_broken_by_the_last_update_of_an_epoch_are_not_saved(run: RunDir) -> None:
    with pytest.raises(
        NonFiniteError,
        match=(
            r"generator/kernel has NaN or infinite numbers after step 10 \(epoch 2\)\. Resume with"
            r" lower rates: "
        ),
    ):
        train(run, Overflowing(breaks_at=10))
    assert checkpoints.newest_step(run.checkpoints) == 5


def test_run_broken_by_its_last_update_never_ends_finished(run: RunDir) -> None:
    with pytest.raises(NonFiniteError, match="after step 15"):
        train(run, Overflowing(breaks_at=15))
    assert (
        train(run, Overflowing(breaks_at=0), attempt=2).status == "finished"
    )  # from step 10, with healthy updates


def test_stop_does_not_save_broken_weights(run: RunDir) -> None:
    engine = Overflowing(breaks_at=7)
    with pytest.raises(NonFiniteError, match=r"after step 9 \(epoch 2\)"):
        train(run, engine, stop=lambda: engine.step >= 8)
    assert checkpoints.newest_step(run.checkpoints) == 5


def test_nan_score_is_an_alarm(
    run: RunDir,
) -> None:
    broken = HEALTHY | {"probe_score_fake": float("nan")}
    with pytest.raises(
        NonFiniteError, match=r"probe_score_fake became NaN at the end of epoch 2\."
    ):
        train(run, CountingEngine(scores=(HEALTHY, broken)))
    assert checkpoints.newest_step(run.checkpoints) == 5


# ---- rollback ------------------------------------------------------------------------------------


def test_a_broken_update_is_rolled_back(run: RunDir) -> None:
    engine = Overflowing(breaks_at=10)
    engine.slow_down = lambda _: setattr(engine, "breaks_at", 0)  # type: ignore[method-assign]
    assert train(run, engine, alarm_action="roll_back").status == "finished"
    assert engine.loaded == [5]
    assert [topic for topic, _ in events(run)] == ["alarm_not_finite", "roll_back"]


def test_second_failure_from_a_checkpoint_goes_back_to_the_previous_one(run: RunDir) -> None:
    """Simulates an exploded but finite state: training from steps 5 and 10 leads to NaN, training
    from step 0 does not.
    """
    engine = Overflowing(breaks_at=12)
    take_up = engine.load

    def load(arrays: Arrays) -> None:
        take_up(arrays)
        engine.breaks_at = engine.step + 2 if engine.step else 0

    engine.load = load  # type: ignore[method-assign]
    assert train(run, engine, alarm_action="roll_back").status == "finished"
    assert engine.loaded == [10, 5, 0]
    assert [record.resume_step for record in recorded(run, journal.AttemptStart)] == [0, 10, 5, 0]
    assert engine.slowed == 0.5 * 0.25 * 0.125


def test_a_discarded_state_is_never_resumed(run: RunDir) -> None:
    """The rollback to step 0 deletes the files of steps 10 and 5, so no resume can use them."""
    engine = Overflowing(breaks_at=12)
    take_up = engine.load

    def load(arrays: Arrays) -> None:
        take_up(arrays)
        engine.breaks_at = engine.step + 2

    engine.load = load  # type: ignore[method-assign]
    with pytest.raises(AlarmError, match="after 3 roll-backs"):
        train(run, engine, alarm_action="roll_back")
    assert engine.loaded == [10, 5, 0]
    assert [name for name in saved(run) if name.startswith("step")] == ["step-00000000"]


# ---- the next attempt ----------------------------------------------------------------------------


def test_failure_reason_has_a_command_to_resume_with_half_the_rates(run: RunDir) -> None:
    with pytest.raises(NonFiniteError) as failed:
        train(run, CountingEngine(nan_at=7), learning_rate_generator=2e-4)
    command = str(failed.value).split("Resume with lower rates: ")[1]
    assert command.endswith(
        "python -m gan_runtime resume toy-0001 --set learning_rate_generator=0.0001 --set"
        f" learning_rate_discriminator=5e-05 --home {run.path.parent.parent}"
    )


def test_failure_reason_without_a_checkpoint_has_a_command_to_start_again(run: RunDir) -> None:
    with pytest.raises(
        NonFiniteError, match="It has no checkpoint yet; start again with lower rates: "
    ) as failed:
        train(run, CountingEngine(nan_at=3))
    assert f" train --spec {run.spec_path} --set learning_rate_generator=5e-05 " in str(
        failed.value
    )


def test_the_second_failure_from_a_checkpoint_deletes_it(run: RunDir) -> None:
    with pytest.raises(NonFiniteError, match=r"\(epoch 3\)\. Resume with lower rates"):
        train(run, CountingEngine(nan_at=12))
    with pytest.raises(
        NonFiniteError,
        match=r"It failed twice from step 10: next time it resumes from step 5\. Resume",
    ):
        train(run, CountingEngine(nan_at=12), attempt=2)
    third = CountingEngine()
    assert train(run, third, attempt=3).status == "finished"
    assert sum(third.calls) == 10, "steps 6 to 15"


def test_an_old_checkpoint_with_nan_is_skipped(tmp_path: Path) -> None:
    for step, value in ((5, 1.0), (10, np.inf)):
        checkpoints.save(
            tmp_path, {"kernel": np.asarray([value, 1.0], np.float32)}, step, wall_s=0.0, retained=3
        )
    checkpoint = checkpoints.load_newest(tmp_path)
    assert checkpoint is not None
    assert checkpoint.step == 5
    assert checkpoint.warnings == (
        (
            "checkpoint step-00000010.safetensors has NaN or infinite numbers in kernel; using an"
            " older one."
        ),
    )


def test_failure_note_is_deleted_with_its_checkpoint(tmp_path: Path) -> None:
    for step in (1, 2):
        checkpoints.save(
            tmp_path, {"kernel": np.zeros(1, np.float32)}, step, wall_s=0.0, retained=2
        )
    assert [checkpoints.record_failure(tmp_path, 1), checkpoints.record_failure(tmp_path, 1)] == [
        None,
        None,
    ], "the oldest one stays"
    checkpoints.save(tmp_path, {"kernel": np.zeros(1, np.float32)}, 3, wall_s=0.0, retained=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-00000002.safetensors",
        "step-00000003.safetensors",
    ]


def test_a_run_without_its_checkpoints_is_not_overwritten(run: RunDir) -> None:
    train(run, CountingEngine())
    for path in run.checkpoints.iterdir():
        path.unlink()
    before = run.trainer_journal().read_bytes()
    with pytest.raises(
        CheckpointError,
        match=r"run toy-0001 has trained 3 epoch\(s\) but has no checkpoint, as after an import",
    ):
        train(run, CountingEngine(), attempt=2)
    assert run.trainer_journal().read_bytes() == before


# ---- several workers -----------------------------------------------------------------------------


def test_workers_that_see_different_folders_raise_instead_of_waiting(
    run: RunDir,
) -> None:
    class OneOfTwo(CountingEngine):
        def worker_extremes(self, number: int) -> tuple[int, int]:
            return min(number, 10), max(number, 10)

    engine = OneOfTwo()
    with (
        JournalWriter(run.trainer_journal()) as writer,
        pytest.raises(
            CheckpointError,
            match=re.escape(
                "one worker resumes from step 0, another from step 10: they see different"
            ),
        ),
    ):
        loop.train(SPEC, IMAGES, engine, run, writer, lambda: False)
    assert engine.calls == []


def test_only_the_first_worker_deletes_a_checkpoint(run: RunDir) -> None:
    train(run, CountingEngine(), epochs=1)
    for attempt in (2, 3):
        with (
            JournalWriter(run.trainer_journal(1), attempt) as writer,
            pytest.raises(
                NonFiniteError, match=r"loss_generator became NaN at step 7 \(epoch 2\)\.$"
            ),
        ):
            loop.train(
                RunSpec(**SPEC.model_dump()),
                IMAGES,
                CountingEngine(nan_at=7),
                run,
                writer,
                lambda: False,
                rank=1,
            )
    assert [name for name in saved(run) if name.startswith("step")] == ["step-00000005"]
