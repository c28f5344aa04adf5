"""Pix2Pix runs on drawn pairs, in their own trainers: killed and resumed; on JAX, and into a
bundle.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gan_runtime import bundles
from gan_runtime.base.framework_settings import PASS_VARIABLE
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import HostFacts, Sample
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint
from tests.support import drawn_pairs
from tests.support.step_losses import losses
from tests.support.trainers import end_trainers

Wait = Callable[..., Any]
STEPS_PER_EPOCH = 2  # 8 pairs in batches of 4
EPOCHS = 12  # many, so that a run can be killed between the first one and the last
TINY = {
    "workload": "pix2pix",
    "dataset": drawn_pairs.NAME,
    "precision": "float32",
    "tile": 16,
    "batch_size_global": 4,
}


@pytest.fixture
def runtime(
    home: Home, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    """The owner of a home with drawn pairs, on a fixed host with both engines."""
    cpu = host.devices["cpu"].model_copy(update={"engines": ("tensorflow", "jax")})
    monkeypatch.setattr(
        "gan_runtime.hardware.hosts.probe",
        lambda: host.model_copy(update={"devices": {**host.devices, "cpu": cpu}}),
    )
    drawn_pairs.prepare(home, tmp_path / "drawn")
    opened = Runtime.open(home)
    yield opened
    end_trainers(home)
    opened.close()


def ended(runtime: Runtime, run: RunDir, awaited: str, wait_until: Wait) -> None:
    wait_until(lambda: not queries.run(runtime.store, run.run_id).is_live, f"the run is {awaited}")
    row = queries.run(runtime.store, run.run_id)
    assert row.status == awaited, f"{row.note}\n{run.log_tail()}"


def newest_checkpoint(run: RunDir) -> Checkpoint:
    newest = checkpoints.load_newest(run.checkpoints)
    assert newest is not None
    return newest


def test_killed_run_resumes_to_the_weights_of_an_uninterrupted_one(
    runtime: Runtime, wait_until: Wait
) -> None:
    """Bit for bit, with dropout, tiles cropped at random places, flips and Adam's moments."""
    spec = RunSpec.parse({**TINY, "engine": "tensorflow", "flip": "horizontal", "epochs": EPOCHS})
    killed, whole = runtime.commands.submit(spec), runtime.commands.submit(spec)
    wait_until(lambda: checkpoints.newest_step(killed.checkpoints), "a checkpoint is kept")
    identity = killed.process()
    assert identity is not None
    os.killpg(identity.pid, signal.SIGKILL)
    ended(runtime, killed, "lost", wait_until)
    assert "killed by signal 9" in queries.run(runtime.store, killed.run_id).note
    assert 0 < newest_checkpoint(killed).step < EPOCHS * STEPS_PER_EPOCH
    runtime.commands.resume(killed.run_id)
    for run in (whole, killed):
        ended(runtime, run, "finished", wait_until)
        assert newest_checkpoint(run).step == len(losses(runtime, run)) == EPOCHS * STEPS_PER_EPOCH
    assert queries.run(runtime.store, killed.run_id).attempt == 2
    np.testing.assert_array_equal(losses(runtime, killed), losses(runtime, whole))
    first, second = newest_checkpoint(whole).arrays, newest_checkpoint(killed).arrays
    assert first.keys() == second.keys()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name], err_msg=name)


def test_jax_run_trains_pairs_and_its_bundle_imports_elsewhere(
    runtime: Runtime, wait_until: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LLVM optimizes nothing: a few small steps take longer to compile than to run.
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    monkeypatch.setenv(PASS_VARIABLE, "XLA_FLAGS")
    run = runtime.commands.submit(
        RunSpec.parse({**TINY, "engine": "jax", "dropout": 0.0, "epochs": 2})
    )
    ended(runtime, run, "finished", wait_until)
    written = journal.read_all(run.trainer_journal(0))
    facts = next(record.facts for record in written if isinstance(record, HostFacts))
    assert facts["strategy"] == "SPMD over 1 device(s)"
    assert "--xla_backend_optimization_level=0" in facts["settings"]["XLA_FLAGS"]
    assert newest_checkpoint(run).step == len(losses(runtime, run)) == 2 * STEPS_PER_EPOCH
    pictures = [record.file for record in written if isinstance(record, Sample)]
    assert len(pictures) == 2

    bundles.pack([run], tmp_path / "run.zip")
    other, store = Home(tmp_path / "other"), Store()
    assert bundles.unpack(tmp_path / "run.zip", other) == [run.run_id]
    Ingestor(other, store).catch_up()
    there = queries.run(store, run.run_id)
    assert (there.status, there.workload) == ("finished", "pix2pix")
    assert all((other.run_dir(run.run_id).path / file).exists() for file in pictures)
    difference = "SELECT value FROM scalars WHERE metric = 'l1_difference' ORDER BY step"
    assert store.rows(difference) == runtime.store.rows(difference)
