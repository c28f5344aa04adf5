"""The training loop: with a small stand-in engine where only the bookkeeping matters, with the real one for exact resuming."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from gan_runtime.data.contract import picture_set
from gan_runtime.engines.contract import (
    Arrays,
    BinCounts,
    DeviceMemory,
    ProbeResult,
    ProfiledSteps,
    ProfileShare,
    StepKernels,
    StepNumbers,
    WorkerNews,
    WorkerSeconds,
)
from gan_runtime.errors import AlarmError, NonFiniteError
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.rundir import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, loop

IMAGES = 40
HEALTHY = {"probe_score_real": 0.6, "probe_score_fake": 0.4, "spread_real": 0.2, "spread_fake": 0.19}
COLLAPSED = HEALTHY | {"spread_fake": 0.002}
SPEC = RunSpec.parse(
    {"workload": "mlp_gan", "batch_size_global": 8, "epochs": 3, "steps_per_loop": 2, "precision": "float32"}
)


Kind = TypeVar("Kind", bound=journal.Record)


class CountingEngine:
    """Fulfils `engines.contract.Engine`; its loss is the number of the step, NaN at `nan_at`."""

    def __init__(self, nan_at: int = 0, scores: tuple[dict[str, float], ...] = ()) -> None:
        self.step, self.nan_at, self.calls, self.marks, self.slowed = 0, nan_at, list[int](), list[int](), 1.0
        self.scores = list(scores)  # of the next epochs; healthy ones after these
        self.wishes: list[bool] = []
        self.profiled: list[tuple[int, int]] = []  # first step, steps

    def told_by_all(self, number: int) -> tuple[int, int]:
        """One worker alone, or one that hears of itself what the others say."""
        return number, number

    def trace(self) -> None:
        """Nothing to build."""

    def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
        """The numbers of the next steps; a run of one worker tells nobody its wish to stop."""
        self.calls.append(steps)
        self.wishes.append(stop_wish)
        numbers = np.arange(self.step + 1, self.step + steps + 1, dtype=np.float32)
        self.step += steps
        numbers[numbers == self.nan_at] = np.nan
        return StepNumbers({"loss_generator": numbers}, seconds=0.5 * steps)

    def profile(self, steps: int, stop_wish: bool = False) -> ProfiledSteps:
        """As slow as a profiler."""
        self.profiled.append((self.step + 1, steps))
        numbers = self.run(steps, stop_wish)
        return ProfiledSteps(
            replace(numbers, seconds=100.0), (ProfileShare("generator", "forward", 99.0, 1.0),)
        )

    def kernels(self) -> StepKernels:
        """Few."""
        return StepKernels(900, 120, 40, 30)

    def device_memory(self) -> DeviceMemory:
        """Grows by a byte a step."""
        return DeviceMemory(self.step, 1000)

    def mark(self) -> None:
        """Notes after which step."""
        self.marks.append(self.step)

    def probe(self) -> ProbeResult:
        """One histogram and one score."""
        return ProbeResult(
            [BinCounts("score/real", np.array([0.0, 0.5, 1.0]), np.array([3, 1]))],
            self.scores.pop(0) if self.scores else HEALTHY,
        )

    def slow_down(self, factor: float) -> None:
        """Notes by how much."""
        self.slowed *= factor

    def sample(self) -> dict[str, np.ndarray]:
        """Black images."""
        return {"images": -np.ones((64, 28, 28, 1), np.float32)}

    def updates(self) -> dict[str, int]:
        """One of each network."""
        return {"generator": 1, "discriminator": 1}

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


def train(
    run: RunDir, engine: object, stop: Callable[[], bool] = lambda: False, attempt: int = 1, **options: object
) -> loop.Outcome:
    spec = RunSpec.parse({**SPEC.model_dump(), **options})
    with JournalWriter(run.trainer_journal(), attempt) as writer:
        return loop.train(spec, IMAGES, engine, run, writer, stop)  # type: ignore[arg-type]


def events(run: RunDir) -> list[tuple[str, str]]:
    """Topic and message of everything worth telling."""
    return [
        (item.topic, item.message)
        for item in journal.read_all(run.trainer_journal())
        if isinstance(item, journal.Event)
    ]


def steps_recorded(run: RunDir) -> list[int]:
    records = [
        record for record in journal.read_all(run.trainer_journal()) if isinstance(record, journal.Scalars)
    ]
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
    assert (
        Counter(type(record).__name__ for record in records if not isinstance(record, journal.Scalars))
        == {
            "AttemptStart": 1,
            "Plan": 1,
            "Kernels": 1,
            "StatusChange": 1,
            "EpochDone": 3,
            "EpochScores": 3,
            "Histogram": 3,
            "Sample": 3,
            "Memory": 3,
            "Phase": 10,  # trace, first_call, compile, steady_step, three of its scatter, and a probe for each epoch
        }
    )
    epochs = [record for record in records if isinstance(record, journal.EpochDone)]
    assert [(item.epoch, item.step, item.seconds, item.images, item.images_per_s) for item in epochs] == [
        (1, 5, 2.5, 40, 16.0),
        (2, 10, 2.5, 40, 16.0),
        (3, 15, 2.5, 40, 16.0),
    ]
    assert sorted(path.name for path in run.samples.iterdir()) == [
        "samples-00001.png",
        "samples-00002.png",
        "samples-00003.png",
    ]


def test_training_time_runs_on_from_step_to_step(run: RunDir) -> None:
    train(run, CountingEngine())
    records = [
        record for record in journal.read_all(run.trainer_journal()) if isinstance(record, journal.Scalars)
    ]
    assert [value for record in records for value in record.wall_s] == pytest.approx(
        [0.5 * step for step in range(1, 16)]
    )


def test_the_next_call_runs_while_the_numbers_of_the_last_are_written(run: RunDir) -> None:
    """The second call must be under way before the first one's numbers reach the journal."""
    started = threading.Event()

    class Overlapping(CountingEngine):
        def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
            if len(self.calls) == 1:
                started.set()
            return super().run(steps, stop_wish)

    class WaitingWriter(JournalWriter):
        def write(self, *records: journal.Record) -> None:
            if isinstance(records[0], journal.Scalars):
                assert started.wait(10), "the device stood still while the host wrote"
            super().write(*records)

    with WaitingWriter(run.trainer_journal()) as writer:
        loop.train(SPEC, IMAGES, Overlapping(), run, writer, lambda: False)


