"""Runs of the JAX engine from the queue to their end, in their own trainers."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs.image_job import ARRAYS_FILE, PICTURE_FILE, ImageRequest
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import EpochDone, HostFacts, KernelCounts, Record, Sample, Scalars
from gan_runtime.records.processes import environment
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.training import checkpoints
from tests.support import large_sets
from tests.support.step_losses import losses
from tests.support.trainers import end_trainers

Wait = Callable[..., Any]
TINY = {"workload": "mlp_gan", "batch_size_global": 256, "precision": "float32", "engine": "jax"}
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256
# Adam divides by the size of a gradient: where it is nearly zero, the last bit of a sum determines
# a whole step.
SGD = {"optimizer": "sgd", "learning_rate_generator": 0.005, "learning_rate_discriminator": 0.005}


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home on a fixed host with JAX; its real trainers end with the test."""
    cpu = host.devices["cpu"].model_copy(update={"engines": ("tensorflow", "jax")})
    monkeypatch.setattr(
        "gan_runtime.hardware.hosts.probe",
        lambda: host.model_copy(update={"devices": {**host.devices, "cpu": cpu}}),
    )
    opened = Runtime.open(home)
    yield opened
    end_trainers(home)
    opened.close()


def records(run: RunDir) -> list[Record]:
    """Returns everything that the trainer has written."""
    return journal.read_all(run.trainer_journal(0))


def ended(runtime: Runtime, run: RunDir, awaited: str, wait_until: Wait) -> str:
    """Waits for the end of the run and checks that it is the awaited one; returns its note."""
    wait_until(lambda: not queries.run(runtime.store, run.run_id).is_live, f"the run is {awaited}")
    row = queries.run(runtime.store, run.run_id)
    assert row.status == awaited, f"{row.note}\n{run.log_tail()}"
    return row.note


def generated(runtime: Runtime, request: ImageRequest, wait_until: Wait) -> dict[str, np.ndarray]:
    """Returns the arrays that a job generates; its image contains all of them."""
    job = runtime.commands.request_job("generate", request)
    end = wait_until(job.end, "the job ends")
    assert end.state == "finished", f"{end.reason}\n{job.log_tail()}"
    assert (end.result["step"], end.result["warnings"]) == (2 * STEPS_PER_EPOCH, [])
    with Image.open(job.results / PICTURE_FILE) as picture:
        rows = (
            10 if not request.label else 2
        )  # a class's name on the left, at most 8 images next to it
        assert picture.height == rows * 30 - 2
    with np.load(job.results / ARRAYS_FILE, allow_pickle=False) as arrays:
        return dict(arrays)


