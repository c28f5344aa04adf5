"""Runs of the JAX engine from the queue to their end, in trainers of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gan_runtime import journal
from gan_runtime.home import Home
from gan_runtime.hosts import Host
from gan_runtime.journal import EpochDone, HostFacts, Kernels, Record, Sample
from gan_runtime.rundir import RunDir
from gan_runtime.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from tests.trainers import end_trainers

Wait = Callable[..., Any]
TINY = {"workload": "mlp_gan", "batch_size_global": 256, "precision": "float32", "engine": "jax"}
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256


@pytest.fixture
def runtime(home: Home, host: Host, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runtime]:
    """The owner of the home, on a stated host that has JAX; its trainers are real and ended with the test."""
    cpu = host.devices["cpu"].model_copy(update={"engines": ("tensorflow", "jax")})
    monkeypatch.setattr("gan_runtime.hosts.probe", lambda: host.model_copy(update={"devices": {**host.devices, "cpu": cpu}}))
    opened = Runtime.open(home)
    yield opened
    end_trainers(home)
    opened.close()


def records(run: RunDir) -> list[Record]:
    """Everything that the trainer has written."""
    return journal.read_all(run.trainer_journal(0))


def ended(runtime: Runtime, run: RunDir, awaited: str, wait_until: Wait) -> str:
    """Waits for the end of the run and checks that it is the awaited one; returns what was said of it."""
    wait_until(lambda: not queries.run(runtime.store, run.run_id).is_live, f"the run is {awaited}")
    row = queries.run(runtime.store, run.run_id)
    assert row.status == awaited, f"{row.note}\n{run.log_tail()}"
    return row.note


def test_a_run_on_two_simulated_cores_trains_to_its_end_without_tensorflow(runtime: Runtime, wait_until: Wait) -> None:
    run = runtime.submit(RunSpec.parse({**TINY, "epochs": 2, "replicas": 2, "count_kernels": "yes"}))
    assert ended(runtime, run, "finished", wait_until) == "all 2 epochs done"
    found = records(run)
    facts = next(record.facts for record in found if isinstance(record, HostFacts))
    assert facts["strategy"] == "SPMD over 2 device(s)"
    assert {"jax", "keras"} <= set(facts["versions"])  # type: ignore[arg-type]
    assert "tensorflow" not in facts["versions"]  # type: ignore[operator]
    assert [record.step for record in found if isinstance(record, EpochDone)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
    assert len([record for record in found if isinstance(record, Sample)]) == 2
    assert next(record.fusions for record in found if isinstance(record, Kernels)) > 0  # type: ignore[operator]
    assert sorted(path.name for path in run.samples.iterdir()) == ["epoch-00001.png", "epoch-00002.png"]
    assert (run.checkpoints / "step-00000014.safetensors").exists()


def test_a_stopped_run_saves_and_goes_on_when_resumed(runtime: Runtime, wait_until: Wait) -> None:
    def epochs_of(attempt: int) -> list[Record]:
        assert queries.run(runtime.store, run.run_id).is_live, run.log_tail()
        return [record for record in records(run) if isinstance(record, EpochDone) and record.attempt == attempt]

    run = runtime.submit(RunSpec.parse({**TINY, "epochs": 10_000}))
    wait_until(lambda: epochs_of(1), "an epoch is done")
    runtime.stop(run.run_id)
    note = ended(runtime, run, "stopped", wait_until)
    runtime.resume(run.run_id)
    wait_until(lambda: epochs_of(2), "the resumed run does another one")
    first = next(record for record in records(run) if record.kind == "attempt" and record.attempt == 2)
    assert f"after step {first.resume_step} of" in note
