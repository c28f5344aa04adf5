"""The job that measures showers: network requests, records, and refused options."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner

from gan_runtime.base.errors import CheckpointError, DatasetError, SpecError
from gan_runtime.cli import following
from gan_runtime.cli.app import app
from gan_runtime.commands import Commands
from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.showers import measurement, scores
from gan_runtime.domains.showers.entry import ANGLE, DEPOSIT, ENERGY, SHOWERS, shower_fields
from gan_runtime.domains.showers.evaluation import SUBMISSION_FILE, Weights
from gan_runtime.domains.showers.features import values_of
from gan_runtime.domains.showers.score_metrics import SCORES, Estimate
from gan_runtime.domains.showers.scores import ShowerSample
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.jobs import evaluate
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.jobs.process import Task
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptPlan, StatusChange
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.checkpoints import Checkpoint
from tests.domains.showers.toy_showers import SHAPE, toy_showers
from tests.support import measured_showers
from tests.support.asking import ask

NewRun = Callable[..., RunDir]
ROWS, HELD_OUT = 160, 100


def rows_of(count: int, seed: int) -> dict[str, np.ndarray]:
    """Toy showers as a data set stores them."""
    cells, energy, angle = toy_showers(count, seed)
    deposit = cells.sum(axis=(1, 2, 3)) * 50.0
    return {
        SHOWERS: values_of(cells)[..., np.newaxis].astype(np.float32),
        ENERGY: energy.astype(np.float32),
        ANGLE: angle.astype(np.float32),
        DEPOSIT: deposit.astype(np.float32),
    }


@dataclass
class Networks:
    """Replaces trained networks: returns real showers of another seed, with energies scaled by the
    weights loaded last.
    """

    data: ArraySet
    checkpoint: Checkpoint
    loaded: list[float] = field(default_factory=list)
    showers: np.ndarray | None = None
    workload: object = None
    spec: RunSpec = field(default_factory=lambda: RunSpec.parse({"batch_size_global": ROWS // 10}))

    @property
    def engine(self) -> Networks:
        return self

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        self.loaded.append(float(arrays["scale"][0]))

    def generated(self, count: int, seed: int) -> dict[str, np.ndarray]:
        assert (count, seed) == (HELD_OUT, 3), "as many as are held out"
        if self.showers is not None:
            return {SHOWERS: self.showers}
        cells, _, _ = toy_showers(HELD_OUT, seed=1)
        return {SHOWERS: values_of(self.loaded[-1] * cells)[..., np.newaxis]}


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> Networks:
    """Replaces a run's networks in the job."""
    data = ArraySet(
        "showers",
        shower_fields((*SHAPE, 1)),
        rows_of(ROWS, 2),
        "test",
        kept_back=rows_of(HELD_OUT, 1),
    )
    loaded = Networks(data, Checkpoint({"scale": np.asarray([1.0])}, 20, 1.0, Path("step-20")))
    monkeypatch.setattr("gan_runtime.training.inference.of_run", lambda *_: loaded)
    monkeypatch.setattr(
        "gan_runtime.domains.showers.measurement.milliseconds_each", lambda _, rows: 7.0 / rows
    )
    return loaded


