"""The rollout job with TensorFlow networks; tests/domains/flows/test_rollout.py uses a toy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gan_runtime.data import prepared
from gan_runtime.domains.flows import evaluation
from gan_runtime.evaluation import jobs
from gan_runtime.records import image_files, journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptPlan
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.training import checkpoints
from tests.support import stored_films
from tests.support.flow_jobs import done

NewRun = Callable[..., RunDir]


def of_pix2pix(home: Home, new_run: NewRun) -> RunDir:
    """Creates a TensorFlow run on `street`."""
    stored_films.stored_flows(home)
    options = {"workload": "pix2pix", "dataset": "street", "pix2pix.tile": 16}
    return new_run("quick-0001", **options, engine="tensorflow", precision="float32")


def weights(home: Home, run: RunDir) -> dict[str, np.ndarray]:
    """Returns weights of new networks of a run, different on each call."""
    from gan_runtime.domains.flows.workload import WORKLOAD

    spec, fields = run.spec(), prepared.open_set(home, "street").fields
    networks = WORKLOAD.networks(spec.of_workload, spec.entry.reads(spec.of_workload, fields))
    return {
        f"{name}/{variable.path}": np.asarray(variable)
        for name, network in networks.items()
        for variable in network.variables
    }


@pytest.mark.usefixtures("cores")
def test_earlier_epoch_gives_another_film_than_newest_checkpoint(
    home: Home, new_run: NewRun
) -> None:
    run = of_pix2pix(home, new_run)
    journal.append(run.trainer_journal(), 1, AttemptPlan(images=3, steps_per_epoch=10, epochs=2))
    newest = weights(home, run)
    checkpoints.save(run.checkpoints, newest, 20, wall_s=1.0, retained=1)
    checkpoints.save_snapshot(run.snapshots, weights(home, run), 1)
    checkpoints.save_snapshot(run.snapshots, newest, 2)
    for epoch in (None, 1, 2):
        done(home, run, steps=2, ways=("whole",), epoch=epoch)
    records = answers_of(run, "rollout")
    assert [(record.checkpoint, record.epoch, record.step) for record in records] == [
        ("newest", 2, 20),
        ("epoch 1", 1, 10),
        ("epoch 2", 2, 20),
    ]
    of_newest, of_first, of_second = (
        image_files.read_film(run, record.arrays[0].file).predicted for record in records
    )
    np.testing.assert_array_equal(of_newest[0], of_first[0], "the same frame is given")
    rounded, other = (np.abs(film[1:] - of_newest[1:]).max() for film in (of_second, of_first))
    assert other > 20.0 * rounded, (
        "other weights make another film; the same ones in half precision do not"
    )


@pytest.mark.usefixtures("cores")
def test_real_checkpoint_gives_equal_rollouts_on_one_and_three_cores(
    home: Home, new_run: NewRun
) -> None:
    """An untrained Pix2Pix in TensorFlow."""
    run = of_pix2pix(home, new_run)
    checkpoints.save(run.checkpoints, weights(home, run), 10, wall_s=1.0, retained=1)
    naive, grouped = done(home, run, steps=2, ways=("naive", "map_reduce"), cores=3)
    films = [
        image_files.read_film(run, record.arrays[0].file).predicted for record in (naive, grouped)
    ]
    np.testing.assert_array_equal(films[0], films[1])
    assert np.abs(films[0][1] - films[0][2]).max() > 0.0, "the second picture is another one"
    assert (naive.facts["engine"], naive.facts["tile"], naive.facts["tiles"]) == (
        "tensorflow",
        [16, 16],
        6,
    )
    for answer in (naive, grouped):
        stages = next(curve for curve in answer.curves if curve.name == "stages")
        seconds = dict(zip(stages.facts["names"], stages.series[0].values, strict=True))
        assert all(value > 0.0 for name, value in seconds.items() if name != "compile")
    assert jobs.why_never(home, run, evaluation.ROLLOUT) == ""
    assert evaluation.tile_of(run) == 16