def test_an_epoch_begins_while_pictures_and_checkpoint_of_the_one_before_are_written(
    run: RunDir, wait_until: Callable[..., Any]
) -> None:
    begun: list[int] = []

    def is_written(step: int) -> bool:
        pictures = list(run.samples.glob(f"*-{step // 5:05d}.png"))
        return bool(pictures) and (run.checkpoints / f"step-{step:08d}.safetensors").exists()

    class Waiting(CountingEngine):
        """The first call of the second and of the third epoch ends when the files of the epoch before are there."""

        def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
            if self.step in (5, 10):
                wait_until(lambda: is_written(self.step), "pictures and checkpoint are there")
                begun.append(self.step)
            return super().run(steps, stop_wish)

    assert train(run, Waiting()).status == "finished"
    assert begun == [5, 10]
    assert steps_recorded(run) == list(range(1, 16))


@pytest.mark.parametrize(
    ("ending", "options"),
    [(COLLAPSED, {"alarm_action": "stop"}), (HEALTHY, {"epochs": 2})],
    ids=["an alarm that stops", "the last epoch"],
)
def test_nothing_is_trained_beyond_what_ends_a_run(
    ending: dict[str, float], options: dict[str, object], run: RunDir
) -> None:
    engine = CountingEngine(scores=(HEALTHY, ending))
    assert train(run, engine, **options).step == 10
    assert engine.step == 10


def test_a_stop_between_epochs_begins_no_other_one(run: RunDir) -> None:
    engine = CountingEngine()
    outcome = train(run, engine, stop=lambda: engine.step >= 5)
    assert (outcome.status, outcome.step, engine.step) == ("stopped", 5, 5)


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


# ---- profile, scatter, memory ---------------------------------------------------------------------------------------------


def recorded(run: RunDir, kind: type[Kind]) -> list[Kind]:
    return [record for record in journal.read_all(run.trainer_journal()) if isinstance(record, kind)]


def test_steps_are_profiled_once_an_attempt_after_ten_warm_ones(run: RunDir) -> None:
    engine = CountingEngine()
    train(run, engine, epochs=10, profile_steps=3)
    assert engine.profiled == [(12, 3)]
    [profile] = recorded(run, journal.Profile)
    assert (profile.step, profile.steps, profile.seconds) == (14, 3, 99.0)
    assert profile.shares == [
        journal.TimeShare(network="generator", category="forward", seconds=99.0, share=1.0)
    ]
    assert steps_recorded(run) == list(range(1, 51))


def test_what_a_step_is_made_of_is_written_once_an_attempt(run: RunDir) -> None:
    train(run, CountingEngine())
    found = [item for item in journal.read_all(run.trainer_journal()) if isinstance(item, journal.Kernels)]
    assert [(item.operations, item.kernels_before, item.kernels_after, item.fusions) for item in found] == [
        (900, 120, 40, 30)
    ]


