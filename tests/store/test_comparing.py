"""What the Compare page asks of several runs together, answered from journals written by hand."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from gan_runtime import journal
from gan_runtime.home import Home
from gan_runtime.rundir import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]
Losses = Callable[..., None]


@pytest.fixture
def store() -> Store:
    """Filled by `losses`."""
    return Store()


@pytest.fixture
def losses(home: Home, store: Store, new_run: NewRun) -> Losses:
    """Stores a run with these losses of G, one a step, each step taking `seconds_per_step`: `losses("quick-0001", 1.0, 2.0)`."""
    ingestor = Ingestor(home, store)

    def make(run_id: str, *values: float, seconds_per_step: float = 1.0, **options: object) -> None:
        run = new_run(run_id, **options)
        wall_s = [seconds_per_step * step for step in range(1, len(values) + 1)]
        calls = journal.Scalars(epoch=1, first_step=1, wall_s=wall_s, values={"loss_generator": list(values)})
        journal.append(run.trainer_journal(), 1, calls)
        ingestor.catch_up()

    return make


def records(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(frame.itertuples(index=False, name=None))


# ---- groups -----------------------------------------------------------------------------------------------------------------


def test_a_group_is_the_mean_of_its_runs_between_the_lowest_and_the_highest(store: Store, losses: Losses) -> None:
    losses("quick-0001", 1.0, 2.0, 3.0)
    losses("quick-0002", 3.0, 4.0, 11.0)
    losses("quick-0003", 9.0, 9.0, 9.0)
    groups = {"two": ["quick-0001", "quick-0002"], "one": ["quick-0003"]}
    frame = queries.group_curves(store, groups, "loss_generator", max_points=3)
    assert list(frame.columns) == ["run", "x", "low", "mean", "high", "runs"]
    assert records(frame) == [
        ("one", 1.0, 9.0, 9.0, 9.0, 1),
        ("one", 2.0, 9.0, 9.0, 9.0, 1),
        ("one", 3.0, 9.0, 9.0, 9.0, 1),
        ("two", 1.0, 1.0, 2.0, 3.0, 2),
        ("two", 2.0, 2.0, 3.0, 4.0, 2),
        ("two", 3.0, 3.0, 7.0, 11.0, 2),
    ]


def test_runs_of_other_speed_are_put_on_one_grid_of_seconds(store: Store, losses: Losses) -> None:
    losses("quick-0001", 1.0, 2.0, 3.0, 4.0, 5.0)  # at 1, 2, 3, 4, 5 s
    losses("quick-0002", 10.0, 20.0, seconds_per_step=2.0)  # at 2 and 4 s
    frame = queries.group_curves(store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator", x="wall_s", max_points=5)
    # The second run is half-way between its points at 3 s, and has nothing to say at 1 and 5 s.
    assert records(frame[["x", "low", "mean", "high", "runs"]]) == [
        (1.0, 1.0, 1.0, 1.0, 1),
        (2.0, 2.0, 6.0, 10.0, 2),
        (3.0, 3.0, 9.0, 15.0, 2),
        (4.0, 4.0, 12.0, 20.0, 2),
        (5.0, 5.0, 5.0, 5.0, 1),
    ]


def test_a_long_group_has_as_many_points_as_asked_for_and_ends_at_the_last_step(store: Store, losses: Losses) -> None:
    losses("quick-0001", *[float(step) for step in range(1_000)])
    losses("quick-0002", *[float(step) for step in range(700)])
    frame = queries.group_curves(store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator", max_points=50)
    assert len(frame) == 50
    assert (frame["runs"].iloc[0], frame["runs"].iloc[-1]) == (2, 1)
    assert (frame["x"].iloc[0], frame["x"].iloc[-1]) == (1.0, 1000.0)
    # Buckets of 20 and of 14 steps: the first ones hold losses of 0 to 19 and of 0 to 13, the last one 980 to 999.
    assert (frame["mean"].iloc[0], frame["mean"].iloc[-1]) == ((9.5 + 6.5) / 2, 989.5)


def test_a_group_of_runs_of_a_single_step_is_a_single_point(store: Store, losses: Losses) -> None:
    losses("quick-0001", 1.0)
    losses("quick-0002", 2.0)
    frame = queries.group_curves(store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator")
    assert records(frame) == [("both", 1.0, 1.0, 1.5, 2.0, 2)]


def test_a_group_that_has_measured_nothing_is_empty_with_its_columns(store: Store) -> None:
    frame = queries.group_curves(store, {"none": ["quick-0001"]}, "loss_generator")
    assert frame.empty
    assert list(frame.columns) == ["run", "x", "low", "mean", "high", "runs"]
