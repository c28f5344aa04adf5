"""The training loop: with a small stand-in engine where only the bookkeeping matters, with the real one for exact resuming."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gan_runtime import journal
from gan_runtime.data.contract import ImageSet
from gan_runtime.engines.contract import Arrays, BinCounts, ProbeResult, StepNumbers
from gan_runtime.errors import NonFiniteError
from gan_runtime.journal import JournalWriter
from gan_runtime.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, loop

IMAGES = 40
SPEC = RunSpec.parse({"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "steps_per_loop": 2, "precision": "float32"})


class CountingEngine:
    """Fulfils `engines.contract.Engine`; its loss is the number of the step, NaN at `nan_at`."""

    def __init__(self, nan_at: int = 0) -> None:
        self.step, self.nan_at, self.calls, self.marks, self.slowed = 0, nan_at, list[int](), list[int](), 1.0

    def trace(self) -> None:
        """Nothing to build."""

    def run(self, steps: int) -> StepNumbers:
        """The numbers of the next steps."""
        self.calls.append(steps)
        numbers = np.arange(self.step + 1, self.step + steps + 1, dtype=np.float32)
        self.step += steps
        numbers[numbers == self.nan_at] = np.nan
        return StepNumbers({"loss_generator": numbers}, seconds=0.5 * steps)

    def mark(self) -> None:
        """Notes after which step."""
        self.marks.append(self.step)

    def probe(self) -> ProbeResult:
        """One histogram and one score."""
        return ProbeResult([BinCounts("score/real", np.array([0.0, 0.5, 1.0]), np.array([3, 1]))], {"d_accuracy_real": 0.75})

    def slow_down(self, factor: float) -> None:
        """Notes by how much."""
        self.slowed *= factor

    def sample(self) -> np.ndarray:
        """Black images."""
        return -np.ones((64, 28, 28, 1), np.float32)

    def state(self) -> Arrays:
        """The step alone."""
        return {"step": np.asarray(self.step, np.int64)}

    def load(self, arrays: Arrays) -> None:
        """Takes up a step."""
        self.step = int(arrays["step"])

    def describe(self) -> dict[str, object]:
        """Nothing."""
        return {}


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """An empty run folder."""
    return RunDir(tmp_path)


def train(run: RunDir, engine: object, stop: Callable[[], bool] = lambda: False, attempt: int = 1) -> loop.Outcome:
    with JournalWriter(run.trainer_journal(), attempt) as writer:
        return loop.train(SPEC, IMAGES, engine, run, writer, stop)  # type: ignore[arg-type]


def steps_recorded(run: RunDir) -> list[int]:
    records = [record for record in journal.read_all(run.trainer_journal()) if isinstance(record, journal.Scalars)]
    return [record.first_step + offset for record in records for offset in range(len(record.wall_s))]


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
def test_an_epoch_is_split_into_calls(steps: int, per_loop: int, alone: bool, calls: list[int]) -> None:
    assert loop.call_lengths(steps, per_loop, alone) == calls


def test_every_step_is_recorded_once_with_epochs_probes_and_phases(run: RunDir) -> None:
    engine = CountingEngine()
    outcome = train(run, engine)
    assert (outcome.status, outcome.step) == ("finished", 15)
    assert engine.calls == [1, 2, 1, 1, 2, 2, 1, 2, 2, 1]
    assert engine.marks == [4, 9, 14]  # the weights before the last step of each epoch
    assert steps_recorded(run) == list(range(1, 16))
    records = journal.read_all(run.trainer_journal())
    assert Counter(type(record).__name__ for record in records if not isinstance(record, journal.Scalars)) == {
        "AttemptStart": 1,
        "Plan": 1,
        "StatusChange": 1,
        "EpochDone": 3,
        "EpochScores": 3,
        "Histogram": 3,
        "Sample": 3,
        "Phase": 7,  # trace, first_call, compile, steady_step, and a probe for each epoch
    }
    epochs = [record for record in records if isinstance(record, journal.EpochDone)]
    assert [(item.epoch, item.step, item.seconds, item.images, item.images_per_s) for item in epochs] == [
        (1, 5, 2.5, 40, 16.0),
        (2, 10, 2.5, 40, 16.0),
        (3, 15, 2.5, 40, 16.0),
    ]
    assert sorted(path.name for path in run.samples.iterdir()) == ["epoch-00001.png", "epoch-00002.png", "epoch-00003.png"]


def test_training_time_runs_on_from_step_to_step(run: RunDir) -> None:
    train(run, CountingEngine())
    records = [record for record in journal.read_all(run.trainer_journal()) if isinstance(record, journal.Scalars)]
    assert [value for record in records for value in record.wall_s] == pytest.approx([0.5 * step for step in range(1, 16)])


def test_the_next_call_runs_while_the_numbers_of_the_last_are_written(run: RunDir) -> None:
    """The second call must be under way before the first one's numbers reach the journal."""
    started = threading.Event()

    class Overlapping(CountingEngine):
        def run(self, steps: int) -> StepNumbers:
            if len(self.calls) == 1:
                started.set()
            return super().run(steps)

    class WaitingWriter(JournalWriter):
        def write(self, *records: journal.Record) -> None:
            if isinstance(records[0], journal.Scalars):
                assert started.wait(10), "the device stood still while the host wrote"
            super().write(*records)

    with WaitingWriter(run.trainer_journal()) as writer:
        loop.train(SPEC, IMAGES, Overlapping(), run, writer, lambda: False)


def test_a_stop_within_an_epoch_saves_and_a_later_attempt_goes_on_from_there(run: RunDir) -> None:
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


def test_a_run_whose_epochs_are_done_ends_at_once(run: RunDir) -> None:
    train(run, CountingEngine())
    engine = CountingEngine()
    assert train(run, engine, attempt=2).status == "finished"
    assert engine.calls == []


def test_a_nan_fails_the_run_and_names_metric_and_step(run: RunDir) -> None:
    with pytest.raises(NonFiniteError, match=r"loss_generator became NaN at step 7 \(epoch 2\)"):
        train(run, CountingEngine(nan_at=7))
    assert 7 in steps_recorded(run)  # the number itself is kept
    saved = checkpoints.load_newest(run.checkpoints)
    assert saved is not None
    assert saved.step == 5  # of the epoch before


@pytest.mark.usefixtures("cores")
def test_stopped_and_resumed_training_equals_uninterrupted_training_bit_for_bit(tmp_path: Path) -> None:
    from gan_runtime.engines.tf_distribute import TfEngine
    from gan_runtime.workloads.mlp_gan import WORKLOAD

    pixels = np.random.default_rng(1).integers(0, 256, (IMAGES, 28, 28, 1), dtype=np.uint8)

    def engine() -> TfEngine:
        return TfEngine(SPEC, WORKLOAD, ImageSet("noise", pixels, "test"), "cpu")

    whole, parts = RunDir(tmp_path / "whole"), RunDir(tmp_path / "parts")
    for run in (whole, parts):
        run.path.mkdir()
    train(whole, engine())
    asked = iter([False, False, False, False, True, True])
    stopped = train(parts, engine(), stop=lambda: next(asked, True))
    assert stopped.status == "stopped"
    assert stopped.step % 5 != 0, "the stop must fall within an epoch to test the position in the data"
    train(parts, engine(), attempt=2)

    first, second = (checkpoints.load_newest(run.checkpoints) for run in (whole, parts))
    assert first is not None
    assert second is not None
    assert first.step == second.step == 15
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)
