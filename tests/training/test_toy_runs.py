"""One complete run of each workload with networks of the smallest size: what it records, draws and
saves.

The runs train in this process, on JAX in the process with JAX. tests/full/training tests trainers
in their own processes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from safetensors.numpy import load_file

from gan_runtime import catalog
from gan_runtime.records import journal
from gan_runtime.records.journal import EpochDone, EpochScores, Histogram, Record, Sample, Scalars
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training.loop import Outcome
from tests.support import guide
from tests.support.engines import toy_runs
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.toy_runs import EPOCHS, STEPS_PER_EPOCH

STEPS = EPOCHS * STEPS_PER_EPOCH


@dataclass(frozen=True)
class Trained:
    """A finished run, and the records of its trainer."""

    workload: str
    run: RunDir
    outcome: Outcome
    records: list[Record]

    def numbers(self) -> dict[str, np.ndarray]:
        """Metric → float32 (steps,)."""
        calls = [record.values for record in self.records if isinstance(record, Scalars)]
        return {metric: np.concatenate([call[metric] for call in calls]) for metric in calls[0]}


@pytest.fixture(
    scope="module",
    params=[("mlp_gan", "jax"), *((name, "tensorflow") for name in toy_runs.RUNS)],
    ids=lambda settings: " on ".join(settings),
)
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """Each workload on TensorFlow, and one on JAX."""
    workload, engine = request.param
    run = RunDir(tmp_path_factory.mktemp("run"))
    if engine == "jax":
        jax: JaxProcess = request.getfixturevalue("jax")
        outcome = jax("tests.support.engines.toy_runs:trained", workload, engine, run.path)
    else:
        request.getfixturevalue("cores")
        outcome = toy_runs.trained(workload, engine, run.path)
    return Trained(workload, run, outcome, journal.read_all(run.trainer_journal()))


def test_run_records_every_step_epoch_and_declared_score(
    trained: Trained,
) -> None:
    assert (trained.outcome.status, trained.outcome.step) == ("finished", STEPS)
    metrics = catalog.WORKLOADS[trained.workload].metrics
    numbers = trained.numbers()
    assert {metric.name for metric in metrics if metric.role == "loss"} <= set(numbers)
    assert all(len(values) == STEPS and np.isfinite(values).all() for values in numbers.values())
    epochs = [record for record in trained.records if isinstance(record, EpochDone)]
    assert [record.step for record in epochs] == [STEPS_PER_EPOCH, STEPS]
    scores = [record.values for record in trained.records if isinstance(record, EpochScores)]
    assert len(scores) == EPOCHS
    assert all(np.isfinite(value) for values in scores for value in values.values())
    names = {record.name for record in trained.records if isinstance(record, Histogram)}
    judged = {
        f"score/{judgement.name}" for judgement in catalog.WORKLOADS[trained.workload].judgements
    }
    assert judged | {"weight/generator", "weight/discriminator"} <= names


def test_every_catalog_workload_has_a_toy_run() -> None:
    assert set(toy_runs.RUNS) == set(catalog.WORKLOADS) - {guide.NAME}


def test_images_of_each_epoch_differ_for_equal_inputs(
    trained: Trained,
) -> None:
    samples = [record for record in trained.records if isinstance(record, Sample)]
    kinds = {record.sample_kind for record in samples}
    assert kinds <= {picture.name for picture in catalog.WORKLOADS[trained.workload].pictures}
    for kind in kinds:
        of_kind = [record for record in samples if record.sample_kind == kind]
        assert [record.epoch for record in of_kind] == [1, 2]
        assert len({record.meta["inputs"] for record in of_kind}) == 1
        files = [(trained.run.path / record.file).read_bytes() for record in of_kind]
        assert files[0] != files[1]
    assert kinds


def test_every_kernel_changes_between_checkpoints(trained: Trained) -> None:
    files = sorted(trained.run.checkpoints.glob("step-*.safetensors"))
    assert [file.stem for file in files] == [
        f"step-{step:08d}" for step in (STEPS_PER_EPOCH, STEPS)
    ]
    first, last = (load_file(file) for file in files)
    kernels = [
        name for name in first if name.endswith("/kernel") and not name.startswith("optimizer_")
    ]
    assert len(kernels) >= 4
    assert [name for name in kernels if np.array_equal(first[name], last[name])] == []
