"""Queries of the Compare page over several runs, on journals written for these tests."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd
import pytest

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
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
    """Stores a run with these generator losses, one per step of `seconds_per_step`:
    `losses("quick-0001", 1.0, 2.0)`.
    """
    ingestor = Ingestor(home, store)

    def make(run_id: str, *values: float, seconds_per_step: float = 1.0, **options: object) -> None:
        run = new_run(run_id, **options)
        wall_s = [seconds_per_step * step for step in range(1, len(values) + 1)]
        calls = journal.Scalars(
            epoch=1, first_step=1, wall_s=wall_s, values={"loss_generator": list(values)}
        )
        journal.append(run.trainer_journal(), 1, calls)
        ingestor.catch_up()

    return make


def records(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(frame.itertuples(index=False, name=None))


# ---- groups --------------------------------------------------------------------------------------


def test_group_curve_has_mean_lowest_and_highest_of_its_runs(store: Store, losses: Losses) -> None:
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


def test_runs_of_different_speed_share_one_time_grid(store: Store, losses: Losses) -> None:
    losses("quick-0001", 1.0, 2.0, 3.0, 4.0, 5.0)  # at 1, 2, 3, 4, 5 s
    losses("quick-0002", 10.0, 20.0, seconds_per_step=2.0)  # at 2 and 4 s
    frame = queries.group_curves(
        store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator", x="wall_s", max_points=5
    )
    # At 3 s the second run is halfway between its points; at 1 and 5 s it has no value.
    assert records(frame[["x", "low", "mean", "high", "runs"]]) == [
        (1.0, 1.0, 1.0, 1.0, 1),
        (2.0, 2.0, 6.0, 10.0, 2),
        (3.0, 3.0, 9.0, 15.0, 2),
        (4.0, 4.0, 12.0, 20.0, 2),
        (5.0, 5.0, 5.0, 5.0, 1),
    ]


def test_long_group_has_requested_points_and_ends_at_the_last_step(
    store: Store, losses: Losses
) -> None:
    losses("quick-0001", *[float(step) for step in range(1_000)])
    losses("quick-0002", *[float(step) for step in range(700)])
    frame = queries.group_curves(
        store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator", max_points=50
    )
    assert len(frame) == 50
    assert (frame["runs"].iloc[0], frame["runs"].iloc[-1]) == (2, 1)
    assert (frame["x"].iloc[0], frame["x"].iloc[-1]) == (1.0, 1000.0)
    # Buckets of 20 and 14 steps: the first ones contain losses 0 to 19 and 0 to 13, the last one
    # 980 to 999.
    assert (frame["mean"].iloc[0], frame["mean"].iloc[-1]) == ((9.5 + 6.5) / 2, 989.5)


def test_group_of_single_step_runs_is_a_single_point(store: Store, losses: Losses) -> None:
    losses("quick-0001", 1.0)
    losses("quick-0002", 2.0)
    frame = queries.group_curves(store, {"both": ["quick-0001", "quick-0002"]}, "loss_generator")
    assert records(frame) == [("both", 1.0, 1.0, 1.5, 2.0, 2)]


def test_group_without_measurements_is_empty_but_has_columns(store: Store) -> None:
    frame = queries.group_curves(store, {"none": ["quick-0001"]}, "loss_generator")
    assert frame.empty
    assert list(frame.columns) == ["run", "x", "low", "mean", "high", "runs"]


# ---- results -------------------------------------------------------------------------------------


def epoch_end(
    epoch: int, gap: float, accuracy: float, spread: float, images_per_s: float
) -> list[journal.Record]:
    """Records of the end of a four-step epoch: discriminator scores `gap` apart, its mean accuracy,
    and the generated spread; the real spread is 0.5.
    """
    values = {
        "probe_score_real": 0.5,
        "probe_score_fake": 0.5 - gap,
        "d_accuracy_real": accuracy + 0.125,
        "d_accuracy_fake": accuracy - 0.125,
        "spread_real": 0.5,
        "spread_fake": spread,
    }
    return [
        journal.EpochScores(epoch=epoch, step=4 * epoch, wall_s=4.0 * epoch, values=values),
        journal.EpochDone(
            epoch=epoch, step=4 * epoch, seconds=4.0, images=8, images_per_s=images_per_s
        ),
    ]


def test_results_include_scores_of_the_last_epoch(
    store: Store, losses: Losses, home: Home, new_run: NewRun
) -> None:
    losses("quick-0002", 5.0)
    run = new_run(
        "quick-0001", batch_size_global=6, replicas=3, discriminator_steps=2, updates="in_turn"
    )
    calls = journal.Scalars(
        epoch=3,
        first_step=12,
        wall_s=[12.0],
        values={"loss_generator": [1.5], "loss_discriminator": [0.25]},
    )
    journal.append(
        run.trainer_journal(),
        1,
        *epoch_end(1, gap=0.5, accuracy=0.875, spread=1.0, images_per_s=10.0),
        *epoch_end(2, gap=-0.125, accuracy=0.125, spread=0.125, images_per_s=30.0),
        *epoch_end(3, gap=0.25, accuracy=0.75, spread=0.25, images_per_s=20.0),
        calls,
    )
    Ingestor(home, store).catch_up()
    frame = queries.results(store, ["quick-0002", "quick-0001"])
    assert list(frame["run_id"]) == ["quick-0002", "quick-0001"]
    row = frame.iloc[1].dropna().to_dict()
    assert row == {
        "run_id": "quick-0001",
        "seconds": 12.0,
        "device_seconds": 36.0,
        "images": 144.0,
        "images_per_s": 20.0,
        "loss_generator": 1.5,
        "loss_discriminator": 0.25,
        "score_gap_last": 0.25,
        "accuracy_last": 0.75,
        "spread_ratio_last": 0.5,
    }
    without = frame.iloc[0]
    assert (without["seconds"], without["loss_generator"]) == (1.0, 5.0)
    assert (
        without.drop(["run_id", "seconds", "device_seconds", "images", "loss_generator"])
        .isna()
        .all()
    )


def test_epoch_with_non_finite_scores_is_not_the_last(
    store: Store, home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        *epoch_end(1, gap=0.5, accuracy=0.75, spread=0.25, images_per_s=10.0),
        *epoch_end(2, gap=math.nan, accuracy=math.nan, spread=0.0, images_per_s=10.0),
    )
    Ingestor(home, store).catch_up()
    row = queries.results(store, ["quick-0001"]).iloc[0]
    assert [row[f"{name}_last"] for name in ("score_gap", "accuracy", "spread_ratio")] == [
        0.5,
        0.75,
        0.5,
    ]


def test_results_of_no_runs_are_empty(store: Store) -> None:
    assert queries.results(store, []).empty


# ---- samples and scores at one epoch -------------------------------------------------------------


def scored(epoch: int, real: list[int], fake: list[int]) -> list[journal.Record]:
    """Discriminator scores of real and generated images, in two bins."""
    return [
        journal.Histogram(
            epoch=epoch,
            step=4 * epoch,
            name=f"score/{name}",
            bin_left=[0.0, 0.5],
            bin_right=1.0,
            count=counts,
        )
        for name, counts in {"real": real, "fake": fake}.items()
    ]


def test_score_histograms_use_the_newest_epoch_of_each_run(
    store: Store, home: Home, new_run: NewRun
) -> None:
    journal.append(
        new_run("quick-0001").trainer_journal(),
        1,
        *scored(1, [1, 3], [4, 0]),
        *scored(2, [2, 2], [3, 1]),
    )
    journal.append(new_run("quick-0002").trainer_journal(), 1, *scored(1, [1, 1], [1, 3]))
    Ingestor(home, store).catch_up()
    frame = queries.score_histograms(store, ["quick-0001", "quick-0002"], 2)
    assert list(frame.columns) == ["run_id", "epoch", "name", "left", "right", "share", "top"]
    assert records(frame.drop(columns="top")) == [
        ("quick-0001", 2, "score/fake", 0.0, 0.5, 0.75),
        ("quick-0001", 2, "score/fake", 0.5, 1.0, 0.25),
        ("quick-0001", 2, "score/real", 0.0, 0.5, 0.5),
        ("quick-0001", 2, "score/real", 0.5, 1.0, 0.5),
        ("quick-0002", 1, "score/fake", 0.0, 0.5, 0.25),
        ("quick-0002", 1, "score/fake", 0.5, 1.0, 0.75),
        ("quick-0002", 1, "score/real", 0.0, 0.5, 0.5),
        ("quick-0002", 1, "score/real", 0.5, 1.0, 0.5),
    ]
    # The largest share of a bin: all four generated images after the first epoch.
    assert set(frame["top"]) == {1.0}
    assert set(queries.score_histograms(store, ["quick-0002"], 2)["top"]) == {0.75}
    assert queries.score_histograms(store, ["quick-0001"], 0).empty


def test_same_inputs_compares_digests_or_workload_and_seed_of_old_runs(
    store: Store, home: Home, new_run: NewRun
) -> None:
    sampled = {
        "new-1": ({"inputs": "3f", "renderer": "grey_grid"}, {"seed": 1}),
        "new-2": ({"inputs": "3f", "renderer": "grey_grid"}, {"seed": 2}),
        "new-3": ({"inputs": "7c", "renderer": "grey_grid"}, {"seed": 1}),
        "shared-1": ({"latents": "shared", "columns": 8}, {"seed": 1}),
        "shared-2": ({"latents": "shared", "columns": 8}, {"seed": 2}),
        "old-1": ({"seed": 1, "columns": 8}, {"seed": 1}),
        "old-2": ({"seed": 2, "columns": 8}, {"seed": 2}),
        "old-3": ({"seed": 2, "columns": 8}, {"seed": 2, "replicas": 2}),
        "mlp-1": ({"latents": "shared", "columns": 8}, {"workload": "mlp_gan"}),
        "foreign-1": ({"tag": "fake"}, {}),
        "foreign-2": ({"tag": "fake"}, {}),
    }
    for run_id, (meta, options) in sampled.items():
        run = new_run(run_id, **options)
        journal.append(
            run.trainer_journal(),
            1,
            journal.Sample(
                epoch=1, step=4, sample_kind="fixed_latents", file="samples/none.png", meta=meta
            ),
        )
    new_run("empty-1", seed=9)
    Ingestor(home, store).catch_up()
    same = {
        pair: queries.same_inputs(store, list(pair))
        for pair in [
            ("new-1", "new-2"),
            ("shared-1", "shared-2"),
            ("old-2", "old-3"),
            ("new-1", "new-3"),
            ("new-1", "shared-1"),
            ("shared-1", "mlp-1"),
            ("shared-1", "old-1"),
            ("old-1", "old-2"),
            ("foreign-1", "foreign-2"),
        ]
    }
    assert list(same.values()) == [True] * 3 + [False] * 6
    assert queries.same_inputs(store, ["new-1", "empty-1"])
