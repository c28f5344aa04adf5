"""Histograms of several epochs or runs on common bins, and step losses of an epoch in bins."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries.distributions import COLUMNS, Bins, common_edges, rebinned
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]
Stored = Callable[[], Store]


@pytest.fixture
def stored(home: Home) -> Stored:
    """Returns a database with everything in the journals so far."""

    def call() -> Store:
        store = Store()
        Ingestor(home, store).catch_up()
        return store

    return call


def bins(edges: list[float], counts: list[int]) -> Bins:
    return Bins(np.array(edges), np.array(counts, np.float64))


def histogram(epoch: int, name: str, edges: list[float], counts: list[int]) -> journal.Histogram:
    return journal.Histogram(
        epoch=epoch,
        step=10 * epoch,
        name=name,
        bin_left=edges[:-1],
        bin_right=edges[-1],
        count=counts,
    )


def losses(epoch: int, first_step: int, values: list[float]) -> journal.Scalars:
    wall_s = [float(first_step + index) for index in range(len(values))]
    return journal.Scalars(
        epoch=epoch, first_step=first_step, wall_s=wall_s, values={"loss_generator": values}
    )


def by_epoch(frame: pd.DataFrame) -> dict[int, list[float]]:
    return {int(epoch): list(rows["share"]) for epoch, rows in frame.groupby("epoch")}


# ---- common bins ---------------------------------------------------------------------------------


def test_rebinning_keeps_the_mass_and_splits_a_bin_evenly() -> None:
    histogram = bins([0.0, 1.0, 2.0], [3, 1])
    shares = rebinned(histogram, np.array([0.0, 0.5, 1.0, 1.5, 2.0]))
    assert shares.tolist() == [0.375, 0.375, 0.125, 0.125]


def test_values_outside_common_bins_go_to_the_first_or_last_bin() -> None:
    histogram = bins([-1.0, 0.0, 1.0, 2.0, 3.0], [1, 2, 4, 1])
    assert rebinned(histogram, np.array([0.0, 1.0, 2.0])).tolist() == [0.375, 0.625]


@pytest.mark.parametrize("value", [-2.0, 0.0, 1.0, 2.0])
def test_identical_values_stay_in_one_bin(value: float) -> None:
    same = bins([value, value, value], [7, 0])
    shares = rebinned(same, np.linspace(-2.0, 2.0, 5))
    assert sorted(shares) == [0.0, 0.0, 0.0, 1.0]


def test_identical_bins_are_kept() -> None:
    edges = [0.0, 0.5, 1.0]
    assert common_edges([bins(edges, [1, 3]), bins(edges, [4, 0])]).tolist() == edges


def test_common_bins_drop_half_a_percent_at_either_end() -> None:
    stray = bins([0.0, 1.0, 100.0], [1_000, 1])
    other = bins([-1.0, 1.0], [100])
    edges = common_edges([stray, other], bins=2)
    assert edges.tolist() == pytest.approx([-0.99, 0.002_988, 0.995_975], abs=1e-3)


def test_constant_value_is_centered_in_common_bins() -> None:
    edges = common_edges([bins([1.0, 1.0], [5])], bins=2)
    assert edges.tolist() == [0.99, 1.0, 1.01]
    assert rebinned(bins([1.0, 1.0], [5]), edges).sum() == 1.0


# ---- stored histograms ---------------------------------------------------------------------------


def test_ridges_have_one_row_per_epoch_on_common_bins(new_run: NewRun, stored: Stored) -> None:
    run = new_run("quick-0001", epochs=2)
    journal.append(
        run.trainer_journal(),
        1,
        histogram(1, "score/fake", [0.0, 0.5, 1.0], [3, 1]),
        histogram(2, "score/fake", [0.0, 0.5, 1.0], [0, 4]),
        histogram(1, "weight/generator", [-1.0, 0.0, 1.0], [2, 2]),
        histogram(2, "weight/generator", [-2.0, 0.0, 2.0], [2, 2]),
    )
    store = stored()
    scores = queries.histogram_ridges(store, "quick-0001", "score/fake")
    assert list(scores.columns) == list(COLUMNS)
    assert by_epoch(scores) == {1: [0.75, 0.25], 2: [0.0, 1.0]}
    assert list(scores["left"]) == [0.0, 0.5] * 2
    weights = queries.histogram_ridges(store, "quick-0001", "weight/generator")
    assert len(weights) == 2 * 50
    assert {epoch: sum(shares) for epoch, shares in by_epoch(weights).items()} == pytest.approx(
        {1: 1.0, 2: 1.0}
    )
    assert (weights["left"].min(), weights["right"].max()) == pytest.approx((-1.98, 1.98))
    inner = (
        weights[(weights["left"] > -0.5) & (weights["right"] < 0.5)].groupby("epoch")["share"].sum()
    )
    assert inner[1] == pytest.approx(2 * inner[2])


def test_long_run_has_at_most_thirty_ridges_including_the_newest(
    new_run: NewRun, stored: Stored
) -> None:
    run = new_run("quick-0001", epochs=100)
    names = [
        histogram(epoch, "weight/generator", [0.0, float(epoch)], [1]) for epoch in range(1, 101)
    ]
    journal.append(run.trainer_journal(), 1, *names)
    frame = queries.histogram_ridges(stored(), "quick-0001", "weight/generator")
    assert list(frame["epoch"].unique()) == list(range(4, 101, 4))
    assert len(frame) == 25 * 50
    assert len(frame) <= 1_500


def test_overlay_uses_newest_epoch_up_to_the_requested_one(new_run: NewRun, stored: Stored) -> None:
    for number, epochs in ((1, 2), (2, 4)):
        run = new_run(f"quick-000{number}", epochs=epochs)
        shares = [
            histogram(epoch, "score/real", [0.0, 0.5, 1.0], [epoch, 4 - epoch])
            for epoch in range(1, epochs + 1)
        ]
        journal.append(run.trainer_journal(), 1, *shares)
    store = stored()
    frame = queries.histogram_overlay(store, ["quick-0001", "quick-0002"], "score/real", 3)
    assert [tuple(row) for row in frame[["run_id", "epoch", "share"]].itertuples(index=False)] == [
        ("quick-0001", 2, 0.5),
        ("quick-0001", 2, 0.5),
        ("quick-0002", 3, 0.75),
        ("quick-0002", 3, 0.25),
    ]
    assert set(queries.histogram_overlay(store, ["quick-0002"], "score/real", 4)["epoch"]) == {4}
    assert queries.histogram_overlay(store, ["quick-0002"], "score/real", 0).empty


def test_the_stored_histograms_are_listed_by_name(new_run: NewRun, stored: Stored) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        *(histogram(1, name, [0.0, 1.0], [1]) for name in ("score/real", "gradient/g")),
    )
    store = stored()
    assert queries.histogram_names(store, ["quick-0001"]) == ["gradient/g", "score/real"]
    assert queries.histogram_names(store, ["quick-0002"]) == []
    assert queries.histogram_ridges(store, "quick-0002", "score/real").empty
    assert list(queries.histogram_ridges(store, "quick-0002", "score/real").columns) == list(
        COLUMNS
    )


# ---- step losses ---------------------------------------------------------------------------------


def test_step_losses_of_an_epoch_are_counted_into_shares(new_run: NewRun, stored: Stored) -> None:
    run = new_run("quick-0001")
    steps = [0.0, 0.0, 0.0, 1.2]
    journal.append(
        run.trainer_journal(), 1, losses(1, 1, steps), losses(2, 5, [1.2, math.nan, math.inf, 0.0])
    )
    frame = queries.loss_ridges(stored(), "quick-0001", "loss_generator")
    assert list(frame.columns) == list(COLUMNS)
    shares = by_epoch(frame)
    assert shares[1] == [0.75, *[0.0] * 22, 0.25]
    assert shares[2] == [0.5, *[0.0] * 22, 0.5]
    # Half a percent is dropped at either end, so the last bin ends slightly below the highest loss.
    assert (frame["left"].min(), frame["right"].max()) == pytest.approx((0.0, 1.2), abs=0.02)
    assert np.allclose(frame["right"] - frame["left"], 0.05, atol=0.002)


def test_more_steps_narrow_the_bins_and_long_runs_show_fewer_epochs(
    new_run: NewRun, stored: Stored
) -> None:
    run = new_run("quick-0001", epochs=40)
    numbers = [
        losses(epoch, 400 * epoch, [step / 400 for step in range(400)]) for epoch in range(1, 41)
    ]
    journal.append(run.trainer_journal(), 1, *numbers)
    frame = queries.loss_ridges(stored(), "quick-0001", "loss_generator")
    assert list(frame["epoch"].unique()) == list(range(2, 41, 2))
    assert frame.groupby("epoch").size().unique().tolist() == [50]
    assert frame.groupby("epoch")["share"].sum().tolist() == pytest.approx([1.0] * 20)


def test_constant_losses_fill_one_bin(new_run: NewRun, stored: Stored) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, losses(1, 1, [0.5] * 4))
    frame = queries.loss_ridges(stored(), "quick-0001", "loss_generator")
    assert sorted(frame["share"])[-2:] == [0.0, 1.0]


def test_loss_overlay_compares_several_runs_at_one_epoch(new_run: NewRun, stored: Stored) -> None:
    for number in (1, 2):
        run = new_run(f"quick-000{number}")
        journal.append(
            run.trainer_journal(), 1, losses(1, 1, [0.0] * 4), losses(2, 5, [float(number)] * 4)
        )
    store = stored()
    frame = queries.loss_overlay(store, ["quick-0001", "quick-0002"], "loss_generator", 5)
    assert set(frame["epoch"]) == {2}
    full = frame[frame["share"] == 1.0].set_index("run_id")["left"]
    assert full["quick-0001"] == 1.0
    assert full["quick-0002"] == pytest.approx(2.0, abs=0.1)
    assert queries.loss_overlay(store, ["quick-0003"], "loss_generator", 5).empty


def test_overflowed_epoch_does_not_affect_other_epochs(new_run: NewRun, stored: Stored) -> None:
    """Earlier versions stored such epochs with NaN bins."""
    run, nan = new_run("quick-0001", epochs=3), float("nan")
    good, bad = (
        histogram(1, "gradient/g", [0.0, 1.0], [4]),
        histogram(2, "gradient/g", [nan, nan], [4]),
    )
    journal.append(run.trainer_journal(), 1, good, bad, histogram(3, "gradient/g", [0.0, 2.0], [4]))
    store = stored()
    ridges = queries.histogram_ridges(store, "quick-0001", "gradient/g")
    assert sorted(ridges["epoch"].unique()) == [1, 3]
    assert np.isfinite(ridges[["left", "right", "share"]]).all(axis=None)
    assert set(
        queries.histogram_overlay(store, ["quick-0001"], "gradient/g", epoch=2)["epoch"]
    ) == {1}
    assert set(queries.histogram(store, "quick-0001", ("gradient/g",), epoch=2)["epoch"]) == {1}
