"""Tests as docs/testing.md describes them, one shown word for word."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gan_runtime.engines import tile_grid
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.measured import Scalars
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support.asking import ask
from tests.support.fake_trainers import FakeTrainers
from tests.support.toy_owner import Owner

NewRun = Callable[..., RunDir]


def test_a_tile_counts_less_toward_its_border() -> None:
    along = [0.146, 0.854, 0.854, 0.146]  # sin²(π (i + ½) / 4)
    weights = tile_grid.blend_weights((4, 4), "hann")
    np.testing.assert_allclose(weights, np.outer(along, along), atol=1e-3)


def test_a_renamed_run_keeps_its_rows(home: Home, new_run: NewRun) -> None:
    run, store = new_run("quick-0001"), Store()
    journal.append(
        run.trainer_journal(),
        1,
        Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"loss_generator": [0.5]}),
    )
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    ask(home).rename(run.run_id, "first try")
    ingestor.catch_up()
    assert queries.run(store, run.run_id).name == "first try"
    assert store.rows("SELECT step, value FROM scalars") == [(1, 0.5)]


def test_a_killed_trainer_leaves_a_lost_run(home: Home, new_run: NewRun) -> None:
    run, trainers = new_run("quick-0001"), FakeTrainers()
    owner = Owner(home, trainers.starter)
    owner.after(0.0)
    trainers.of(run).trains(to_step=5)
    trainers.of(run).dies("killed by signal 9")
    owner.after(1.0)
    assert owner.status(run) == "lost"
    assert "killed by signal 9" in owner.note(run)
