"""Showers on request: the energy and angle that a user enters, as inputs of the networks."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.errors import SpecError
from gan_runtime.data.contract import ArraySet
from gan_runtime.domains.showers.entry import ANGLE, ENERGY, shower_fields
from gan_runtime.domains.showers.workload import LATENTS, WORKLOAD
from gan_runtime.engines.inputs import HostNoise
from gan_runtime.jobs import image_job
from gan_runtime.jobs.image_job import ImageRequest
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints
from gan_runtime.training.inference import TrainedNetworks
from gan_runtime.training.latents import LatentPoints

SHAPE = (9, 9, 9, 1)
HELD_OUT = {
    "showers": np.zeros((4, *SHAPE), np.float16),
    ENERGY: np.array([10, 20, 30, 40], np.float32),
    "deposit": np.ones(4, np.float32),
    ANGLE: np.array([1.1, 1.2, 1.3, 1.4], np.float32),
}


class Echo:
    """An engine that returns its inputs."""

    def generate(self, inputs: dict[str, np.ndarray], seed: int = 0) -> dict[str, np.ndarray]:
        return {**inputs, "seed": np.array([seed])}


@pytest.fixture
def networks() -> TrainedNetworks:
    spec = RunSpec.parse({"workload": "shower_3dgan", "dataset": "showers"})
    data = ArraySet("showers", shower_fields(SHAPE), HELD_OUT, "test", kept_back=HELD_OUT)
    checkpoint = checkpoints.Checkpoint({}, 20, 1.0, Path("step-20"))
    return TrainedNetworks(spec, WORKLOAD, data, Echo(), checkpoint)  # type: ignore[arg-type]


def test_showers_have_the_requested_energy_and_angle(networks: TrainedNetworks) -> None:
    points = LatentPoints((5, 6))
    inputs = networks.generated_at(points, values={ENERGY: 1.5, ANGLE: math.pi / 2})
    assert inputs[ENERGY].tolist() == [1.5, 1.5], "150 GeV in the unit of the field"
    np.testing.assert_allclose(inputs[ANGLE], math.pi / 2)
    size = inputs[LATENTS].shape[1]
    np.testing.assert_array_equal(inputs[LATENTS][1], HostNoise(6).normal(1, size)[0])
    as_held_out = networks.generated_at(points)
    np.testing.assert_allclose(as_held_out[ENERGY], [0.1, 0.2])
    np.testing.assert_allclose(as_held_out[ANGLE], [1.1, 1.2])


def test_strip_changes_only_the_latent(networks: TrainedNetworks) -> None:
    inputs = networks.generated_at(LatentPoints((5, 6), "strip", frames=3))
    np.testing.assert_allclose(inputs[ENERGY], [0.1, 0.1, 0.1])
    np.testing.assert_allclose(inputs[ANGLE], [1.1, 1.1, 1.1])
    assert np.abs(np.diff(inputs[LATENTS], axis=0)).max() > 0.1


def test_out_of_range_energies_and_unknown_conditions_are_refused(
    home: Home, new_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("showers-0001", workload="shower_3dgan", dataset="showers")
    checkpoints.save(run.checkpoints, {}, 7, wall_s=1.0, retained=1)
    monkeypatch.setattr(image_job.inference, "check_data", lambda *_: None)
    fields = shower_fields((17, 17, 25, 1))
    monkeypatch.setattr(image_job.loading, "fields_of", lambda *_: fields)
    found = image_job.conditions_of(home, run.run_id)
    assert [(condition.title, condition.unit) for condition in found] == [
        ("Energy", "GeV"),
        ("Angle", "°"),
    ]
    image_job.check(home, ImageRequest(run.run_id, values={"energy": 150.0, "angle": 80.0}))
    with pytest.raises(SpecError, match="energy is 1001, but allowed is 1 to 1000: use a number"):
        image_job.check(home, ImageRequest(run.run_id, values={"energy": 1001.0}))
    with pytest.raises(SpecError, match=r"'mass' is not a number that .*: use energy and angle\."):
        image_job.check(home, ImageRequest(run.run_id, values={"mass": 1.0}))
