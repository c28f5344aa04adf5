"""The job that generates showers of one energy and angle: its reference showers, its results, and
refused requests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.errors import (
    CheckpointError,
    DatasetError,
    GanRuntimeError,
    JobError,
    SpecError,
)
from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.showers import evaluation, measurement
from gan_runtime.domains.showers.entry import ANGLE, ENERGY, SHOWERS, shower_fields
from gan_runtime.domains.showers.evaluation import (
    RESULT_FILE,
    SingleEnergyOptions,
    SingleEnergyResult,
)
from gan_runtime.domains.showers.features import values_of
from gan_runtime.engines.inputs import host_values
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.domains.showers.test_measurement import Networks, rows_of
from tests.support.asking import ask

NewRun = Callable[..., RunDir]
SIMULATED = ArraySet("showers", shower_fields((17, 17, 25, 1)), {}, "test")


class Halved(Networks):
    """Networks that return each requested shower with half of its energy in the cells."""

    def generated_for(self, rows: dict[str, np.ndarray], seed: int) -> dict[str, np.ndarray]:
        assert (seed, set(rows)) == (3, set(self.data.fields))
        return {SHOWERS: values_of(0.5 * 0.02 * rows[SHOWERS] ** (1.0 / 0.85))}


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch) -> Halved:
    """Replaces a run's networks in the job, with a grid that the simulator supports."""
    loaded = Halved(SIMULATED, checkpoints.Checkpoint({}, 20, 1.0, Path("step-20")))
    monkeypatch.setattr("gan_runtime.training.inference.of_run", lambda *_: loaded)
    return loaded


def test_showers_are_simulated_for_the_requested_energy_and_angle() -> None:
    rows, simulated = measurement.reference_rows(
        SIMULATED, SingleEnergyOptions("quick-0001", 137.0, 84.0, showers=50)
    )
    assert simulated
    assert rows[SHOWERS].shape == (50, 17, 17, 25, 1)
    assert rows[ENERGY] == pytest.approx(np.full(50, 1.37))
    assert np.degrees(rows[ANGLE]).mean() == pytest.approx(84.0, abs=0.5), "as measured on them"
    assert np.ptp(rows[ANGLE]) > 0.0
    again, _ = measurement.reference_rows(
        SIMULATED, SingleEnergyOptions("quick-0001", 137.0, 84.0, showers=50)
    )
    assert (again[SHOWERS] == rows[SHOWERS]).all()


def test_angle_outside_the_range_of_the_grid_is_refused() -> None:
    with pytest.raises(
        DatasetError,
        match=r"angle_deg is 50, but showers on this grid measure 7\d to 10\d at 137 GeV",
    ):
        measurement.reference_rows(SIMULATED, SingleEnergyOptions("quick-0001", 137.0, 50.0))


def test_unsimulated_grid_is_compared_with_nearest_held_out_showers() -> None:
    stored = rows_of(100, 1)
    data = ArraySet("showers", shower_fields((11, 11, 12, 1)), stored, "test", kept_back=stored)
    rows, simulated = measurement.reference_rows(
        data, SingleEnergyOptions("quick-0001", 100.0, 80.0, showers=5)
    )
    assert not simulated
    away = np.abs(np.log(stored[ENERGY] / 100.0)) + np.abs(stored[ANGLE] - math.radians(80.0))
    nearest = np.argsort(away)[:5]
    assert rows[ENERGY] == pytest.approx(stored[ENERGY][nearest] / 100.0), (
        "each with what has made it"
    )
    assert rows[ANGLE] == pytest.approx(stored[ANGLE][nearest])
    values = host_values(stored, data.fields)[SHOWERS]
    assert (rows[SHOWERS][0] == values[away.argmin()]).all()


