"""Measured showers in the database, and the queries of the pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dashboard.domains.showers.words import CURVES
from dashboard.studies import measures as study_measures
from gan_runtime import bundles
from gan_runtime.domains.showers.score_metrics import SCORES
from gan_runtime.records import journal
from gan_runtime.records.earlier_records import PhysicsCurve, PhysicsShower
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.store.store import Store
from tests.support.measured_showers import earlier, measured, measurement, showers

NewRun = Callable[..., RunDir]


def test_last_measurement_of_each_epoch_counts(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    new_run("quick-0002", seconds=1)
    measured(run, 1, 2, fault=0.4)
    journal.append(run.evaluations_journal, 1, measurement(2, 0.4).model_copy(update={"step": 23}))
    store = ingest.store_of(home)
    assert queries.evaluated_runs(store, "physics") == ["quick-0001"]
    scores = store.frame("SELECT * FROM physics WHERE run_id = 'quick-0001' ORDER BY step")
    assert len(scores) == 2 * len(SCORES)
    first = scores[scores["score"] == SCORES[0].name]
    assert first[["epoch", "step", "checkpoint", "showers"]].to_numpy().tolist() == [
        [1, 10, "best", 150],
        [2, 23, "best", 150],
    ]
    assert first["value"].tolist() == pytest.approx([4.0, 4.0])
    assert first["floor"].tolist() == pytest.approx([0.4, 0.4])
    assert scores[scores["score"] == "ms_single"]["floor"].isna().all()


SHOWERS = {"workload": "shower_3dgan", "dataset": "showers"}
FPD = "physics_fpd"
TITLE = "FPD × 10³, layer features, measured"


def test_measured_score_is_a_number_of_the_run_with_an_error_band(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001", **SHOWERS)
    done = [
        journal.EpochDone(
            epoch=epoch, step=10 * epoch, seconds=seconds, images=64, images_per_s=1.0
        )
        for epoch, seconds in ((1, 8.0), (2, 3.0))
    ]
    steps = journal.Scalars(epoch=1, first_step=1, wall_s=[0.8], values={"bce_real": [0.7]})
    journal.append(run.trainer_journal(), 1, steps, *done)
    measured(run, 0, 1, 2, fault=0.4)
    store = ingest.store_of(home)
    assert FPD in queries.recorded(store, ["quick-0001"])
    fpd = next(score for score in measurement(1, 0.4).scores if score.name == "fpd")
    frame = queries.curves(store, ["quick-0001"], (FPD,), "wall_s")
    assert frame["x"].tolist() == [
        0.0,
        8.0,
        11.0,
    ], "training seconds at the end of each measured epoch"
    assert frame["mean"].tolist() == pytest.approx([fpd.value, fpd.value, fpd.value / 2])
    assert (frame["high"] - frame["low"]).tolist() == pytest.approx(
        [2 * fpd.error, 2 * fpd.error, fpd.error]
    )
    [row] = queries.results(store, ["quick-0001"]).to_dict("records")
    assert (row[f"{FPD}_best_epoch"], row[f"{FPD}_last"]) == (2.0, pytest.approx(fpd.value / 2))
    metric = queries.metric_table(store, ["quick-0001"])[FPD]
    assert (metric.role, metric.better, metric.title) == ("measured_quality", "lower", TITLE)
    assert queries.recorded(store, ["quick-0001"]).count("bce_real") == 1
    assert not store.rows("SELECT * FROM scalars WHERE metric = ?", [FPD]), (
        "what a trainer wrote is as it was"
    )


def test_a_study_shows_the_newest_measured_score_of_each_run(home: Home, new_run: NewRun) -> None:
    for number, (variant, fault) in enumerate((("a", 0.4), ("b", 0.8)), start=1):
        place = StudyPlace(
            study_id="study-0001",
            question="batch_size",
            title="Batch size",
            variant=variant,
            variant_index=number - 1,
            repeat=1,
        )
        run = new_run(f"quick-000{number}", study=place, **SHOWERS)
        steps = journal.Scalars(epoch=3, first_step=21, wall_s=[0.8], values={"bce_real": [0.7]})
        journal.append(run.trainer_journal(), 1, steps)
        measured(run, 1, 2, fault=fault)
    results = queries.study_results(ingest.store_of(home), "study-0001")
    first, second = results[FPD].tolist()
    assert second == pytest.approx(2 * first), "of epoch 2, though the training has come to epoch 3"
    assert study_measures.outcomes(results)[0] == "physics_sampling_fraction", (
        "what measures quality comes first"
    )
    assert FPD in study_measures.outcomes(results)
    assert study_measures.measures(results)[FPD].title == TITLE
    assert FPD not in study_measures.measures(results.assign(**{FPD: None}))


def test_curves_can_be_selected_by_energy_and_angle_bin(home: Home, new_run: NewRun) -> None:
    measured(new_run("quick-0001"), 1)
    store = ingest.store_of(home)
    energy, angle = (
        store.rows(
            f"SELECT DISTINCT {bin}_low, {bin}_high FROM physics_curves WHERE {bin}_low IS NOT NULL"
            " ORDER BY 1"
        )
        for bin in ("energy", "angle")
    )
    assert (len(energy), len(angle)) == (5, 3)
    assert [low for low, _ in energy[1:]] == [high for _, high in energy[:-1]]
    whole = curves(store, "energy_low IS NULL AND angle_low IS NULL")
    assert set(whole["curve"]) == {curve.name for curve in CURVES}
    depth = whole[whole["curve"] == "along_z"]
    assert depth["real"].to_numpy() == pytest.approx(
        showers(0).features.along_z.mean(axis=0), rel=1e-4
    )
    last = curves(store, f"energy_low = {energy[4][0]} AND angle_low IS NULL")
    assert last[last["curve"] == "along_z"]["real"].sum() > depth["real"].sum()
    part = curves(store, f"energy_low = {energy[0][0]} AND angle_low = {angle[2][0]}")
    assert 0 < len(part) <= len(whole)
    assert curves(store, "epoch = 3").empty


def curves(store: Store, condition: str) -> pd.DataFrame:
    """Points of the stored curves."""
    return store.frame(
        f"SELECT curve, unnest(x) AS x, unnest(real) AS real FROM physics_curves WHERE {condition}"
    )


def test_stored_shower_keeps_its_brightest_cells(home: Home, new_run: NewRun) -> None:
    measured(new_run("quick-0001"), 1)
    rows = ingest.store_of(home).rows(
        "SELECT side, energy_gev, angle, grid, cells, mev, share FROM physics_showers ORDER BY"
        " pair, side = 'generated'"
    )
    assert [side for side, *_ in rows] == ["real", "generated"] * (len(rows) // 2)
    assert 10 <= len(rows) // 2 <= 15
    (_, energy_gev, angle, grid, cells, mev, share), generated = rows[:2]
    assert generated[1:3] == (energy_gev, angle)
    places = np.flatnonzero(np.isclose(showers(0).features.energy_gev, energy_gev))
    whole = np.zeros(grid)
    whole.reshape(-1)[cells] = np.asarray(mev) / 1e3
    assert whole == pytest.approx(showers(0).cells_gev[places[0]], abs=1e-5)
    assert share == pytest.approx(1.0, abs=1e-3)


def test_inconsistent_record_is_refused() -> None:
    whole = earlier(measurement(1))
    with pytest.raises(ValueError, match="pictures must be in the grid"):
        type(whole).model_validate({**whole.model_dump(), "grid": (2, 2, 2)})
    with pytest.raises(ValueError, match="at most 10,000,000 cells"):
        type(whole).model_validate({**whole.model_dump(), "grid": (1_000, 1_000, 1_000)})
    with pytest.raises(ValueError, match="lists must have the same length"):
        PhysicsCurve(name="hits", x=[1.0], real=[], real_error=[], generated=[], generated_error=[])
    with pytest.raises(ValueError, match="lists must have the same length"):
        PhysicsShower(pair=0, side="real", energy_gev=1.0, angle=None, cells=[1], mev=[], share=1.0)


def test_measurement_takes_less_than_half_a_megabyte(new_run: NewRun) -> None:
    """The grid is tiny, and bundles contain the measurement."""
    run = new_run("quick-0001")
    journal.append(run.evaluations_journal, 1, measurement(1))
    assert run.evaluations_journal.stat().st_size < 2**19


def test_bundle_carries_measurements_to_another_home(new_run: NewRun, tmp_path: Path) -> None:
    run = new_run("quick-0001")
    measured(run, 1)
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="done"))
    bundles.pack([run], tmp_path / "one.zip")
    other = Home(tmp_path / "other").prepare()
    bundles.unpack(tmp_path / "one.zip", other)
    store = ingest.store_of(other)
    assert queries.evaluated_runs(store, "physics") == ["quick-0001"]
    assert store.rows("SELECT count(*) FROM physics") == [(len(SCORES),)]
    assert store.rows("SELECT count(*) >= 20 FROM physics_showers WHERE epoch = 1") == [(True,)]