def test_second_run_reads_the_compiled_programs_of_the_first(
    runtime: Runtime, wait_until: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR")  # tests/conftest.py sets it
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    compiled, numbers = [], []
    for _ in range(2):
        run = runtime.commands.submit(RunSpec.parse({**TINY, "epochs": 1}))
        ended(runtime, run, "finished", wait_until)
        compiled.append({path.name for path in tmp_path.glob("gan-runtime/*/*-cache")})
        numbers.append(losses(runtime, run))
    assert any(name.startswith("jit_") for name in compiled[0])
    assert compiled[1] == compiled[0]
    np.testing.assert_array_equal(numbers[1], numbers[0])


def test_jax_run_on_two_cores_trains_without_tensorflow_and_generates(
    runtime: Runtime, wait_until: Wait
) -> None:
    sizes = {"base_channels": 4, "latent_size": 16, "learning_rate_generator": 0.01}
    run = runtime.commands.submit(
        RunSpec.parse(
            {
                **TINY,
                **sizes,
                "workload": "dcgan",
                "epochs": 2,
                "replicas": 2,
                "count_kernels": "yes",
            }
        )
    )
    assert ended(runtime, run, "finished", wait_until) == "all 2 epochs done"
    run_records = records(run)
    facts = next(record.facts for record in run_records if isinstance(record, HostFacts))
    assert facts["strategy"] == "SPMD over 2 device(s)"
    assert {"jax", "keras"} <= set(facts["versions"])  # type: ignore[arg-type]
    assert "tensorflow" not in facts["versions"]  # type: ignore[operator]
    assert [record.step for record in run_records if isinstance(record, EpochDone)] == [
        STEPS_PER_EPOCH,
        2 * STEPS_PER_EPOCH,
    ]
    digests = [record.meta["inputs"] for record in run_records if isinstance(record, Sample)]
    assert len(digests) == 2
    assert digests[0] == digests[1] != "", "the digest of what both pictures were asked with"
    assert next(record.fusions for record in run_records if isinstance(record, KernelCounts)) > 0  # type: ignore[operator]
    assert sorted(path.name for path in run.samples.iterdir()) == [
        "by_class-00001.png",
        "by_class-00002.png",
    ]
    assert (run.checkpoints / "step-00000014.safetensors").exists()

    request = ImageRequest(run.run_id, count=12, seed=3)
    sevens, every = (
        generated(runtime, replace(request, label=label), wait_until) for label in ("7", "")
    )
    assert (sevens["class_images"].shape, sevens["labels"].tolist()) == ((12, 28, 28, 1), [7] * 12)
    assert every["labels"].tolist() == [0, 0, 1, 1, *range(2, 10)]
    apart = np.abs(every["class_images"] - sevens["class_images"][0]).max(axis=(1, 2, 3))
    assert apart[9] < 1e-6, "the same seed and class, the same image"
    assert np.delete(apart, 9).min() > 1e-3, "the same latent, another class"


def trainer(run: RunDir, **environ: str) -> subprocess.Popen[bytes]:
    """Starts a process that trains a run, as a cluster would."""
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    return subprocess.Popen(command, env={**environment(os.environ), **environ})


@pytest.fixture(scope="module")
def losses_of_one_process(tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    """Losses of ten epochs in one process with four replicas on digits in memory: float64 (70,)."""
    run = RunDir(Home(tmp_path_factory.mktemp("alone")).prepare().runs / "alone-0001")
    run.path.mkdir()
    write_json(run.spec_path, {**TINY, **SGD, "replicas": 4, "epochs": 10})
    assert trainer(run).wait(120) == 0
    values = [
        record.values["loss_generator"] for record in records(run) if isinstance(record, Scalars)
    ]
    return np.concatenate(values)


def test_two_workers_of_two_replicas_match_one_process_and_resume(
    runtime: Runtime, home: Home, wait_until: Wait, losses_of_one_process: np.ndarray
) -> None:
    streamed = {**TINY, **SGD, "dataset": large_sets.prepare(home), "steps_per_loop": 2}
    pair = runtime.commands.submit(
        RunSpec.parse({**streamed, "workers": 2, "replicas": 2, "epochs": 10})
    )
    wait_until(
        lambda: (
            queries.progress(runtime.store, pair.run_id).step > 3 or "Traceback" in pair.log_tail()
        ),
        "the pair trains",
    )
    runtime.commands.stop(pair.run_id)
    note = ended(runtime, pair, "stopped", wait_until)
    saved = checkpoints.load_newest(pair.checkpoints)
    assert saved is not None
    assert saved.step == len(losses(runtime, pair)) < 10 * STEPS_PER_EPOCH
    assert f"after step {saved.step} of" in note
    runtime.commands.resume(pair.run_id)
    ended(runtime, pair, "finished", wait_until)
    assert len(losses(runtime, pair)) == 10 * STEPS_PER_EPOCH
    assert np.abs(losses(runtime, pair) - losses_of_one_process).max() < 1e-5
    assert len(list(pair.samples.glob("*.png"))) == 10


def test_slurm_workers_match_one_process(
    runtime: Runtime, home: Home, wait_until: Wait, losses_of_one_process: np.ndarray
) -> None:
    run = RunDir(home.runs / "cluster-0001")
    run.path.mkdir()
    write_json(run.spec_path, {**TINY, **SGD, "workers": 2, "epochs": 1})
    job = {
        "SLURM_JOB_ID": str(random.randrange(10**6)),
        "SLURM_STEP_NODELIST": "localhost",
        "SLURM_STEP_TASKS_PER_NODE": "2",
        "SLURM_NTASKS": "2",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_NUM_TASKS": "2",
    }
    workers = [trainer(run, **job, SLURM_PROCID=rank) for rank in ("0", "1")]
    assert [worker.wait(120) for worker in workers] == [0, 0]
    wait_until(
        lambda: [row.status for row in queries.runs(runtime.store)] == ["finished"],
        "the run is known as finished",
    )
    assert np.abs(losses(runtime, run) - losses_of_one_process[:STEPS_PER_EPOCH]).max() < 1e-5