def test_profiled_steps_count_in_no_time(run: RunDir) -> None:
    train(run, CountingEngine(), epochs=10, profile_steps=3)
    third = recorded(run, journal.EpochDone)[2]
    assert (third.seconds, third.images, third.images_per_s) == (1.0, 16, 16.0), "2 of its 5 steps are timed"
    walls = {
        record.first_step + index: wall
        for record in recorded(run, journal.Scalars)
        for index, wall in enumerate(record.wall_s)
    }
    assert [walls[step] for step in range(11, 17)] == [5.5, 5.5, 5.5, 5.5, 6.0, 6.5]
    assert walls[50] == pytest.approx(47 * 0.5)
    phases = {record.phase: record.seconds for record in recorded(run, journal.Phase)}
    assert (phases["steady_step"], phases["step_max"]) == (0.5, 0.5)


def test_an_attempt_too_short_for_a_profile_says_so(run: RunDir) -> None:
    engine = CountingEngine()
    train(run, engine, epochs=2, profile_steps=3)
    assert engine.profiled == []
    [event] = recorded(run, journal.Event)
    assert event.level == "warning"
    assert "3 steps must fit into an epoch of 5" in event.message
    assert "it made 10" in event.message


def test_steps_that_fill_an_epoch_are_not_profiled(run: RunDir) -> None:
    engine = CountingEngine()
    train(run, engine, epochs=10, profile_steps=5)
    assert engine.profiled == []


def test_a_resumed_attempt_is_profiled_again(run: RunDir) -> None:
    first, second = CountingEngine(), CountingEngine()
    train(run, first, stop=lambda: first.step >= 22, epochs=10, profile_steps=3)
    train(run, second, attempt=2, epochs=10, profile_steps=3)
    assert len(first.profiled) == len(second.profiled) == 1
    assert second.profiled[0][0] > first.step + 10


def test_profiled_steps_of_which_the_training_goes_back_are_profiled_again(run: RunDir) -> None:
    engine = CountingEngine(nan_at=15)
    engine.slow_down = lambda _: setattr(engine, "nan_at", 0)  # type: ignore[method-assign]
    assert train(run, engine, epochs=5, profile_steps=3, alarm_action="roll_back").status == "finished"
    assert engine.profiled == [(12, 3), (11, 3)], "back to step 10, when the attempt was warm already"


def test_the_scatter_of_the_steps_is_told_at_the_end(run: RunDir) -> None:
    class Uneven(CountingEngine):
        def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
            return replace(super().run(steps, stop_wish), seconds=steps * len(self.calls) / 10)

    train(run, Uneven(), epochs=4)
    phases = {record.phase: record.seconds for record in recorded(run, journal.Phase)}
    # 13 calls; the first does not count. Seconds a step: 0.2 twice, 0.3, 0.4, 0.5 twice, 0.6 twice, … 1.2 twice, 1.3.
    found = [phases[name] for name in ("step_p05", "steady_step", "step_p95", "step_max")]
    assert found == pytest.approx([0.2, 0.8, 1.21, 1.3])


def test_the_typical_step_is_that_of_most_steps_not_of_most_calls(run: RunDir) -> None:
    """With as many steps in a call as in an epoch, every other call is the single last step, which is slower by itself."""

    class SlowAlone(CountingEngine):
        def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
            return replace(
                super().run(steps, stop_wish), seconds=0.00166 * steps + (0.001 if steps == 1 else 0.0)
            )

    train(run, SlowAlone(), epochs=6, steps_per_loop=100)
    phases = {record.phase: record.seconds for record in recorded(run, journal.Phase)}
    assert phases["steady_step"] == pytest.approx(0.00166)


def test_memory_is_told_at_the_end_of_each_epoch(run: RunDir) -> None:
    train(run, CountingEngine())
    found = recorded(run, journal.Memory)
    assert [(item.epoch, item.step, item.device_bytes, item.device_peak_bytes) for item in found] == [
        (1, 5, 5, 1000),
        (2, 10, 10, 1000),
        (3, 15, 15, 1000),
    ]
    assert all(1e6 < item.process_bytes <= item.process_peak_bytes for item in found)


@pytest.fixture
def two_engines(cores: int) -> list[Any]:  # noqa: ARG001
    """Equal ones of TensorFlow's, traced."""
    from gan_runtime.engines.tf.distribute import TfEngine
    from gan_runtime.workloads.mlp_gan import WORKLOAD

    pixels = np.random.default_rng(1).integers(0, 256, (IMAGES, 28, 28, 1), dtype=np.uint8)
    engines = [TfEngine(SPEC, WORKLOAD, picture_set("noise", pixels, "test"), "cpu") for _ in range(2)]
    for engine in engines:
        engine.trace()
    return engines


