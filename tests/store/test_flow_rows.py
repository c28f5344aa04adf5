"""Rollouts of models in the database, and the files of their frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gan_runtime.base import disk
from gan_runtime.base.errors import HomeError, PictureError
from gan_runtime.domains.flows.score_metrics import BY_NAME, METRICS
from gan_runtime.records import image_files, journal
from gan_runtime.records.earlier_records import Flow
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from tests.support.measured_flows import frames, iteration

NewRun = Callable[..., RunDir]


def test_last_of_equal_rollouts_counts_in_every_view(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    first, again = iteration(number=1, error=0.1), iteration(number=2, error=0.2)
    other = iteration(number=1, way="whole")
    journal.append(run.earlier_journal("flow"), 1, first, other, again)
    store = ingest.store_of(home)
    expected = [("iterate-0001", "whole"), ("iterate-0002", "map_reduce")]
    for view in ("flow", "flow_scores", "flow_steps", "flow_stages"):
        assert store.rows(f"SELECT DISTINCT iteration, way FROM {view} ORDER BY 1") == expected, (
            view
        )
    rmse = (
        "SELECT value, persistence FROM flow_steps WHERE score = 'rmse' AND way = 'map_reduce' AND"
        " step = 3"
    )
    assert store.rows(rmse) == [(pytest.approx(0.6), 0.3)]
    assert store.rows("SELECT tile, cores FROM flow ORDER BY way") == [([16, 16], 2), ([16, 48], 1)]


def test_different_checkpoint_start_or_tiling_is_another_rollout(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    first = iteration()
    changes = [{"epoch": 2}, {"cores": 1}, {"overlap": 8}, {"blend": "hann"}, {"trajectory": 1}]
    changes += [{"start": 9}, {"steps": 5, "by_step": iteration(steps=5).by_step}]
    journal.append(
        run.earlier_journal("flow"),
        1,
        first,
        *(first.model_copy(update=change) for change in changes),
    )
    assert len(ingest.store_of(home).rows("SELECT * FROM flow")) == 1 + len(changes)


def test_newest_usual_tiled_rollout_gives_numbers_of_the_run(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    tiled, later, other, whole = (
        iteration(error=0.1),
        iteration(number=2, error=0.2).model_copy(update={"overlap": 8}),
        iteration(number=3, error=0.3, is_usual=False).model_copy(update={"start": 9}),
        iteration(number=4, way="whole"),
    )
    journal.append(run.earlier_journal("flow"), 1, tiled, later, other, whole)
    store = ingest.store_of(home)
    expected = next(score.value for score in later.scores if score.name == "rmse")
    assert store.rows("SELECT step, epoch, value FROM numbers WHERE metric = 'flow_rmse'") == [
        (10, 1, expected)
    ]
    assert "flow_rmse" in queries.recorded(store, ["quick-0001"])
    assert len(store.rows("SELECT * FROM flow")) == 4, "the others stay in the views"


def test_unusual_rollout_gives_no_numbers_of_the_run(home: Home, new_run: NewRun) -> None:
    journal.append(new_run("quick-0001").earlier_journal("flow"), 1, iteration(is_usual=False))
    store = ingest.store_of(home)
    assert store.rows("SELECT * FROM numbers WHERE metric LIKE 'flow%'") == []
    assert store.rows("SELECT is_usual FROM flow") == [(False,)]


def test_snapshot_of_an_epoch_never_replaces_its_checkpoint(home: Home, new_run: NewRun) -> None:
    checkpoint, snapshot = iteration(error=0.1), iteration(number=2, error=0.2, is_usual=False)
    journal.append(
        new_run("quick-0001").earlier_journal("flow"),
        1,
        checkpoint,
        snapshot.model_copy(update={"checkpoint": "epoch 1"}),
    )
    store = ingest.store_of(home)
    assert store.rows("SELECT epoch, checkpoint FROM flow ORDER BY iteration") == [
        (1, "best"),
        (1, "epoch 1"),
    ]
    expected = next(score.value for score in checkpoint.scores if score.name == "rmse")
    assert store.rows("SELECT value FROM numbers WHERE metric = 'flow_rmse'") == [(expected,)]


def test_scores_are_declared_once_and_quality_is_better_when_lower() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    chosen_by = {metric.name for metric in METRICS if metric.role == "measured_quality"}
    assert chosen_by == {"flow_mae", "flow_rmse", "flow_rmse_period", "flow_strouhal_error"}
    assert all(score.better == "lower" for score in BY_NAME.values() if score.quality)


def test_a_record_without_a_number_for_each_step_is_refused() -> None:
    good = iteration(steps=3)
    with pytest.raises(ValueError, match="rmse must have a number for each of 4 steps"):
        Flow.model_validate({**good.model_dump(), "steps": 4})
    with pytest.raises(ValueError, match="frames"):
        Flow.model_validate({**good.model_dump(), "frames": "../secret.npz"})


def test_frames_round_trip_unchanged(new_run: NewRun) -> None:
    run, film = new_run("quick-0001"), frames(steps=3)
    file = image_files.write_film(run, "iterate-0001-naive", film)
    assert file == "flow/iterate-0001-naive.npz"
    assert [path.name for path in run.films.iterdir()] == ["iterate-0001-naive.npz"], (
        "nothing is left aside"
    )
    back = image_files.read_film(run, file)
    for name in ("steps", "truth", "predicted", "mask"):
        np.testing.assert_array_equal(getattr(back, name), getattr(film, name))


def test_long_film_keeps_the_first_and_every_kth_frame() -> None:
    film = frames(steps=10)
    assert image_files.thinned(film, 2 * film.truth.nbytes).steps.tolist() == list(range(11))
    thin = image_files.thinned(film, film.truth.nbytes)
    assert thin.steps.tolist() == [0, 2, 4, 6, 8, 10]
    assert thin.truth.nbytes + thin.predicted.nbytes <= 1.1 * film.truth.nbytes
    np.testing.assert_array_equal(thin.predicted, film.predicted[::2])


def test_missing_damaged_or_mismatched_frames_are_reported(new_run: NewRun) -> None:
    run, film = new_run("quick-0001"), frames(steps=2)
    with pytest.raises(PictureError, match="the file is missing"):
        image_files.read_film(run, "flow/none.npz")
    file = image_files.write_film(run, "torn", film)
    content = (run.path / file).read_bytes()
    (run.path / file).write_bytes(content[: len(content) // 2])
    with pytest.raises(PictureError, match="it is damaged"):
        image_files.read_film(run, file)
    image_files.write_film(run, "torn", replace(film, predicted=film.predicted[:, :5]))
    with pytest.raises(PictureError, match="its two films differ in shape or type"):
        image_files.read_film(run, file)


def test_small_film_is_accurate_to_half_a_level_and_much_smaller(
    new_run: NewRun,
) -> None:
    run, film = new_run("quick-0001"), frames(steps=30)
    step, y, x = np.ogrid[:31, :12, :40]  # not periodic, unlike the wave of `frames`
    wave = np.sin(x / 7.3 - step / 5.1) * np.cos(y / 3.7 + step / 9.7)
    truth = np.stack([wave, -wave, 0.5 * wave], axis=-1).astype(np.float16)
    truth[3, :2, :2] = [-1.0, 1.0, 0.0]  # the ends of the scale, next to each other
    film = replace(film, truth=truth, predicted=0.9 * truth)
    whole, small = (
        run.path / image_files.write_film(run, f"a{size}", film, is_small=size) for size in (0, 1)
    )
    assert small.stat().st_size < 0.3 * whole.stat().st_size
    back = image_files.read_film(run, f"flow/{small.name}")
    for name in ("truth", "predicted"):
        restored, original = getattr(back, name), getattr(film, name)
        assert (restored.dtype, restored.shape) == (np.float16, original.shape)
        off = np.abs(restored.astype(float) - original.astype(float))
        assert 0.0 < off.max() < 0.5 / 127 + 0.0005
    np.testing.assert_array_equal(back.truth[3, :2, :2], truth[3, :2, :2])
    np.testing.assert_array_equal(back.mask, film.mask)
    truth[5, 0, 0, 0] = np.nan
    with pytest.raises(ValueError, match="values outside -1 to 1"):
        image_files.write_film(run, "ran-away", film, is_small=True)


def test_full_disk_leaves_no_partial_film(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    run = new_run("quick-0001")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk.os, "fsync", full)
    with pytest.raises(HomeError, match="is full"):
        image_files.write_film(run, "film", frames(steps=1))
    assert list(run.films.iterdir()) == []
