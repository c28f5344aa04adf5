"""Alarms in the training loop and their effects: an event, the end of the run, or a rollback."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.errors import AlarmError
from gan_runtime.base.metrics import Metric
from gan_runtime.data.contract import picture_set
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, loop
from tests.support.counting_engine import (
    COLLAPSED,
    HEALTHY,
    IMAGES,
    SPEC,
    CountingEngine,
    events,
    steps_recorded,
    train,
)


def test_an_alarm_is_logged_once_while_it_lasts(run: RunDir) -> None:
    outcome = train(run, CountingEngine(scores=(HEALTHY, COLLAPSED, COLLAPSED)))
    assert outcome.status == "finished"
    assert events(run) == [
        (
            "alarm_collapse",
            (
                "The generator collapsed in epoch 2: spread 0.002 in generated images, 0.2 in real"
                " images (share 1.0%, alarm below 10.0%)."
            ),
        )
    ]


def test_an_alarm_stops_the_run_with_alarm_action_stop(run: RunDir) -> None:
    outcome = train(run, CountingEngine(scores=(HEALTHY, COLLAPSED)), alarm_action="stop")
    assert (outcome.status, outcome.step) == ("stopped", 10)
    assert outcome.reason.startswith(
        "stopped by an alarm and saved, can be resumed. The generator collapsed in epoch 2"
    )


def test_rollback_repeats_the_epoch_with_half_the_rates(run: RunDir) -> None:
    engine = CountingEngine(scores=(HEALTHY, COLLAPSED))
    outcome = train(run, engine, alarm_action="roll_back")
    assert (outcome.status, outcome.step, engine.slowed) == ("finished", 15, 0.5)
    assert events(run)[1] == (
        "roll_back",
        "Rolled back to step 5; learning rates × 0.5 from there on.",
    )
    assert steps_recorded(run) == [*range(1, 11), *range(6, 16)]
    resumed = [
        record.resume_step
        for record in journal.read_all(run.trainer_journal())
        if isinstance(record, journal.AttemptStart)
    ]
    assert resumed == [0, 5]  # measurements after step 5 are void, so the curve has no seam


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
        match=r"still fails after 3 roll-backs .*: loss_generator became NaN at step 7 \(epoch 2\)",
    ):
        train(run, engine, alarm_action="roll_back")
    # Each factor applies to the loaded state, which has the full rates: step 5, then 0, then the
    # newly saved 5.
    assert engine.slowed == 0.5 * 0.25 * 0.5


def test_no_quality_metric_means_no_best_checkpoint(run: RunDir) -> None:
    train(run, CountingEngine(), keep_checkpoints=1)
    assert [path.name for path in run.checkpoints.iterdir()] == ["step-00000015.safetensors"]


def test_best_checkpoint_is_from_the_epoch_with_the_best_quality(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = catalog.WORKLOADS[SPEC.workload]
    error = Metric("error", "Error", "Error", role="quality", per_epoch=True, better="lower")
    monkeypatch.setitem(
        catalog.WORKLOADS, SPEC.workload, replace(entry, metrics=(*entry.metrics, error))
    )
    good, bad = HEALTHY | {"error": 0.1}, HEALTHY | {"error": 0.5}
    train(run, CountingEngine(scores=(bad, good, bad)), keep_checkpoints=1)
    assert sorted(path.name for path in run.checkpoints.iterdir()) == [
        "best.safetensors",
        "step-00000015.safetensors",
    ]
    (run.checkpoints / "step-00000015.safetensors").unlink()
    best = checkpoints.load_newest(run.checkpoints)
    assert best is not None
    assert best.step == 10


@pytest.mark.usefixtures("cores")
@pytest.mark.parametrize(("collapsed", "topics"), [(True, ["alarm_collapse"]), (False, [])])
def test_a_generator_that_ignores_its_latents_is_flagged(
    run: RunDir, collapsed: bool, topics: list[str]
) -> None:
    from gan_runtime.engines.tf.engine import TfEngine
    from gan_runtime.workloads import mlp_gan

    def networks() -> dict[str, Any]:
        """The generator creates equal images from all latents, and learns too slowly to recover."""
        networks = mlp_gan.networks()
        if collapsed:
            kernel = networks["generator"].get_layer("hidden").kernel
            kernel.assign(np.zeros(kernel.shape, np.float32))
        return networks

    pixels = np.random.default_rng(1).integers(
        118, 138, (IMAGES, 28, 28, 1), dtype=np.uint8
    )  # as gray as those of a new generator
    spec = RunSpec.parse({**SPEC.model_dump(), "learning_rate_generator": 1e-9})
    workload = replace(mlp_gan.WORKLOAD, make_networks=networks)
    engine = TfEngine(spec, workload, picture_set("noise", pixels, "test"), "cpu")
    with JournalWriter(run.trainer_journal(), 1) as writer:
        loop.train(spec, IMAGES, engine, run, writer, lambda: False)
    assert [topic for topic, _ in events(run)] == topics
