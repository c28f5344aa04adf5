"""Runs of the JAX engine from the command line to their end, in processes as a person starts them."""

from __future__ import annotations

from pathlib import Path

from gan_runtime import journal
from gan_runtime.home import Home
from gan_runtime.journal import EpochDone, HostFacts, Kernels, Record, Sample, StatusChange
from gan_runtime.rundir import RunDir
from tests.commands_in_processes import starting

TINY = ["--set", "workload=mlp_gan", "--set", "batch_size_global=256", "--set", "precision=float32", "--set", "engine=jax"]
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256


def records(run: RunDir) -> list[Record]:
    """Everything that the trainer has written."""
    return journal.read_all(run.trainer_journal(0))


def test_a_run_on_two_simulated_cores_trains_to_its_end_without_tensorflow(tmp_path: Path) -> None:
    with starting(tmp_path) as start:
        train = start("train", "--set", "epochs=2", "--set", "replicas=2", "--set", "count_kernels=yes", *TINY)
        output, errors = train.communicate(timeout=200)
    assert train.returncode == 0, errors
    assert "finished" in output
    (run,) = Home(tmp_path).run_dirs()
    assert run.spec().engine == "jax"
    found = records(run)
    ends = [record for record in found if isinstance(record, StatusChange)]
    assert (ends[-1].status, ends[-1].reason) == ("finished", "all 2 epochs done")
    facts = next(record.facts for record in found if isinstance(record, HostFacts))
    assert facts["strategy"] == "SPMD over 2 device(s)"
    assert {"jax", "keras"} <= set(facts["versions"])  # type: ignore[arg-type]
    assert "tensorflow" not in facts["versions"]  # type: ignore[operator]
    assert [record.step for record in found if isinstance(record, EpochDone)] == [STEPS_PER_EPOCH, 2 * STEPS_PER_EPOCH]
    assert len([record for record in found if isinstance(record, Sample)]) == 2
    assert next(record.fusions for record in found if isinstance(record, Kernels)) > 0  # type: ignore[operator]
    assert sorted(path.name for path in run.samples.iterdir()) == ["epoch-00001.png", "epoch-00002.png"]
    assert (run.checkpoints / "step-00000014.safetensors").exists()


def test_a_stopped_run_saves_and_goes_on_when_resumed(tmp_path: Path) -> None:
    home = Home(tmp_path)
    with starting(tmp_path) as start:
        train = start("train", "--set", "epochs=10000", *TINY)
        while not any(isinstance(record, EpochDone) for run in home.run_dirs() for record in records(run)):
            assert train.poll() is None, train.communicate()[1]
        (run,) = home.run_dirs()
        assert start("stop", run.run_id).wait(timeout=60) == 0
        train.communicate(timeout=120)
        stopped = [record for record in records(run) if isinstance(record, StatusChange)][-1]
        assert stopped.status == "stopped"
        resume = start("resume", run.run_id)
        while not any(isinstance(record, EpochDone) and record.attempt == 2 for record in records(run)):
            assert resume.poll() is None, resume.communicate()[1]
    first = next(record for record in records(run) if record.kind == "attempt" and record.attempt == 2)
    assert f"after step {first.resume_step} of" in stopped.reason
