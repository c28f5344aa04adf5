"""Choosing the best checkpoint by a score measured after training."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import CheckpointError, RunStateError
from gan_runtime.cli.app import app
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.support import measured_images
from tests.support.asking import ask_of
from tests.support.measured_showers import measured

NewRun = Callable[..., RunDir]


def ended(run: RunDir, epochs: int = 3) -> RunDir:
    """Ends the run with ten steps per epoch; each weight equals its epoch number, and only the
    newest checkpoint has the optimizer slot.
    """
    records: list[journal.Record] = [
        journal.AttemptPlan(images=640, steps_per_epoch=10, epochs=epochs)
    ]
    journal.append(
        run.trainer_journal(), 1, *records, journal.StatusChange(status="finished", reason="done")
    )
    for epoch in range(epochs + 1):
        checkpoints.save_snapshot(run.snapshots, state(epoch), epoch)
    checkpoints.save(
        run.checkpoints, state(epochs), 10 * epochs, wall_s=7.0, retained=1, shortfall=0.1
    )
    return run


def state(epoch: int) -> dict[str, np.ndarray]:
    return {
        "net/weight": np.full(3, epoch, np.float32),
        "optimizer_net/slot": np.full(3, 0.5, np.float32),
        "optimizer_net/step": np.asarray(epoch, np.int64),
    }


def test_the_weights_of_a_chosen_epoch_become_the_best_checkpoint(new_run: NewRun) -> None:
    run = ended(new_run("quick-0001"))
    ask_of(run).keep_best(run.run_id, 2, "FPD (35)")
    best = checkpoints.load(run.checkpoints, "best")
    assert (best.step, best.arrays["net/weight"].tolist()) == (20, [2.0, 2.0, 2.0])
    assert best.arrays["optimizer_net/slot"].tolist() == [
        0.5,
        0.5,
        0.5,
    ], "all else is the newest one's"
    assert checkpoints.load(run.checkpoints, "newest").step == 30
    messages = [
        record
        for record in journal.read_all(run.supervisor_journal)
        if isinstance(record, journal.Event)
    ]
    assert [record.message for record in messages] == [
        "The best checkpoint is now that of epoch 2, by FPD (35). Requested by: a test."
    ]
    # A resumed run chooses again, no matter how bad its next epoch is.
    checkpoints.save(run.checkpoints, state(4), 40, wall_s=9.0, retained=1, shortfall=50.0)
    assert checkpoints.load(run.checkpoints, "best").step == 40


def test_an_invalid_best_checkpoint_is_refused_and_changes_nothing(new_run: NewRun) -> None:
    run = ended(new_run("quick-0001"))
    with pytest.raises(
        CheckpointError,
        match="epoch is 9, but run quick-0001 stores the weights of epochs 0 to 3",
    ):
        ask_of(run).keep_best(run.run_id, 9, "FPD")
    (run.snapshots / "epoch-00002.safetensors").write_bytes(b"torn")
    with pytest.raises(
        CheckpointError, match=r"epoch-00002.safetensors cannot be read .*use another epoch"
    ):
        ask_of(run).keep_best(run.run_id, 2, "FPD")
    with np.errstate(over="ignore"):
        checkpoints.save_snapshot(run.snapshots, {"net/weight": np.full(3, 1e5, np.float32)}, 1)
    with pytest.raises(
        CheckpointError, match="net/weight holds numbers too large for the half precision"
    ):
        ask_of(run).keep_best(run.run_id, 1, "FPD")
    assert checkpoints.load(run.checkpoints, "best").step == 30
    for other, sentence in (("ema", "stores no weights"), ("live", "stores no weights")):
        bare = new_run(f"{other}-0001", samples_from=other, ema_decay=0.9)
        if other == "ema":
            ended(bare)
        with pytest.raises((CheckpointError, RunStateError), match=sentence):
            ask_of(bare).keep_best(bare.run_id, 1, "FPD")
    training = ended(new_run("quick-0002"))
    journal.append(
        training.trainer_journal(), 2, journal.StatusChange(status="running", reason="training")
    )
    with pytest.raises(
        RunStateError, match="quick-0002 is running: choose its best checkpoint once it has ended"
    ):
        ask_of(training).keep_best(training.run_id, 1, "FPD")


def test_the_best_command_finds_the_epoch_by_a_measured_score(home: Home, new_run: NewRun) -> None:
    run = ended(new_run("showers-0001", workload="shower_3dgan", dataset="showers"))
    where = ["--home", str(home.path)]
    assert (
        "fewer than two epochs" in CliRunner().invoke(app, ["best", "showers-0001", *where]).output
    )
    measured(run, 1, 2)  # the fault is half as large after epoch 2
    answer = CliRunner().invoke(app, ["best", "showers-0001", "--by", "physics_fpd", *where])
    assert answer.exit_code == 0, answer.output
    assert "The best checkpoint of showers-0001 is now that of epoch 2." in answer.output
    assert checkpoints.load(run.checkpoints, "best").step == 20
    refused = CliRunner().invoke(app, ["best", "showers-0001", "--by", "physics_ms_single", *where])
    assert refused.exit_code == 2
    assert "by is 'physics_ms_single', but allowed is" in refused.output


def test_the_best_command_maximizes_a_higher_is_better_score(home: Home, new_run: NewRun) -> None:
    run = ended(new_run("quick-0001"))
    answers = [measured_images.answer(epoch, coverage=0.1 * epoch) for epoch in (1, 3, 2)]
    journal.append(run.evaluations_journal, 1, *answers)
    words = ["best", "quick-0001", "--by", "quality_coverage", "--home", str(home.path)]
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    assert "The best checkpoint of quick-0001 is now that of epoch 3." in answer.output
    assert checkpoints.load(run.checkpoints, "best").step == 30
