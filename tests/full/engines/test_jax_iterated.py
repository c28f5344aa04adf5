"""An autoregressive rollout of a checkpoint from the JAX engine."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gan_runtime.data import prepared
from gan_runtime.domains.flows.evaluation import RolloutOptions
from gan_runtime.records import image_files, journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import AttemptPlan
from gan_runtime.records.run_folder import RunDir, answers_of
from gan_runtime.training import checkpoints
from tests.support import stored_films
from tests.support.engines.jax_process import JaxProcess


def test_jax_checkpoint_gives_equal_rollouts_on_one_and_three_cores(
    home: Home, new_run: Callable[..., RunDir], jax: JaxProcess
) -> None:
    stored_films.stored_flows(home)
    overrides = {"tile": 16, "dropout": 0.0}
    run = new_run(
        "quick-0001",
        workload="pix2pix",
        dataset="street",
        engine="jax",
        precision="float32",
        **overrides,
    )
    journal.append(run.trainer_journal(), 1, AttemptPlan(images=3, steps_per_epoch=1, epochs=1))
    data = prepared.open_set(home, "street", 0).in_memory()  # type: ignore[attr-defined]
    _, state = jax("trained", "pix2pix", data, (1,), {**overrides, "batch_size_global": 2})
    checkpoints.save(run.checkpoints, state, 1, wall_s=1.0, retained=1)
    options = RolloutOptions(steps=2, ways=("naive", "map_reduce"), cores=3, blend="none")
    jax("iterated", home.path, run.run_id, options.model_dump(mode="json"))
    naive, grouped = answers_of(run, "rollout")
    assert (naive.facts["engine"], naive.facts["tiles"], grouped.facts["cores"], naive.step) == (
        "jax",
        6,
        3,
        1,
    )
    films = [
        image_files.read_film(run, record.arrays[0].file).predicted for record in (naive, grouped)
    ]
    np.testing.assert_array_equal(films[0], films[1])
    assert np.abs(films[0][1] - films[0][2]).max() > 0.0, "the second image differs"
