"""Evaluation answers in the database, and the queries of the pages.

Old record kinds are converted to answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from gan_runtime.records import journal
from gan_runtime.records.answer import Answer, ArrayFile, Curve, CurveSeries, Score
from gan_runtime.records.earlier_records import answer_of
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.training.verdict import Finding
from tests.evaluation.hand_made import surface
from tests.support.measured_flows import iteration
from tests.support.measured_showers import earlier, measurement

NewRun = Callable[..., RunDir]
VIEWS_OF_DOMAINS = (
    *("surfaces", "physics", "physics_curves", "physics_showers"),
    *("flow", "flow_scores", "flow_steps", "flow_stages", "numbers"),
)


def answer(
    epoch: int, value: float, key: str = "", prefix: str = "quality_", precedence: int = 0
) -> Answer:
    """An answer with a score, a curve of two series, a map, a file, and two cells."""
    return Answer(
        evaluation="quality",
        key=key or f"epoch {epoch}",
        epoch=epoch,
        step=10 * epoch,
        checkpoint="best",
        facts={"rows": 500, "share": math.nan},
        metric_prefix=prefix,
        precedence=precedence,
        scores=[
            Score(
                name="fid",
                value=value,
                error=0.5,
                floor=2.0,
                baselines={"noise": 300.0},
                samples=500,
            )
        ],
        curves=[
            Curve(
                name="spectrum",
                x=[1.0, 2.0],
                series=[
                    CurveSeries(name="real", values=[3.0, 4.0], error=[0.1, 0.2]),
                    CurveSeries(name="generated", values=[5.0, 6.0]),
                ],
                facts={"class": 7},
            ),
            Curve(name="map", x=[0.0], y=[9.0], series=[CurveSeries(name="real", values=[1.0])]),
        ],
        arrays=[
            ArrayFile(name="pictures", file="quality/epoch-3.npz"),
            ArrayFile(name="cells", places=[4, 2], values=[1.5, 2.5], facts={"grid": [3, 3]}),
        ],
    )


def test_last_answer_of_equal_keys_counts_in_every_view(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(run.evaluations_journal, 1, answer(1, 90.0), answer(2, 50.0), answer(1, 80.0))
    new_run("quick-0002", seconds=1)
    store = ingest.store_of(home)
    assert queries.evaluated_runs(store, "quality") == ["quick-0001"]
    assert queries.evaluated_runs(store, "physics") == []
    first, second = queries.evaluations(store, ["quick-0001", "quick-0002"])
    assert (first.evaluation, first.key, first.epoch, second.step) == ("quality", "epoch 1", 1, 20)
    assert first.facts == {"rows": 500, "share": "nan"}
    scores = queries.evaluation_scores(store, ["quick-0001"], "quality")
    assert scores[["epoch", "value", "error", "floor", "samples"]].to_numpy().tolist() == [
        [1, 80.0, 0.5, 2.0, 500],
        [2, 50.0, 0.5, 2.0, 500],
    ]
    assert scores["baselines"].tolist() == [{"noise": 300.0}] * 2
    assert scores["ceiling"].isna().all()
    assert len(store.rows("SELECT * FROM evaluation_curves")) == 2 * 3
    assert len(store.rows("SELECT * FROM evaluation_arrays")) == 2 * 2


def test_curves_and_arrays_are_stored_as_measured(home: Home, new_run: NewRun) -> None:
    journal.append(new_run("quick-0001").evaluations_journal, 1, answer(1, 90.0))
    store = ingest.store_of(home)
    (row,) = queries.evaluations(store, ["quick-0001"], "quality")
    spectrum, heat = queries.evaluation_curves(store, row)
    assert (spectrum.name, spectrum.facts, heat.name, heat.facts) == (
        "spectrum",
        {"class": 7},
        "map",
        {},
    )
    points = queries.curve_points(store, row, [spectrum.number])
    assert points["value"].tolist() == [3.0, 4.0, 5.0, 6.0]
    assert points["series"].tolist() == ["real", "real", "generated", "generated"]
    assert points["error"].fillna(-1.0).tolist() == [0.1, 0.2, -1.0, -1.0]
    assert points["y"].isna().all()
    assert queries.curve_points(store, row, [heat.number])[
        ["x", "y", "value"]
    ].to_numpy().tolist() == [[0.0, 9.0, 1.0]]
    file, cells = queries.evaluation_arrays(store, row)
    assert (file.name, file.file, file.places) == ("pictures", "quality/epoch-3.npz", [])
    assert (cells.places, cells.values, cells.facts) == ([4, 2], [1.5, 2.5], {"grid": [3, 3]})


def test_the_verdict_reads_one_answer_of_an_epoch(home: Home, new_run: NewRun) -> None:
    """Not the coverage of one and the class distance of another."""
    run, base = new_run("quick-0001"), answer(1, 2.0)
    shares = [
        Score(name=name, value=value, floor=0.9)
        for name, value in (("coverage", 0.05), ("class_distance", 0.9), ("sure", 0.9))
    ]
    journal.append(
        run.evaluations_journal,
        1,
        base.model_copy(update={"key": "few", "scores": shares[1:]}),
        base.model_copy(update={"key": "near", "scores": shares[:1]}),
    )
    verdict = queries.verdicts(ingest.store_of(home), ("quick-0001",))["quick-0001"]
    assert verdict.finding is Finding.UNLIKE, "the newest; that of both would be a collapse"
    earlier = base.model_copy(update={"key": "few", "scores": shares[1:], "precedence": 1})
    journal.append(run.evaluations_journal, 1, earlier, base.model_copy(update={"key": "near"}))
    verdict = queries.verdicts(ingest.store_of(home), ("quick-0001",))["quick-0001"]
    assert verdict.finding is Finding.COLLAPSED, "of the highest precedence"


def test_finite_scores_with_a_prefix_are_numbers_of_the_run(home: Home, new_run: NewRun) -> None:
    """Of two answers of an epoch, the one with higher precedence counts, even if it is older."""
    answers = (
        answer(1, 90.0, "a", precedence=1),
        answer(1, 10.0, "b"),
        answer(2, math.nan),
        answer(3, 70.0, prefix=""),
    )
    journal.append(new_run("quick-0001").evaluations_journal, 1, *answers)
    store = ingest.store_of(home)
    numbers = "SELECT step, epoch, metric, value, error FROM numbers"
    assert store.rows(numbers) == [(10, 1, "quality_fid", 90.0, 0.5)]
    curve = queries.curves(store, ["quick-0001"], ("quality_fid",))
    assert (curve["mean"].tolist(), curve["high"].tolist()) == ([90.0], [90.5])
    history = queries.score_history(store, "quick-0001", "quality")
    assert history["epoch"].tolist() == [1, 2, 3]
    assert history["value"].fillna(-1.0).tolist() == [90.0, -1.0, 70.0]


def test_old_record_kinds_give_the_same_rows_as_their_answers(home: Home, new_run: NewRun) -> None:
    old, new = new_run("quick-0001"), new_run("quick-0002", seconds=1)
    records = (
        earlier(measurement(1)),
        surface("generator", 1.0),
        iteration(),
        iteration(number=2, way="whole"),
        iteration(is_replayed=False, epoch=2),
    )
    for record in records:
        journal.append(old.earlier_journal("physics"), 1, record)
        journal.append(new.evaluations_journal, 1, answer_of(record))
    store = ingest.store_of(home)
    for view in VIEWS_OF_DOMAINS:
        of_old, of_new = (
            store.rows(
                f"SELECT * EXCLUDE (run_id) FROM {view} WHERE run_id = ? ORDER BY ALL", [run.run_id]
            )
            for run in (old, new)
        )
        assert of_old, view
        assert repr(of_old) == repr(of_new), view


def test_answer_in_evaluations_journal_replaces_old_record_of_its_key(
    home: Home, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(run.evaluations_journal, 1, answer_of(surface("generator", 7.0)))
    journal.append(
        run.earlier_journal("surface"), 1, *(surface("generator", float(loss)) for loss in range(3))
    )
    assert ingest.store_of(home).rows("SELECT loss[1] FROM surfaces") == [(7.0,)]


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"grid": "wide"},
        {"grid": [10**6, 10**6, 10]},
        {"grid": [1, 1, 1]},
        {"iteration": {}, "cores": "two"},
    ],
)
def test_answer_without_the_facts_of_its_view_breaks_no_view(
    home: Home, new_run: NewRun, facts: dict[str, object]
) -> None:
    run = new_run("quick-0001")
    shaped = [
        answer(1, 1.0).model_copy(update={"evaluation": name, "facts": facts})
        for name in ("physics", "rollout", "loss_surface")
    ]
    names = ("loss", "path", "stages")
    strange = [
        record.model_copy(
            update={"curves": [Curve(name=name, x=[math.nan], series=[]) for name in names]}
        )
        for record in shaped
    ]
    journal.append(run.evaluations_journal, 1, *shaped, *strange)
    store = ingest.store_of(home)
    for view in VIEWS_OF_DOMAINS:
        store.rows(f"SELECT * FROM {view}")
    assert store.rows("SELECT * FROM physics_showers") == []
