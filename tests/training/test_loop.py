"""The training loop: the bookkeeping with an engine that only counts, exact resuming with the real
one.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.data.contract import picture_set
from gan_runtime.engines.contract import (
    StepNumbers,
    WorkerSeconds,
    WorkerStatus,
)
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, loop
from tests.support.counting_engine import (
    COLLAPSED,
    HEALTHY,
    IMAGES,
    SPEC,
    CountingEngine,
    recorded,
    steps_recorded,
    train,
)


@pytest.mark.parametrize(
    ("steps", "per_loop", "alone", "calls"),
    [
        (28, 10, True, [1, 10, 10, 6, 1]),
        (28, 10, False, [10, 10, 7, 1]),
        (1, 10, True, [1]),
        (2, 10, True, [1, 1]),
        (3, 10, False, [2, 1]),
        (5, 2, False, [2, 2, 1]),
    ],
)
def test_an_epoch_is_split_into_calls(
    steps: int, per_loop: int, alone: bool, calls: list[int]
) -> None:
    assert loop.call_lengths(steps, per_loop, alone) == calls


def test_every_step_is_recorded_once_with_epochs_probes_and_phases(run: RunDir) -> None:
    engine = CountingEngine()
    outcome = train(run, engine)
    assert (outcome.status, outcome.step) == ("finished", 15)
    assert engine.calls == [1, 2, 1, 1, 2, 2, 1, 2, 2, 1]
    assert engine.marks == [4, 9, 14]  # the weights before the last step of each epoch
    assert steps_recorded(run) == list(range(1, 16))
    records = journal.read_all(run.trainer_journal())
    assert Counter(
        type(record).__name__ for record in records if not isinstance(record, journal.Scalars)
    ) == {
        "AttemptStart": 1,
        "AttemptPlan": 1,
        "KernelCounts": 1,
        "StatusChange": 1,
        "EpochDone": 3,
        "EpochScores": 3,
        "Histogram": 3,
        "Sample": 3,
        "MemoryUse": 3,
        "PhaseSeconds": 10,
        # trace, first_call, compile, steady_step, three for its scatter, and a probe per epoch
    }
    epochs = [record for record in records if isinstance(record, journal.EpochDone)]
    assert [
        (record.epoch, record.step, record.seconds, record.images, record.images_per_s)
        for record in epochs
    ] == [
        (1, 5, 2.5, 40, 16.0),
        (2, 10, 2.5, 40, 16.0),
        (3, 15, 2.5, 40, 16.0),
    ]
    assert sorted(path.name for path in run.samples.iterdir()) == [
        "samples-00001.png",
        "samples-00002.png",
        "samples-00003.png",
    ]


def test_training_time_accumulates_over_steps(run: RunDir) -> None:
    train(run, CountingEngine())
    records = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.Scalars)
    ]
    assert [value for record in records for value in record.wall_s] == pytest.approx(
        [0.5 * step for step in range(1, 16)]
    )


def test_the_next_call_runs_while_the_numbers_of_the_last_are_written(run: RunDir) -> None:
    """The second call must start before the numbers of the first reach the journal."""
    started = threading.Event()

    class Overlapping(CountingEngine):
        def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
            if len(self.calls) == 1:
                started.set()
            return super().run(steps, stop_requested)

    class WaitingWriter(JournalWriter):
        def write(self, *records: journal.Record) -> None:
            if isinstance(records[0], journal.Scalars):
                assert started.wait(10), "the device stood still while the host wrote"
            super().write(*records)

    with WaitingWriter(run.trainer_journal()) as writer:
        loop.train(SPEC, IMAGES, Overlapping(), run, writer, lambda: False)


def test_epoch_starts_while_images_and_checkpoint_of_the_last_are_written(
    run: RunDir, wait_until: Callable[..., Any]
) -> None:
    begun: list[int] = []

    def is_written(step: int) -> bool:
        pictures = list(run.samples.glob(f"*-{step // 5:05d}.png"))
        return bool(pictures) and (run.checkpoints / f"step-{step:08d}.safetensors").exists()

    class Waiting(CountingEngine):
        """The first calls of the second and third epochs end when the files of the previous epoch
        exist.
        """

        def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
            if self.step in (5, 10):
                wait_until(lambda: is_written(self.step), "pictures and checkpoint are there")
                begun.append(self.step)
            return super().run(steps, stop_requested)

    assert train(run, Waiting()).status == "finished"
    assert begun == [5, 10]
    assert steps_recorded(run) == list(range(1, 16))


@pytest.mark.parametrize(
    ("ending", "options"),
    [(COLLAPSED, {"alarm_action": "stop"}), (HEALTHY, {"epochs": 2})],
    ids=["an alarm that stops", "the last epoch"],
)
def test_training_never_continues_past_the_end_of_a_run(
    ending: dict[str, float], options: dict[str, object], run: RunDir
) -> None:
    engine = CountingEngine(scores=(HEALTHY, ending))
    assert train(run, engine, **options).step == 10
    assert engine.step == 10


def test_a_stop_between_epochs_starts_no_further_epoch(run: RunDir) -> None:
    engine = CountingEngine()
    outcome = train(run, engine, stop=lambda: engine.step >= 5)
    assert (outcome.status, outcome.step, engine.step) == ("stopped", 5, 5)


def test_stop_within_an_epoch_saves_and_the_next_attempt_resumes_there(run: RunDir) -> None:
    engine = CountingEngine()
    outcome = train(run, engine, stop=lambda: engine.step >= 7)
    assert outcome.status == "stopped"
    assert outcome.step < 15
    saved = checkpoints.load_newest(run.checkpoints)
    assert saved is not None
    assert saved.step == outcome.step
    assert saved.wall_s == pytest.approx(0.5 * outcome.step)

    assert train(run, CountingEngine(), attempt=2).status == "finished"
    assert steps_recorded(run) == list(range(1, 16))


def test_run_with_all_epochs_done_ends_immediately(run: RunDir) -> None:
    train(run, CountingEngine())
    engine = CountingEngine()
    assert train(run, engine, attempt=2).status == "finished"
    assert engine.calls == []


def test_a_nan_fails_the_run_and_names_metric_and_step(run: RunDir) -> None:
    with pytest.raises(NonFiniteError, match=r"loss_generator became NaN at step 7 \(epoch 2\)"):
        train(run, CountingEngine(nan_at=7))
    assert 7 in steps_recorded(run)  # the number itself is recorded
    saved = checkpoints.load_newest(run.checkpoints)
    assert saved is not None
    assert saved.step == 5  # from the previous epoch


@pytest.fixture
def two_engines(cores: int) -> list[Any]:  # noqa: ARG001
    """Two equal TensorFlow engines, traced."""
    from gan_runtime.engines.tf.engine import TfEngine
    from gan_runtime.workloads.mlp_gan import WORKLOAD

    pixels = np.random.default_rng(1).integers(0, 256, (IMAGES, 28, 28, 1), dtype=np.uint8)
    engines = [
        TfEngine(SPEC, WORKLOAD, picture_set("noise", pixels, "test"), "cpu") for _ in range(2)
    ]
    for engine in engines:
        engine.trace()
    return engines


def test_resumed_training_equals_uninterrupted_training_bit_for_bit(
    tmp_path: Path, two_engines: list[Any]
) -> None:
    first_engine, second_engine = two_engines
    whole, parts = RunDir(tmp_path / "whole"), RunDir(tmp_path / "parts")
    for run in (whole, parts):
        run.path.mkdir()
    train(whole, first_engine, weight_snapshots="yes")
    requests = iter([False, False, False, False, True, True])
    stopped = train(parts, second_engine, stop=lambda: next(requests, True), weight_snapshots="yes")
    assert stopped.status == "stopped"
    assert stopped.step % 5 != 0, (
        "the stop must fall within an epoch to test the position in the data"
    )
    # The engine has finished the other run.
    train(parts, first_engine, attempt=2, weight_snapshots="yes")

    first, second = (checkpoints.load_newest(run.checkpoints) for run in (whole, parts))
    assert first is not None
    assert second is not None
    assert first.step == second.step == 15
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
    snapshots = [checkpoints.load_snapshots(run.snapshots) for run in (whole, parts)]
    assert list(snapshots[0]) == [0, 1, 2, 3]
    np.testing.assert_equal(snapshots[0], snapshots[1])


def test_plan_records_images_and_updates_per_step(run: RunDir) -> None:
    train(run, CountingEngine(), updates="in_turn", discriminator_steps=2)
    (plan,) = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.AttemptPlan)
    ]
    assert (plan.images, plan.steps_per_epoch, plan.images_per_step) == (40, 2, 16)
    assert plan.updates == {"generator": 1, "discriminator": 1}, "as the engine says"


def test_old_plan_record_loads_without_newer_fields() -> None:
    plan = journal.AttemptPlan.model_validate(
        {"kind": "plan", "images": 40, "steps_per_epoch": 5, "epochs": 3}
    )
    assert (plan.images_per_step, plan.updates) == (0, {})


def test_workers_stop_where_agreed_and_only_the_first_writes_files(
    run: RunDir,
) -> None:
    """A stop request of this worker alone has no effect; all stop when the third call agrees."""

    class OneOfTwo(CountingEngine):
        def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
            numbers = super().run(steps, stop_requested)
            agreed = len(self.calls) == 3
            return StepNumbers(
                numbers.values,
                numbers.seconds,
                WorkerStatus(agreed, WorkerSeconds(0.1, 0.2, (0.1, 0.1))),
            )

    engine = OneOfTwo()
    with journal.SideJournalWriter(run.trainer_journal(1)) as writer:
        outcome = loop.train(SPEC, IMAGES, engine, run, writer, lambda: True, rank=1)  # type: ignore[arg-type]
    assert (outcome.status, outcome.step, engine.wishes) == (
        "stopped",
        sum(engine.calls),
        [True] * 3,
    )
    assert len(engine.calls) == 3
    assert sorted(path.name for path in run.path.iterdir()) == ["journal-1.jsonl"]
    assert {record.kind for record in journal.read_all(run.trainer_journal(1))} == {
        "attempt",
        "worker_times",
    }


@pytest.mark.parametrize(
    ("every", "epochs"), [(1, [1, 2, 3]), (2, [1, 2, 3]), (3, [1, 3]), (100, [1, 3])]
)
def test_sample_images_are_stored_at_intervals_and_at_both_ends(
    run: RunDir, every: int, epochs: list[int]
) -> None:
    train(run, CountingEngine(), pictures_every=every)
    assert [sample.epoch for sample in recorded(run, journal.Sample)] == epochs
    assert len(list(run.samples.glob("*.png"))) == len(epochs)
    assert len(recorded(run, journal.EpochScores)) == 3, "scores come after each epoch all the same"


def test_run_without_the_option_draws_images_after_each_epoch() -> None:
    assert SPEC.pictures_every == 1