def test_stopped_and_resumed_training_equals_uninterrupted_training_bit_for_bit(
    tmp_path: Path, two_engines: list[Any]
) -> None:
    first_engine, second_engine = two_engines
    whole, parts = RunDir(tmp_path / "whole"), RunDir(tmp_path / "parts")
    for run in (whole, parts):
        run.path.mkdir()
    train(whole, first_engine)
    asked = iter([False, False, False, False, True, True])
    stopped = train(parts, second_engine, stop=lambda: next(asked, True))
    assert stopped.status == "stopped"
    assert stopped.step % 5 != 0, "the stop must fall within an epoch to test the position in the data"
    train(parts, first_engine, attempt=2)  # which stands at the end of the other run

    first, second = (checkpoints.load_newest(run.checkpoints) for run in (whole, parts))
    assert first is not None
    assert second is not None
    assert first.step == second.step == 15
    assert first.arrays.keys() == second.arrays.keys()
    for name, array in first.arrays.items():
        np.testing.assert_array_equal(array, second.arrays[name], err_msg=name)


# ---- alarms ---------------------------------------------------------------------------------------------------------------


def test_an_alarm_is_noted_once_while_it_lasts(run: RunDir) -> None:
    outcome = train(run, CountingEngine(scores=(HEALTHY, COLLAPSED, COLLAPSED)))
    assert outcome.status == "finished"
    assert events(run) == [
        (
            "alarm_collapse",
            "The generator has collapsed in epoch 2: spread of 0.002 in generated images, of 0.2 in real images "
            "(share 1.0%, alarm below 10.0%).",
        )
    ]


def test_an_alarm_stops_the_run_when_asked_to(run: RunDir) -> None:
    outcome = train(run, CountingEngine(scores=(HEALTHY, COLLAPSED)), alarm_action="stop")
    assert (outcome.status, outcome.step) == ("stopped", 10)
    assert outcome.reason.startswith(
        "stopped by an alarm and saved, can be resumed. The generator has collapsed in epoch 2"
    )


def test_a_roll_back_trains_the_epoch_again_with_half_the_rates(run: RunDir) -> None:
    engine = CountingEngine(scores=(HEALTHY, COLLAPSED))
    outcome = train(run, engine, alarm_action="roll_back")
    assert (outcome.status, outcome.step, engine.slowed) == ("finished", 15, 0.5)
    assert events(run)[1] == (
        "roll_back",
        "Rolled back to step 5; the learning rates are 0.5 of what they were then.",
    )
    assert steps_recorded(run) == [*range(1, 11), *range(6, 16)]
    resumed = [
        record.resume_step
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.AttemptStart)
    ]
    assert resumed == [0, 5]  # what was measured beyond step 5 is void, so the curve has no seam


def test_a_nan_is_rolled_back_too(run: RunDir) -> None:
    engine = CountingEngine(nan_at=7)
    engine.slow_down = lambda _: setattr(engine, "nan_at", 0)  # type: ignore[method-assign]
    outcome = train(run, engine, alarm_action="roll_back")
    assert (outcome.status, outcome.step) == ("finished", 15)
    assert events(run)[0][0] == "alarm_not_finite"
    assert "loss_generator became NaN at step 7 (epoch 2)" in events(run)[0][1]


def test_an_alarm_in_the_first_epochs_rolls_back_to_the_start(run: RunDir) -> None:
    engine = CountingEngine(nan_at=2)
    engine.slow_down = lambda _: setattr(engine, "nan_at", 0)  # type: ignore[method-assign]
    assert train(run, engine, alarm_action="roll_back").status == "finished"
    assert events(run)[1][1].startswith("Rolled back to step 0")


def test_a_run_that_keeps_failing_ends_with_the_evidence(run: RunDir) -> None:
    engine = CountingEngine(nan_at=7)
    with pytest.raises(
        AlarmError,
        match=r"after 3 roll-backs, .* still fails: loss_generator became NaN at step 7 \(epoch 2\)",
    ):
        train(run, engine, alarm_action="roll_back")
    # Each factor is against the state that was loaded, which has the full rates: step 5, then 0; then 5, saved anew, again.
    assert engine.slowed == 0.5 * 0.25 * 0.5