@pytest.mark.usefixtures("networks")
def test_result_has_real_and_generated_measurements(home: Home, new_run: NewRun) -> None:
    job = JobDir(home.jobs / "make-showers-0001")
    job.results.mkdir(parents=True)
    job_options = SingleEnergyOptions(new_run("quick-0001").run_id, 120.0, 90.0, showers=10, seed=3)
    job.write_request(JobRequest(kind="make_showers", options=asdict(job_options), asker="a test"))
    assert measurement.make(Task(home, job, asdict(job_options)))["step"] == 20
    result = SingleEnergyResult.model_validate_json((job.results / RESULT_FILE).read_bytes())
    assert (result.energy_gev, result.showers, result.simulated, result.grid) == (
        120.0,
        10,
        True,
        (17, 17, 25),
    )
    assert result.response["real"] == pytest.approx(0.02, rel=0.2)
    assert result.response["generated"] == pytest.approx(result.response["real"] / 2.0, rel=1e-3)
    assert result.measured is not None
    assert math.degrees(result.measured["generated"]) == pytest.approx(90.0, abs=3.0)
    depth = next(curve for curve in result.curves if curve.name == "along_z")
    real, generated = depth.series
    assert (real.name, generated.name) == ("real", "generated")
    assert generated.values == pytest.approx([value / 2.0 for value in real.values], rel=1e-3)
    assert [shower.name for shower in result.pictures] == ["real", "generated"]


@pytest.mark.parametrize(
    ("job_options", "kind", "sentence"),
    [
        (
            SingleEnergyOptions("quick-0001", 0.0),
            SpecError,
            "energy_gev is 0, but allowed is 1 to 1,000: use a number",
        ),
        (
            SingleEnergyOptions("quick-0001", math.nan),
            SpecError,
            "energy_gev is nan, but allowed is 1 to 1,000",
        ),
        (
            SingleEnergyOptions("quick-0001", 100.0, 10.0),
            SpecError,
            "angle_deg is 10, but allowed is 45 to 135: use",
        ),
        (
            SingleEnergyOptions("quick-0001", 100.0, showers=1),
            SpecError,
            "showers is 1, but allowed is 2 to 1,000: use",
        ),
        (
            SingleEnergyOptions("quick-0001", 100.0),
            DatasetError,
            "This run generates no showers: its data set has no field showers",
        ),
    ],
)
def test_invalid_requests_are_refused_before_a_job_starts(
    home: Home,
    new_run: NewRun,
    job_options: SingleEnergyOptions,
    kind: type[GanRuntimeError],
    sentence: str,
) -> None:
    new_run("quick-0001")
    with pytest.raises(kind, match=sentence):
        ask(home).request_job(evaluation.MAKE, job_options)
    assert not home.jobs.exists()


def test_repeated_request_reuses_the_finished_job(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    monkeypatch.setattr(evaluation, "makes_showers", lambda *_: True)
    monkeypatch.setattr(job_queue, "start", lambda _: None)
    job_options = SingleEnergyOptions("quick-0001", 100.0)
    with pytest.raises(CheckpointError, match="run quick-0001 has no checkpoint"):
        ask(home).request_job(evaluation.MAKE, job_options)
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 10, wall_s=1.0, retained=1)
    job = ask(home).request_job(evaluation.MAKE, job_options)
    with pytest.raises(
        JobError, match="showers of run quick-0001 are being generated already by job"
    ):
        ask(home).request_job(evaluation.MAKE, job_options)
    assert evaluation.finished_job(home, job_options) is None
    ended(job, step=10)
    look = evaluation.finished_job(home, job_options)
    assert look is not None
    assert look.job == job
    assert evaluation.finished_job(home, SingleEnergyOptions("quick-0001", 101.0)) is None
    checkpoints.save(run.checkpoints, {"a": np.zeros(1, np.float32)}, 20, wall_s=2.0, retained=1)
    assert evaluation.finished_job(home, job_options) is None, "the networks have changed since"


def ended(job: JobDir, step: int) -> None:
    """Ends a job as if it had generated showers."""
    job.results.mkdir()
    (job.results / RESULT_FILE).write_text("{}")
    job.write_end(End(state="finished", reason="done", result={"step": step}))
