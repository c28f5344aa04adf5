"""Measurements of the training loop: profiled steps, the scatter of step times, memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gan_runtime.engines.contract import (
    StepNumbers,
)
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.support.counting_engine import (
    CountingEngine,
    recorded,
    steps_recorded,
    train,
)


def test_steps_are_profiled_once_per_attempt_after_ten_warm_steps(run: RunDir) -> None:
    engine = CountingEngine()
    train(run, engine, epochs=10, profile_steps=3)
    assert engine.profiled == [(12, 3)]
    [profile] = recorded(run, journal.Profile)
    assert (profile.step, profile.steps, profile.seconds) == (14, 3, 99.0)
    assert profile.shares == [
        journal.TimeShare(network="generator", category="forward", seconds=99.0, share=1.0)
    ]
    assert steps_recorded(run) == list(range(1, 51))


def test_kernel_counts_are_written_once_per_attempt(run: RunDir) -> None:
    train(run, CountingEngine())
    records = [
        record
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.KernelCounts)
    ]
    assert [
        (record.operations, record.kernels_before, record.kernels_after, record.fusions)
        for record in records
    ] == [(900, 120, 40, 30)]


def test_profiled_steps_are_excluded_from_all_times(run: RunDir) -> None:
    train(run, CountingEngine(), epochs=10, profile_steps=3)
    third = recorded(run, journal.EpochDone)[2]
    assert (third.seconds, third.images, third.images_per_s) == (
        1.0,
        16,
        16.0,
    ), "2 of its 5 steps are timed"
    walls = {
        record.first_step + index: wall
        for record in recorded(run, journal.Scalars)
        for index, wall in enumerate(record.wall_s)
    }
    assert [walls[step] for step in range(11, 17)] == [5.5, 5.5, 5.5, 5.5, 6.0, 6.5]
    assert walls[50] == pytest.approx(47 * 0.5)
    phases = {record.phase: record.seconds for record in recorded(run, journal.PhaseSeconds)}
    assert (phases["steady_step"], phases["step_max"]) == (0.5, 0.5)


def test_attempt_too_short_for_a_profile_logs_a_warning(run: RunDir) -> None:
    engine = CountingEngine()
    train(run, engine, epochs=2, profile_steps=3)
    assert engine.profiled == []
    [event] = recorded(run, journal.Event)
    assert event.level == "warning"
    assert "3 steps must fit into an epoch of 5" in event.message
    assert "The attempt made 10" in event.message


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


def test_rolled_back_profiled_steps_are_profiled_again(run: RunDir) -> None:
    engine = CountingEngine(nan_at=15)
    engine.slow_down = lambda _: setattr(engine, "nan_at", 0)  # type: ignore[method-assign]
    assert (
        train(run, engine, epochs=5, profile_steps=3, alarm_action="roll_back").status == "finished"
    )
    assert engine.profiled == [
        (12, 3),
        (11, 3),
    ], "back to step 10, when the attempt was warm already"


def test_scatter_of_step_times_is_recorded_at_the_end(run: RunDir) -> None:
    class Uneven(CountingEngine):
        def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
            return replace(super().run(steps, stop_requested), seconds=steps * len(self.calls) / 10)

    train(run, Uneven(), epochs=4)
    phases = {record.phase: record.seconds for record in recorded(run, journal.PhaseSeconds)}
    # 13 calls; the first does not count. Seconds per step: 0.2 twice, 0.3, 0.4, 0.5 twice, 0.6
    # twice, … 1.2 twice, 1.3.
    seconds = [phases[name] for name in ("step_p05", "steady_step", "step_p95", "step_max")]
    assert seconds == pytest.approx([0.2, 0.8, 1.21, 1.3])


def test_typical_step_time_weights_steps_not_calls(run: RunDir) -> None:
    """If a call is as long as an epoch, every second call is the single last step, which is slower
    by itself.
    """

    class SlowAlone(CountingEngine):
        def run(self, steps: int, stop_requested: bool = False) -> StepNumbers:
            return replace(
                super().run(steps, stop_requested),
                seconds=0.00166 * steps + (0.001 if steps == 1 else 0.0),
            )

    train(run, SlowAlone(), epochs=6, steps_per_loop=100)
    phases = {record.phase: record.seconds for record in recorded(run, journal.PhaseSeconds)}
    assert phases["steady_step"] == pytest.approx(0.00166)


def test_memory_is_recorded_at_the_end_of_each_epoch(run: RunDir) -> None:
    train(run, CountingEngine())
    records = recorded(run, journal.MemoryUse)
    assert [
        (record.epoch, record.step, record.device_bytes, record.device_peak_bytes)
        for record in records
    ] == [
        (1, 5, 5, 1000),
        (2, 10, 10, 1000),
        (3, 15, 15, 1000),
    ]
    assert all(1e6 < record.process_bytes <= record.process_peak_bytes for record in records)