def test_the_best_checkpoint_is_that_of_the_epoch_with_the_smallest_gap(run: RunDir) -> None:
    hard, easy = HEALTHY | {"probe_score_fake": 0.59}, HEALTHY | {"probe_score_fake": 0.1}
    train(run, CountingEngine(scores=(easy, hard, easy)), keep_checkpoints=1)
    assert sorted(path.name for path in run.checkpoints.iterdir()) == [
        "best.safetensors",
        "step-00000015.safetensors",
    ]
    (run.checkpoints / "step-00000015.safetensors").unlink()
    best = checkpoints.load_newest(run.checkpoints)
    assert best is not None
    assert best.step == 10


def test_the_plan_says_what_a_step_takes_and_how_often_it_changes_each_network(run: RunDir) -> None:
    train(run, CountingEngine(), updates="in_turn", discriminator_steps=2)
    (plan,) = [item for item in journal.read_all(run.trainer_journal()) if isinstance(item, journal.Plan)]
    assert (plan.images, plan.steps_per_epoch, plan.images_per_step) == (40, 2, 16)
    assert plan.updates == {"generator": 1, "discriminator": 1}, "as the engine says"


def test_a_plan_of_an_old_journal_is_read_without_what_it_does_not_say() -> None:
    plan = journal.Plan.model_validate({"kind": "plan", "images": 40, "steps_per_epoch": 5, "epochs": 3})
    assert (plan.images_per_step, plan.updates) == (0, {})


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(("collapsed", "topics"), [(True, ["alarm_collapse"]), (False, [])])
def test_a_generator_that_ignores_its_latents_is_flagged(
    run: RunDir, collapsed: bool, topics: list[str]
) -> None:
    from gan_runtime.engines.tf.distribute import TfEngine
    from gan_runtime.workloads import mlp_gan

    def networks() -> dict[str, Any]:
        """The generator makes the same image of every latent, and learns too slowly to get out of that."""
        networks = mlp_gan.networks()
        if collapsed:
            kernel = networks["generator"].get_layer("hidden").kernel
            kernel.assign(np.zeros(kernel.shape, np.float32))
        return networks

    pixels = np.random.default_rng(1).integers(
        118, 138, (IMAGES, 28, 28, 1), dtype=np.uint8
    )  # as grey as a new generator's
    spec = RunSpec.parse({**SPEC.model_dump(), "learning_rate_generator": 1e-9})
    workload = replace(mlp_gan.WORKLOAD, make_networks=networks)
    engine = TfEngine(spec, workload, picture_set("noise", pixels, "test"), "cpu")
    with JournalWriter(run.trainer_journal(), 1) as writer:
        loop.train(spec, IMAGES, engine, run, writer, lambda: False)
    assert [topic for topic, _ in events(run)] == topics


def test_several_workers_stop_where_they_agreed_and_only_the_first_writes_files(run: RunDir) -> None:
    """The wish of this worker alone stops nothing; that of another does, told in the third call."""

    class OneOfTwo(CountingEngine):
        def run(self, steps: int, stop_wish: bool = False) -> StepNumbers:
            numbers = super().run(steps, stop_wish)
            agreed = len(self.calls) == 3
            return StepNumbers(
                numbers.values, numbers.seconds, WorkerNews(agreed, WorkerSeconds(0.1, 0.2, (0.1, 0.1)))
            )

    engine = OneOfTwo()
    with journal.SideJournalWriter(run.trainer_journal(1)) as writer:
        outcome = loop.train(SPEC, IMAGES, engine, run, writer, lambda: True, rank=1)  # type: ignore[arg-type]
    assert (outcome.status, outcome.step, engine.wishes) == ("stopped", sum(engine.calls), [True] * 3)
    assert len(engine.calls) == 3
    assert sorted(path.name for path in run.path.iterdir()) == ["journal-1.jsonl"]
    assert {record.kind for record in journal.read_all(run.trainer_journal(1))} == {"attempt", "worker_times"}


@pytest.mark.parametrize(("every", "epochs"), [(1, [1, 2, 3]), (2, [1, 2, 3]), (3, [1, 3]), (100, [1, 3])])
def test_pictures_are_kept_of_every_so_many_epochs_and_of_the_first_and_the_last(
    run: RunDir, every: int, epochs: list[int]
) -> None:
    train(run, CountingEngine(), pictures_every=every)
    assert [sample.epoch for sample in recorded(run, journal.Sample)] == epochs
    assert len(list(run.samples.glob("*.png"))) == len(epochs)
    assert len(recorded(run, journal.EpochScores)) == 3, "scores come after each epoch all the same"


def test_a_run_from_before_draws_after_each_epoch() -> None:
    assert SPEC.pictures_every == 1
