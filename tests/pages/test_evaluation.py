"""The page of any evaluation: the verdict on a run, a page without a domain, the tab of a run."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.evaluation import summary
from dashboard.evaluation.answers import (
    NOT_COMPARABLE,
    DomainPage,
    Selection,
    cautions,
    page_of,
)
from dashboard.evaluation.images import PAGE as IMAGES
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog.evaluation import PublishedScore
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.evaluation import jobs
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer, Curve, CurveSeries, Score
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.queries import EvaluationRow
from gan_runtime.training.verdict import AnswerVerdict, Finding
from tests.pages.reading import evaluation, open_tab, rows_of, texts, titles
from tests.pages.test_deep_links import LINKS, open_with_all
from tests.support.measured_images import answer
from tests.support.measured_showers import measured

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
METRICS = tuple(Metric(name, name, name, better="lower", format=".2f") for name in "abc")


def selection_of(*scores: Score, **words: str) -> Selection:
    """Returns a selection of one answer with these scores."""
    page = DomainPage(
        (), METRICS, headline=("a", "b"), over_epochs=("a",), real="held-out rows", baselines=words
    )
    row = EvaluationRow("r", "e", "k", datetime(2026, 1, 1), 1, 10, "best", {})
    scores_by_run = {("r", "k"): {score.name: score for score in scores}}
    return Selection(evaluations()["loss_surface"], page, {}, {"r": row}, [row], scores_by_run)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            (1.0, 1.0),
            "**As good as held-out rows**: all 2 scores reach those of real against real.",
        ),
        (
            (1.5, 2.0),
            (
                "**Close to held-out rows**: the median score is 1.8 times that of real"
                " against real; 0 of 2 scores"
                " reach it."
            ),
        ),
        (
            (1.0, 9.0),
            (
                "**Partly like held-out rows**: the median score is 5.0 times that of"
                " real against real; 1 of 2 scores"
                " reaches it."
            ),
        ),
        (
            (50.0, 90.0),
            (
                "**Unlike held-out rows**: the median score is 70 times that of real"
                " against real; 0 of 2 scores"
                " reach it."
            ),
        ),
    ],
)
def test_verdict_compares_scores_with_their_floors(
    values: tuple[float, float], sentence: str
) -> None:
    scores = [
        Score(name=name, value=value, floor=1.0) for name, value in zip("ab", values, strict=True)
    ]
    assert summary.verdict(selection_of(*scores), "r") == sentence


@pytest.mark.parametrize(
    ("values", "start", "rest"),
    [
        ((0.9, 0.95), "As good as", "all 2 scores reach those of real against real."),
        (
            (0.61, 0.7),
            "Partly like",
            "the median score is 69% of that of real against real; 1 of 2 scores reaches it.",
        ),
        (
            (0.0, 0.0),
            "Unlike",
            "the median score is 0% of that of real against real; 0 of 2 scores reach it.",
        ),
    ],
)
def test_verdict_compares_shares_with_their_floors(
    values: tuple[float, float], start: str, rest: str
) -> None:
    floors = (0.8, 1.1)
    scores = [
        Score(name=f"imagenet_{name}", value=value, floor=floor, error=0.1)
        for name, value, floor in zip(("recall", "coverage"), values, floors, strict=True)
    ]
    sentence = summary.verdict(replace(selection_of(*scores), page=IMAGES), "r")
    assert sentence.startswith(f"**{start} real images**: {rest}"), sentence


@pytest.mark.parametrize(
    ("coverage", "fcd", "kcd", "sentence"),
    [
        (
            0.96,
            7.0,
            0.8,
            "**As good as real images**: all 3 scores reach those of real against real.",
        ),
        (
            *(0.84, 7.0, 0.8),
            "**Close to real images**: 2 of 3 scores reach those of real against real."
            " Farthest from it: Coverage"
            " with 84.0%, real against real 97.0%.",
        ),
        (
            *(0.42, 7.0, 0.8),
            "**Partly like real images**: 2 of 3 scores reach those of real against"
            " real. Farthest from it: Coverage with"
            " 42.0%, real against real 97.0%.",
        ),
        (
            *(0.84, 140.0, 50.0),
            "**Unlike real images**: 0 of 3 scores reach those of real against real."
            " Farthest from it: FCD with"
            " 140, real against real 7.",
        ),
        (
            *(0.96, 7.0, 50.0),  # its ratio to a floor near 0 is meaningless
            "**Close to real images**: 2 of 3 scores reach those of real against real."
            " Farthest from it: KCD with"
            " 50, real against real 0.8.",
        ),
    ],
)
def test_images_match_real_ones_only_if_every_score_reaches_its_floor(
    coverage: float, fcd: float, kcd: float, sentence: str
) -> None:
    errors = {"error": 0.01, "floor_error": 0.01}
    scores = [
        Score(name="coverage", value=coverage, floor=0.97, **errors),
        Score(name="fcd", value=fcd, floor=7.0, **errors),
        Score(name="kcd", value=kcd, floor=0.8, **errors),
    ]
    assert summary.verdict(replace(selection_of(*scores), page=IMAGES), "r") == sentence


def test_headline_uses_the_scores_of_the_feature_network() -> None:
    for prefix, kernel in (("imagenet", "imagenet_kcd"), ("inception", "kid")):
        scores = {kernel, "fid", *(f"{prefix}_{name}" for name in ("precision", "coverage"))}
        fid = ["fid"] if prefix == "inception" else []
        assert IMAGES.among(IMAGES.headline, scores - ({"fid"} - set(fid))) == [
            f"{prefix}_coverage",
            f"{prefix}_precision",
            kernel,
            *fid,
        ]


def test_quality_page_says_what_the_verdict_of_the_run_says() -> None:
    """A negative distance has words, and coverage is in words."""
    ends = {"error": 0.4, "low": -1.2, "high": 0.5}
    scores = {
        "coverage": Score(name="coverage", value=0.87, floor=0.97),
        "precision": Score(name="precision", value=0.6, floor=0.9),
        "kcd": Score(name="kcd", value=-0.355, floor=0.1, ceiling=140.0, **ends),
    }
    selection = replace(
        selection_of(*scores.values()), page=IMAGES, evaluation=evaluations()["quality"]
    )
    assert summary.verdict(selection, "r").startswith(
        "**Partly like the data after epoch 1**: 60% are near a real image (of real ones 90%);"
        " generated images cover 87% of the real ones (other real ones 97%)"
    )
    kcd, coverage = selection.metric("kcd"), selection.metric("coverage")
    assert IMAGES.below(kcd, scores) == "as close as real images are to each other"
    assert IMAGES.below(coverage, scores) == "of the real images; other real ones cover 97.0%"


def test_a_score_within_two_standard_deviations_reaches_its_floor() -> None:
    near = Score(name="a", value=3.0, error=0.6, floor=1.0, floor_error=0.8)
    assert ": the only score reaches that of real against real." in summary.verdict(
        selection_of(near), "r"
    )
    sharp = near.model_copy(update={"floor_error": 0.75})
    assert ": the only score is 3.0 times that of real against real." in summary.verdict(
        selection_of(sharp), "r"
    )


def test_verdict_names_the_main_scores_that_beat_a_baseline_and_those_that_do_not() -> None:
    """Scores beyond the main ones do not count, however many of them win."""
    copied, replay = {"copy": 2.0}, {"replay": 0.5}
    scores = [
        Score(name="a", value=1.0, baselines=copied | replay),
        Score(name="b", value=3.0, floor=1.0, baselines=copied | replay),
        Score(name="c", value=0.1, baselines=copied | replay),
    ]
    assert (
        summary.verdict(selection_of(*scores, replay="replay", copy="copied row"), "r")
        == "**Against the replay: worse in a, b. Against the copied row: better in a; worse in b.**"
        " a: 1.00, replay 0.50, copied row 2.00. b: 3.00, replay 0.50, copied row 2.00."
    )


def test_the_finding_of_an_evaluation_is_said_before_its_baselines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    selection = selection_of(Score(name="a", value=1.0, baselines={"copy": 2.0}), copy="copied row")
    said = AnswerVerdict(Finding.PARTIAL, "a is 1", 1)
    monkeypatch.setattr(summary, "of_answer", lambda _: said)
    judged = replace(selection.evaluation, verdict="of.a.package:rule")
    assert summary.verdict(replace(selection, evaluation=judged), "r") == (
        "**Partly like the data after epoch 1**: a is 1. **Against the copied row: better in a.**"
        " a: 1.00, copied row 2.00."
    )


def test_verdict_reports_scores_without_floor_or_baseline() -> None:
    assert (
        summary.verdict(selection_of(Score(name="a", value=1.0)), "r")
        == "No score has a baseline or one of real against real to compare it with."
    )
    assert summary.table(selection_of(Score(name="a", value=math.nan)))["r"].tolist() == ["–"]


def test_runs_named_like_columns_keep_their_own_columns() -> None:
    selection = selection_of(Score(name="a", value=1.0, floor=0.5))
    [row] = selection.answers.values()
    for name in ("Score", "Real against real"):
        table = summary.table(replace(selection, answers={name: row}))
        assert list(table.columns) == ["Score", f"{name} (run)", "Real against real"]
        assert table.iloc[0].tolist() == ["a", "1.00", "0.50"]


def test_published_scores_range_from_best_to_worst() -> None:
    plain = selection_of(Score(name="a", value=1.0), Score(name="b", value=1.0))
    values = {"mine": 3.0, "yours": 1.0, "theirs": 9.0}
    scores = tuple(
        PublishedScore("a", value, None, who, "a paper") for who, value in values.items()
    )
    published = replace(plain, evaluation=replace(plain.evaluation, published=scores))
    column = summary.table(published)["Published, on other data"]
    assert column.tolist() == ["1.00 (yours) to 9.00 (theirs)", "–"]
    assert "Published, on other data" not in summary.table(plain)


def surface(run: RunDir) -> None:
    """Stores answers of the evaluation that no domain declares."""
    grid = Curve(
        name="loss",
        x=[0.0, 1.0, 0.0, 1.0],
        y=[0.0, 0.0, 1.0, 1.0],
        series=[CurveSeries(name="loss", values=[1.0, 2.0, 3.0, 4.0])],
        facts={"columns": 2},
    )
    path = Curve(
        name="path",
        x=[0.0, 1.0],
        y=[0.0, 0.5],
        series=[CurveSeries(name="loss", values=[4.0, 1.0])],
    )
    answers = [
        Answer(
            evaluation="loss_surface",
            key=network,
            epoch=2,
            step=20,
            checkpoint="snapshots",
            scores=[],
            curves=[grid, path],
        )
        for network in ("generator", "discriminator")
    ]
    journal.append(run.trainer_journal(), 1, *answers)


def test_an_evaluation_without_a_domain_shows_curves_and_its_form(
    show: Show, trained: Make
) -> None:
    surface(trained("quick-0001"))
    app = AppTest.from_function(tab_of_a_run, default_timeout=30)
    show("runs")
    app.run()
    assert not app.exception
    assert "This evaluation has no scores" in texts(app)
    app = open_tab(app, "Curves")
    assert not app.exception
    assert titles(app) == ["Loss", "Path"] * 2
    app = open_tab(app, "Measure again")
    assert "stores 0 weight snapshots, but a loss surface needs 3" in texts(app)
    assert [
        button.disabled for button in app.button if button.label == "Compute loss surfaces"
    ] == [True]


def tab_of_a_run() -> None:
    """Draws the Evaluation tab of the newest run."""
    from dashboard.evaluation import view
    from dashboard.frame import session
    from gan_runtime.store import queries

    runtime = session.runtime()
    view.draw(runtime, queries.runs(runtime.store)[0])


def test_a_run_can_be_compared_with_runs_of_the_same_evaluation(show: Show, trained: Make) -> None:
    measured(trained("quick-0001"), 2)
    measured(trained("quick-0002", seconds=10), 2)
    show("runs")
    app = AppTest.from_function(tab_of_a_run, default_timeout=30)
    app.query_params["with"] = "gone,quick-0001"
    app.run()
    assert not app.exception
    assert app.multiselect(key="evaluation.with.quick-0002").value == ["quick-0001"]
    assert list(app.dataframe[0].value.columns)[1:3] == ["quick-0002", "quick-0001"]
    app = app.multiselect(key="evaluation.with.quick-0002").set_value([]).run()
    assert list(app.dataframe[0].value.columns)[1:3] == ["quick-0002", "Real against real"]
    assert app.query_params["with"] in ("", [""])


@pytest.mark.parametrize("name", ["with", "view"])
def test_a_hostile_evaluation_address_is_shown_only_as_text(
    show: Show, trained: Make, name: str
) -> None:
    for number in (1, 2):
        measured(trained(f"quick-000{number}", seconds=number), 2)
    show("runs")
    app = AppTest.from_function(tab_of_a_run, default_timeout=30)
    open_with_all(app, name, LINKS[::3])
    assert app.metric, "the usual tab of the run alone"


@pytest.mark.parametrize("tab", ["evaluation", "samples"])
def test_a_run_without_checkpoints_says_why_and_what_to_do(
    show: Show, trained: Make, tab: str
) -> None:
    trained("quick-0001")
    app = show(f"run/{tab}", run="quick-0001")
    assert not app.exception
    assert "bundles, such as the example runs, contain none. Press Run again" in texts(app)
    labels = {button.label: button.disabled for button in app.button}
    assert labels["Run again with changes"] is False
    assert not any(labels.values()), "no button is a dead end"


def test_a_run_without_applicable_evaluations_explains_why(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "evaluations_of", lambda *_: [])
    trained("quick-0001")
    show("runs")
    app = AppTest.from_function(tab_of_a_run, default_timeout=30).run()
    assert "No evaluation applies to this run's outputs." in texts(app)


def test_an_evaluation_without_a_domain_leads_with_its_own_scores() -> None:
    page = page_of(replace(evaluations()["physics"], page=""))
    assert page.headline[0] == evaluations()["physics"].scores[0].name
    assert page.literature is None


def test_an_evaluation_without_a_domain_shows_all_its_stored_scores(
    show: Show, trained: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers store names without the prefix with which the evaluation declares them."""
    plain = replace(evaluations()["physics"], page="")
    monkeypatch.setitem(evaluations(), "physics", plain)  # type: ignore[arg-type]
    measured(trained("quick-0001"), 2)
    show("runs")
    app = AppTest.from_function(tab_of_a_run, default_timeout=30).run()
    assert not app.exception
    table = app.dataframe[0].value
    assert list(table["Score"]) == [metric.axis for metric in evaluations()["physics"].scores]
    assert table["quick-0001"][0] == "150.00% ± 15.00%"
    assert len(app.metric) == 5


