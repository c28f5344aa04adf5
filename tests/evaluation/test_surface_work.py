"""Loss surfaces, from weight snapshots to the database, computed in this process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gan_runtime.base.errors import SurfaceError
from gan_runtime.data import loading
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.loss_landscape import Landscape
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.training import checkpoints
from gan_runtime.workloads import mlp_gan

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow initializes its devices
OPTIONS = {"workload": "mlp_gan", "dataset": "digits", "precision": "float32"}


@pytest.fixture
def run(new_run: Callable[..., RunDir]) -> RunDir:
    return new_run("quick-0001", **OPTIONS)


@pytest.fixture
def landscape(run: RunDir, home: Home) -> Landscape:
    """The landscape of untrained networks."""
    return Landscape(run.spec(), mlp_gan.WORKLOAD, loading.load("digits", home))


def keep(run: RunDir, landscape: Landscape, moves: list[tuple[float, float]]) -> None:
    """Saves a snapshot per move: the landscape's weights shifted along two random directions."""
    random = np.random.default_rng(0)
    start = {
        f"{name}/{variable.path}": variable.numpy()
        for name, network in landscape.networks.items()
        for variable in network.variables
    }
    first, second = (
        {name: random.normal(0.0, 0.05, array.shape) for name, array in start.items()} for _ in "ab"
    )
    for epoch, (along, across) in enumerate(moves):
        state = {
            name: array + along * first[name] + across * second[name]
            for name, array in start.items()
        }
        checkpoints.save_snapshot(run.snapshots, state, epoch)


def computed(home: Home, size: int) -> list[int]:
    """Runs the job; returns how many losses it computed, and the total."""
    job = JobDir(home.jobs / "loss-surface-0001")
    job.path.mkdir(parents=True)
    options = {"evaluation": "loss_surface", "run_id": "quick-0001", "size": size}
    answer = jobs.evaluate(Task(home, job, options))
    assert answer == {"networks": ["generator", "discriminator"]}
    progress = job.progress()
    return [progress.done, progress.total]


def test_three_snapshots_give_a_surface_for_each_network(
    home: Home, run: RunDir, landscape: Landscape
) -> None:
    keep(run, landscape, [(1.0, 0.0), (0.5, 0.5), (0.0, 0.0)])
    assert computed(home, size=5) == [2 * (5 * 5 + 3)] * 2
    generator, discriminator = queries.surfaces(ingest.store_of(home), "quick-0001")
    assert (generator.network, discriminator.network) == ("generator", "discriminator")
    assert (generator.loss.shape, generator.images) == ((5, 5), 256)
    assert generator.path_epoch == [0, 1, 2]
    assert (generator.path_x[-1], generator.path_y[-1]) == (0.0, 0.0)
    assert generator.share_x + generator.share_y == pytest.approx(1.0), (
        "three snapshots span a plane"
    )
    landscape.place(checkpoints.load_snapshots(run.snapshots)[2])
    for surface in (generator, discriminator):
        assert surface.path_loss[-1] == pytest.approx(landscape.loss(surface.network), rel=1e-5)
        assert np.isfinite(surface.loss).all()
        assert np.ptp(surface.loss) > 0.0


def test_constant_weights_have_no_plane_and_store_nothing(
    home: Home, run: RunDir, landscape: Landscape
) -> None:
    keep(run, landscape, [(0.0, 0.0)] * 3)
    with pytest.raises(SurfaceError, match="have not moved in two directions"):
        computed(home, size=5)
    assert not run.evaluations_journal.exists()
