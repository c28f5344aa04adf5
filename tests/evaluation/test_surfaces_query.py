"""Queries of loss surfaces in the database."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from tests.evaluation.hand_made import surface


def test_newest_surface_per_network_is_returned_generator_first(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.earlier_journal("surface"), 1, surface("discriminator", 1.0), surface("generator", 5.0)
    )
    journal.append(run.earlier_journal("surface"), 1, surface("generator", 9.0))
    generator, discriminator = queries.surfaces(ingest.store_of(home), "quick-0001")
    np.testing.assert_array_equal(generator.loss, [[9.0, 10.0, 11.0], [12.0, 13.0, 14.0]])
    np.testing.assert_array_equal(discriminator.loss, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (generator.x, generator.y, generator.path_epoch) == ([0.0, 1.0, 2.0], [0.0, 1.0], [0, 3])
    assert (generator.path_x, generator.path_y, generator.path_loss) == (
        [1.0, 0.0],
        [0.5, 0.0],
        [2.5, 0.5],
    )
    assert (generator.share_x, generator.share_y, generator.images) == (0.75, 0.125, 256)


def test_runs_with_a_surface_precede_runs_that_could_have_one(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    with_surface, keeping, training = (
        new_run(f"quick-000{number}", seconds=number, weight_snapshots="yes")
        for number in (1, 2, 3)
    )
    new_run("quick-0004", seconds=4)
    journal.append(with_surface.earlier_journal("surface"), 1, surface("generator", 1.0))
    for run in (with_surface, keeping):
        journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="done"))
    journal.append(training.trainer_journal(), 1, StatusChange(status="running", reason="training"))
    assert queries.runs_with_descent(ingest.store_of(home)) == ["quick-0001", "quick-0002"]


def test_store_without_surfaces_returns_empty_lists(home: Home) -> None:
    store = ingest.store_of(home)
    assert queries.surfaces(store, "quick-0001") == []
    assert queries.runs_with_descent(store) == []