@pytest.mark.parametrize(
    ("features", "held_out", "searched", "is_said"),
    [
        ("imagenet", False, {"copies_searched": True}, True),
        ("imagenet", False, {"copies_searched": False}, False),  # pairs
        ("inception", False, {"copies_searched": False}, False),
        ("imagenet", True, {"copies_searched": True}, False),
        ("classifier", False, {}, True),  # an answer of an earlier version
        ("imagenet", False, {}, False),
    ],
)
def test_scores_against_training_images_say_that_copies_are_perfect_where_copies_are_searched(
    features: str, held_out: bool, searched: dict[str, bool], is_said: bool
) -> None:
    facts = {**answer(1).facts, "features": features, "held_out": held_out, **searched}
    row = EvaluationRow("r", "quality", "k", datetime(2026, 1, 1), 1, 10, "best", facts)
    assert ("copies of them score as perfect" in IMAGES.subject(row)) is is_said


def test_image_quality_shows_its_interval_and_classifier_warning(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    warning = "The classifier is right on 90.0% of held-out images."
    newest = answer(2, 4.0, warning)
    newest = newest.model_copy(update={"facts": {**newest.facts, "held_out": False}})
    journal.append(run.trainer_journal(), 1, answer(1, 9.0), newest)
    show("runs")
    app = AppTest.from_function(tab_of_a_run, default_timeout=30)
    app.run()
    assert not app.exception
    assert [(metric.label, metric.value, metric.delta) for metric in app.metric] == [
        ("Coverage", "50.0%", "of the real images; other real ones cover 97.0%"),
        ("KCD", "0.5", "real against real 0.001"),
    ]
    assert "898 generated images against 898 training images" in texts(app)
    assert "Too few are held out, so copies of them score as perfect" in texts(app)
    assert warning.rstrip(".") in texts(app)
    assert "Seed 0, protocol 1." in texts(app)
    [scores] = [table.value for table in app.dataframe if "Score" in table.value]
    assert scores.iloc[:2, 1].tolist() == ["0.5 (0.3 to 0.7)", "4 (3 to 5)"]
    app = open_tab(app, "Curves")
    assert not app.exception
    assert titles(app) == ["Share of images by class"]


def test_scores_of_images_over_epochs_have_their_95_percent_intervals(
    show: Show, trained: Make
) -> None:
    run = trained("quick-0001")
    journal.append(run.evaluations_journal, 1, answer(1, kcd=9.0), answer(2, kcd=7.0))
    app = evaluation(show, view="Epochs")
    assert "Bars: 95% intervals. Dashed: the score of real images." in texts(app)
    assert "fewer rows" not in texts(app), "training chooses by the same scores"
    rows = rows_of(app, "KCD")
    assert list(rows["low"]) == pytest.approx([8.8, 6.8])
    assert list(rows["high"]) == pytest.approx([9.2, 7.2])


def test_an_interval_around_0_is_drawn_on_a_logarithmic_axis(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    journal.append(run.evaluations_journal, 1, answer(1, kcd=9.0), answer(2, kcd=0.1))
    rows = rows_of(evaluation(show, view="Epochs"), "KCD")
    assert list(rows["low"]) == pytest.approx([8.8, -0.1])
    assert list(rows["drawn_low"]) == pytest.approx([8.8, 0.0001]), "a tenth of the floor"


@pytest.mark.parametrize("name", ["classifier", "weights", "protocol"])
def test_scores_of_different_networks_or_protocols_are_not_comparable(name: str) -> None:
    rows = [
        EvaluationRow("r", "quality", key, datetime(2026, 1, 1), 1, 10, "best", {name: key})
        for key in ("first", "second")
    ]
    assert cautions(rows) == f"{NOT_COMPARABLE} {name}."
    assert cautions(rows[:1]) == ""


def test_answers_without_a_page_are_compared_by_their_defining_facts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = replace(evaluations()["quality"], name="sharpness", page="")
    monkeypatch.setitem(evaluations(), "sharpness", plain)
    rows = [
        EvaluationRow(
            "r", "sharpness", key, datetime(2026, 1, 1), 1, 10, "best", {"weights": [key]}
        )
        for key in ("first", "second")
    ]
    assert cautions(rows) == f"{NOT_COMPARABLE} weights."
