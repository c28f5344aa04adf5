"""From a training that keeps its weights to its loss surfaces in the store, by real processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from gan_runtime import processes
from gan_runtime.errors import RunStateError
from gan_runtime.home import Home
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import commands
from gan_runtime.store import memory, queries
from gan_runtime.surface import runner, snapshots
from gan_runtime.surface.progress import SurfaceProgress
from tests.commands_in_processes import Start, starting
from tests.surface.hand_made import ended

SMALL = ("workload=mlp_gan", "dataset=digits", "epochs=2", "batch_size_global=256", "weight_snapshots=yes")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts commands on a home in a temporary folder."""
    with starting(tmp_path) as begin:
        yield begin


def finished(start: Start, *words: str) -> str:
    """What a command printed that must go well."""
    process = start(*words)
    output, notes = process.communicate(timeout=240)
    assert process.returncode == 0, notes
    return output


def test_a_training_that_keeps_its_weights_gets_its_loss_surfaces(start: Start, tmp_path: Path) -> None:
    finished(start, "train", *(part for option in SMALL for part in ("--set", option)))
    assert snapshots.epochs(tmp_path / "runs" / "run-0001" / "snapshots") == [0, 1, 2]
    assert "the loss surfaces of run-0001 are computed" in finished(
        start, "surface", "run-0001", "--size", "5"
    )

    store = memory.from_journals(Home(tmp_path))
    assert queries.runs_with_descent(store) == ["run-0001"]
    generator, discriminator = queries.surfaces(store, "run-0001")
    assert (generator.network, discriminator.network) == ("generator", "discriminator")
    assert generator.loss.shape == (5, 5)
    assert generator.path_epoch == [0, 1, 2]
    assert (generator.path_x[-1], generator.path_y[-1]) == (0.0, 0.0)
    assert generator.share_x + generator.share_y == pytest.approx(
        1.0
    )  # three snapshots span no more than a plane
    # Both end in the same two networks: what D is paid for, G pays for.
    assert 0.0 < discriminator.path_loss[-1] < 16.0
    assert np.isfinite(generator.loss).all()
    assert np.ptp(generator.loss) > 0.0
    assert json.loads((tmp_path / "runs" / "run-0001" / "surface.json").read_text())["reason"] == ""


def test_a_run_without_snapshots_is_refused_in_words(new_run: Callable[..., RunDir]) -> None:
    run = new_run("quick-0001")
    with pytest.raises(RunStateError, match="is queued: its loss surface can be computed once it has ended"):
        runner.start(run)
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all done"))
    with pytest.raises(RunStateError, match="has kept 0 weight snapshots, but a loss surface needs 3"):
        runner.start(run)
    assert not run.surface_file.exists()


def test_a_job_that_was_killed_is_told_as_failed(new_run: Callable[..., RunDir]) -> None:
    run = ended(new_run("quick-0001"))
    job = runner.start(run)
    assert job is not None
    job.kill()
    job.wait()
    known = SurfaceProgress.read(run)
    assert known is not None
    assert (known.ended, known.reason) == (True, "the process was ended before it was done; start it again.")
    assert commands.latest_status(run).status == "finished"


def test_stopping_a_job_ends_its_process(new_run: Callable[..., RunDir]) -> None:
    run = ended(new_run("quick-0001"))
    job = runner.start(run)
    assert job is not None
    assert runner.start(run) is None  # one is enough
    runner.stop(run)
    known = SurfaceProgress.read(run)
    assert known is not None
    assert known.reason == "stopped on request."
    assert processes.alive(known.pid, known.started) is None