@pytest.fixture
def one_score(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits the job to one score, because classifiers take seconds."""

    def compared(
        reference: ShowerSample, other: ShowerSample, _: object = None
    ) -> dict[str, Estimate]:
        bounds = scores.edges(reference.features.energy_gev, 5)
        return {
            SCORES[0].name: scores.sampling_fraction_error(
                reference.features, other.features, bounds
            )
        }

    monkeypatch.setattr(measurement, "compared", compared)


def done(home: Home, run: RunDir, checkpoint: Weights, submission: str = "no") -> list[Answer]:
    """Runs the job in this process, and returns the answers that it wrote."""
    job = JobDir(home.jobs / "measure-physics-0001")
    job.results.mkdir(parents=True)
    options = {"checkpoint": checkpoint, "showers": 500, "seed": 3, "submission": submission}
    document = {"evaluation": "physics", "run_id": run.run_id, **options}
    job.write_request(JobRequest(kind="physics", options=document, asker="a test"))
    evaluate(Task(home, job, document))
    return answers_of(run, "physics")


def planned(run: RunDir) -> RunDir:
    """The run, with ten steps per epoch."""
    journal.append(run.trainer_journal(), 1, AttemptPlan(images=ROWS, steps_per_epoch=10, epochs=2))
    return run


def test_too_few_held_out_rows_are_refused_before_measuring(
    home: Home, new_run: NewRun, networks: Networks
) -> None:
    networks.data = ArraySet(
        "few", networks.data.fields, rows_of(18, 2), "test", kept_back=rows_of(2, 1)
    )
    with pytest.raises(DatasetError, match=r"data set few has 18 training and 2 held-out"):
        done(home, planned(new_run("quick-0001")), "newest")


@pytest.mark.usefixtures("networks")
def test_checkpoint_is_measured_against_held_out_rows(home: Home, new_run: NewRun) -> None:
    (record,) = done(home, planned(new_run("quick-0001")), "newest")
    assert (record.epoch, record.step, record.checkpoint, record.facts["showers"]) == (
        2,
        20,
        "newest",
        HELD_OUT,
    )
    assert record.facts["grid"] == list(SHAPE)
    by_name = {score.name: score for score in record.scores}
    assert set(by_name) == {score.name for score in SCORES}
    assert by_name["sampling_fraction"].value == pytest.approx(0.0, abs=1e-6), (
        "these are the held-out rows themselves"
    )
    assert by_name["sampling_fraction"].floor > 1e-4, "and the floor is of other rows"
    # Rounding gives 0.04 here; the floor of these 100 rows is 515.
    assert by_name["challenge_fpd"].value < 0.5 < by_name["challenge_fpd"].floor, (
        "these rows themselves, but for rounding"
    )
    assert math.isnan(by_name["fpd"].value), "it needs more showers than are held out"
    assert (by_name["ms_single"].value, by_name["ms_batch"].value) == (7.0, 0.07)
    pairs = {shower.facts["pair"] for shower in record.arrays}
    assert len(record.arrays) == 2 * len(pairs)
    real, generated = (
        next(array for array in record.arrays if array.name == side)
        for side in ("real", "generated")
    )
    assert (real.places, real.values, real.facts) == (
        generated.places,
        generated.values,
        generated.facts,
    )


@pytest.mark.usefixtures("one_score")
def test_generated_showers_are_written_as_a_submission(
    home: Home, new_run: NewRun, networks: Networks
) -> None:
    grid = (16, 9, 45)
    cells = np.random.RandomState(0).exponential(0.01, (HELD_OUT, *grid)).astype(np.float32)
    energy = np.linspace(10.0, 100.0, HELD_OUT, dtype=np.float32)
    rows = {
        SHOWERS: values_of(cells)[..., np.newaxis],
        ENERGY: energy,
        DEPOSIT: cells.sum(axis=(1, 2, 3)) * 50.0,
    }
    fields = shower_fields((*grid, 1), angle=False, periodic=(0,))
    networks.data = ArraySet("showers", fields, rows, "test", kept_back=rows)
    networks.showers = rows[SHOWERS]
    (record,) = done(home, planned(new_run("quick-0001")), "newest", submission="yes")
    assert record.facts["periodic"] == [0]
    with h5py.File(home.jobs / "measure-physics-0001" / "results" / SUBMISSION_FILE) as file:
        assert file["incident_energies"][:, 0] == pytest.approx(energy * 1e3)
        assert file["showers"].shape == (HELD_OUT, 6_480)
        assert file["showers"][3].sum() == pytest.approx(cells[3].sum() * 1e3, rel=1e-3)


@pytest.mark.usefixtures("one_score")
def test_every_epoch_is_measured_with_its_own_weights(
    home: Home, new_run: NewRun, networks: Networks
) -> None:
    run = planned(new_run("quick-0001"))
    checkpoints.save(run.checkpoints, networks.checkpoint.arrays, 20, wall_s=1.0, retained=1)
    for epoch, scale in ((0, 0.5), (1, 1.25)):
        checkpoints.save_snapshot(run.snapshots, {"scale": np.asarray([scale], np.float32)}, epoch)
    records = done(home, run, "every")
    assert networks.loaded == [0.5, 1.25, 1.0]
    assert [(record.epoch, record.step, record.checkpoint) for record in records] == [
        (0, 0, "epoch 0"),
        (1, 10, "epoch 1"),
        (2, 20, "newest"),
    ]
    errors = [
        next(score.value for score in record.scores if score.name == "sampling_fraction")
        for record in records
    ]
    assert errors == pytest.approx([0.5, 0.25, 0.0], abs=1e-4)


@pytest.mark.usefixtures("one_score")
def test_epochs_of_a_long_run_are_measured_evenly_spread(
    home: Home, new_run: NewRun, networks: Networks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "MOST_EPOCHS", 3)
    run = planned(new_run("quick-0001"))
    checkpoints.save(run.checkpoints, networks.checkpoint.arrays, 20, wall_s=1.0, retained=1)
    for epoch in (0, 1, 2, 3, 4, 5, 8):
        checkpoints.save_snapshot(run.snapshots, networks.checkpoint.arrays, epoch)
    assert [record.epoch for record in done(home, run, "every")] == [0, 3, 8]


def test_run_without_showers_is_refused_before_a_job_starts(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    with pytest.raises(
        DatasetError, match="This run generates no showers: its data set has no field showers"
    ):
        ask(home).evaluate("quick-0001", "physics")
    with pytest.raises(
        SpecError, match="showers is 3, but allowed is a whole number from 100 to 10000"
    ):
        ask(home).evaluate("quick-0001", "physics", {"showers": 3})
    assert not home.jobs.exists()


def test_only_runs_with_stored_weights_can_be_measured(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="done"))
    monkeypatch.setattr(jobs, "why_never", lambda *_: "")
    assert inference.states_of(run) == ()
    with pytest.raises(CheckpointError, match="run quick-0001 has no checkpoint to evaluate"):
        ask(home).evaluate("quick-0001", "physics")
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    assert inference.states_of(run) == ("newest",)
    with pytest.raises(
        CheckpointError,
        match="checkpoint is 'every', but run quick-0001 has newest: use one of them",
    ):
        ask(home).evaluate("quick-0001", "physics", {"checkpoint": "every"})
    checkpoints.save_snapshot(run.snapshots, {"a": np.zeros(1, np.float32)}, 0)
    assert inference.states_of(run) == ("newest", "every")


def test_command_prints_scores_next_to_their_floor(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    requests: list[tuple[str, str, Mapping[str, Any]]] = []

    def measure(asked_by: Commands, run_id: str, name: str, options: Mapping[str, Any]) -> JobDir:
        requests.append((run_id, name, options))
        assert asked_by.actor.may_change
        measured_showers.measured(run, 2)
        return JobDir(home.jobs / "measure-physics-0001")

    monkeypatch.setattr(Commands, "evaluate", measure)
    monkeypatch.setattr(following, "to_its_end", lambda *_: {"epochs": [2], "warnings": []})
    words = ("evaluate", "quick-0001", "physics", "--set", "showers=300")
    command = [*words, "--home", str(home.path)]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    assert requests == [("quick-0001", "physics", {"showers": "300"})]
    assert "quick-0001 after epoch 2 (best), 150 showers:" in result.output
    lines = [line.split("  ") for line in result.output.splitlines()]
    first = next(
        [part.strip() for part in line if part.strip()]
        for line in lines
        if line[0] == SCORES[0].title
    )
    assert first == [SCORES[0].title, "150.00% ± 15.00%", "15.00%"]
    record = json.loads(CliRunner().invoke(app, [*command, "--json"]).output)
    assert record["scores"][0]["name"] == SCORES[0].name
