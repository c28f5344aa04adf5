"""The Studies page: starting a study, following its progress, and the confidence of its result."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from dashboard.studies import measures as study_measures
from dashboard.studies import words as study_words
from gan_runtime import catalog
from gan_runtime.catalog.entries import PublishedSpeeds, Speed
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import queries
from gan_runtime.studies.design import StudyDesign
from gan_runtime.studies.statistics import difference
from tests.pages.reading import charts, shown_commands, texts
from tests.studies.hand_written import At, from_now, train
from tests.support.asking import ask

Show = Callable[..., AppTest]
BASE = {"workload": "mlp_gan", "epochs": 3}
HOSTILE = "![x](http://evil.example/a.png)"


@pytest.fixture
def at() -> At:
    """See `from_now`."""
    return from_now()


@pytest.fixture
def study(home: Home, host: Host, at: At) -> list[RunDir]:
    """A finished study of batch 64 and 128, three repeats each: batch 128 takes 3.0, 3.1 and 3.0 s
    per epoch instead of 4 s.
    """
    runs = ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"], 3))
    for number, (run, epoch_s) in enumerate(zip(runs, (4.0, 3.0, 3.1, 4.0, 4.0, 3.0), strict=True)):
        train(run, at, 100.0 * number, epoch_s)
    return runs


@pytest.fixture
def replicas(home: Home, host: Host, at: At) -> list[RunDir]:
    """A finished study of 1 and 2 replicas: two take half the time."""
    design = StudyDesign.parse("replicas", BASE, ["1", "2"], 1)
    runs = ask(home, host).submit_study(design)
    for number, (run, epoch_s) in enumerate(zip(runs, (4.0, 2.0), strict=True)):
        train(run, at, 100.0 * number, epoch_s)
    return runs


def test_an_empty_page_leads_to_the_form(show: Show) -> None:
    empty = show("studies")
    assert not empty.exception
    assert "No study is stored yet" in texts(empty)
    assert "Load example runs" in [button.label for button in empty.button]
    links = {link.proto.label: link.proto.query_string for link in empty.get("page_link")}
    assert links["Ask a question"] == "tab=study"
    app = show("launch/study")
    assert not app.exception
    assert [metric.value for metric in app.metric if metric.label == "Runs"] == [
        "12"
    ]  # 4 batch sizes, 3 repeats
    assert (
        "study batch_size --values 64,128,256,512 --repeats 3 --preset quick --set epochs=38"
        in shown_commands(app)[0]
    )
    assert charts(app) == []


def test_the_form_warns_of_batches_that_yield_no_digits(show: Show) -> None:
    app = show("launch/study")
    assert [warning.value for warning in app.warning] == []
    app.selectbox(key="study.preset").set_value("paper").run()
    [warning] = [warning.value for warning in app.warning]
    assert "gave strokes instead of digits" in warning
    app.text_input(key="study.values.batch_size").set_value("64,128").run()
    assert [warning.value for warning in app.warning] == []


def test_an_invalid_value_is_reported_and_blocks_the_start(show: Show) -> None:
    app = show("launch/study")
    app.text_input(key="study.values.batch_size").set_value("64, many").run()
    assert "is 'many', but allowed is a whole number" in app.error[0].value
    assert "Start study" not in [button.label for button in app.button]


@pytest.mark.usefixtures("study")
def test_a_finished_study_reports_differences_with_confidence(show: Show) -> None:
    app = show("studies", study="study-0001")
    assert not app.exception
    text = texts(app)
    assert (
        "**batch 128** takes 24% less time per epoch than batch 64 (× 0.76, 0.72 to 0.79: clear)."
        in text
    )
    assert "the comparison with the first variant holds at 95%" in text
    assert "scatters by 1.9% from repeat to repeat here" in text
    assert (
        "of 2% is clear in 8 of 10 such studies with about 10 repeats; of 5% about 4, of 10%"
        " about 3." in text
    )
    [table] = [element.value for element in app.dataframe]
    assert list(table["Variant"]) == ["batch 64", "batch 128"]
    assert list(table["Runs"]) == [3, 3]
    assert list(table["Time per epoch (s)"]) == ["4.00 (4.00 to 4.00)", "3.03 (2.89 to 3.18)"]
    assert list(table["Time per epoch, against"]) == ["–", "× 0.76, 0.72 to 0.79: clear"]
    assert list(table["Loss G (nats)"]) == ["3.000 (3.000 to 3.000)"] * 2
    assert "This study is not done" not in text
    assert [chart["title"] for chart in charts(app)] == [
        "Spread of images (real images = 1)",
        "Time per epoch (s)",
    ]
    assert text.index("**Spread of images** (real images = 1): batch 64") < text.index(
        "**batch 128** takes"
    )


def test_a_study_leaves_out_a_loss_that_became_infinite(show: Show, study: list[RunDir]) -> None:
    losses = {"loss_generator": [math.inf] * 2}
    for run in study:
        if run.spec().batch_size_global == 64:
            end = journal.Scalars(epoch=4, first_step=31, wall_s=[40.0, 41.0], values=losses)
            journal.append(run.trainer_journal(), 1, end)
    app = show("studies", **{"study": "study-0001", "study.outcome": "loss_generator"})
    assert not app.exception
    [table] = [element.value for element in app.dataframe]
    assert list(table["Loss G (nats)"]) == ["–", "3.000 (3.000 to 3.000)"]
    assert "**Loss G** (nats): batch 128 3.000." in texts(app)


def test_an_unfinished_study_warns_against_peeking_after_each_repeat(
    show: Show, home: Home, host: Host, at: At
) -> None:
    design = StudyDesign.parse("batch_size", BASE, ["64", "128"], 4)
    runs = ask(home, host).submit_study(design)
    for number, (run, epoch_s) in enumerate(
        zip(runs, (4.0, 3.0, 3.0, 4.0, 4.0, 3.0), strict=False)
    ):
        train(run, at, 100.0 * number, epoch_s)
    app = show("studies")
    assert not app.exception
    assert "17 of 100 studies without any effect have one. With a fixed number, 5 have." in texts(
        app
    )
    assert "Nothing is corrected across measures" in texts(app)


def test_a_loop_study_draws_time_and_speed_up(show: Show, home: Home, host: Host, at: At) -> None:
    """Epochs take 4.0 s with Keras' loop, 3.2 and 3.0 s with ours: speed-ups of 1.25 and 1.33,
    repeat by repeat.
    """
    runs = ask(home, host).submit_study(StudyDesign.parse("loop", BASE, None, 2))
    for number, (run, epoch_s) in enumerate(zip(runs, (4.0, 3.2, 3.0, 4.0), strict=True)):
        train(run, at, 100.0 * number, epoch_s)
    app = show("studies")
    assert not app.exception
    assert "**custom loop** takes 23% less time per epoch than keras loop" in texts(app)
    assert [chart["title"] for chart in charts(app)] == [
        "Time per epoch (s)",
        "Speed-up (first variant = 1)",
    ]
    results = queries.study_results(session.runtime().store, "study-0001")
    assert results["speed_up"].round(3).tolist() == [1.0, 1.0, 1.25, 1.333]


def test_a_waiting_study_can_be_stopped_and_resumed(show: Show, home: Home, host: Host) -> None:
    ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"]))
    app = show("studies")
    assert "0 of 2 runs are finished" in str([element.proto for element in app.get("progress")])
    app.button(key="study.stop").click().run()
    assert {latest_status(run).status for run in home.run_dirs()} == {"stopped"}
    app.button(key="study.resume").click().run()
    assert {latest_status(run).status for run in home.run_dirs()} == {"queued"}


def test_home_shows_a_waiting_study_as_one_item(show: Show, home: Home, host: Host) -> None:
    ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"], 2))
    text = texts(show("home"))
    assert "Queue (1)" in text
    assert "1. Study: Batch size · 4 of its 4 runs wait · next batch 64 seed 1" in text


def test_study_time_estimate_uses_similar_runs(show: Show, trained: Callable[..., RunDir]) -> None:
    """Similar runs reach a steady 160 images/s: 38 epochs of 56 steps with 32 of the 1,797 digits
    each take 426 s, six times.
    """
    trained("quick-0001", workload="dcgan", dataset="digits")
    app = show("launch/study")
    app.text_input(key="study.values.batch_size").set_value("32,64").run()
    [figure] = [metric.value for metric in app.metric if metric.label == "Training time, est."]
    assert figure == "≈ 42 m 34 s"


@pytest.mark.parametrize(
    ("field", "typed"),
    [("repeats.batch_size", "99"), ("repeats.batch_size", "two"), ("epochs.quick", "0")],
)
def test_an_invalid_repeat_or_epoch_count_hides_the_start_button(
    show: Show, field: str, typed: str
) -> None:
    app = show("launch/study")
    assert "Start study" in [button.label for button in app.button]
    app.text_input(key=f"study.{field}").set_value(typed).run()
    assert f"is {typed}" in texts(app).replace("'", "")
    assert "Start study" not in [button.label for button in app.button]


@pytest.mark.usefixtures("study")
def test_the_form_estimates_repeats_for_a_difference(show: Show) -> None:
    app = show("launch/study")
    assert "With about 10 repeats" not in texts(app)
    app.selectbox(key="study.difference").select(0.02).run()
    assert "8 of 10 studies find a true difference of 2% in the time per epoch." in texts(app)
    assert "assumes the scatter of study-0001 (1.9%)" in texts(app)
    app.segmented_control(key="study.question").set_value("xla").run()
    assert "No stored study of this question shows it" in texts(app)


def test_a_one_epoch_study_explains_its_missing_time_per_epoch(
    show: Show, home: Home, host: Host, at: At
) -> None:
    design = StudyDesign.parse("batch_size", {**BASE, "epochs": 1}, ["64", "128"])
    runs = ask(home, host).submit_study(design)
    train(runs[0], at, 0.0, 4.0, epochs=1)
    assert "Time per epoch: not measured yet." in texts(show("studies"))
    train(runs[1], at, 100.0, 4.0, epochs=1)
    session.runtime().refresh()
    text = texts(show("studies"))
    assert "Time per epoch: not measured, because its runs have one epoch" in text
    assert "not measured yet" not in text


def test_markup_in_run_and_study_names_is_escaped(
    show: Show, home: Home, host: Host, at: At
) -> None:
    runs = ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"], 2))
    for number, run in enumerate(runs):
        record = json.loads(run.supervisor_journal.read_text(encoding="utf-8").splitlines()[0])
        record["study"] |= {"variant": f"{HOSTILE} {number % 2}", "title": HOSTILE}
        rest = run.supervisor_journal.read_text(encoding="utf-8").splitlines()[1:]
        run.supervisor_journal.write_text(
            "\n".join([json.dumps(record), *rest]) + "\n", encoding="utf-8"
        )
        train(run, at, 100.0 * number, 4.0 + number)
    for page in ("studies", "studies/paper"):
        app = show(page)
        assert not app.exception
        assert "![x](" not in texts(app)
        assert "!\\[x\\](" in texts(app)
    assert "![x](" not in texts(show("studies", study=HOSTILE))


def test_a_seed_study_reports_the_scatter_due_to_chance(
    show: Show, home: Home, host: Host, at: At
) -> None:
    """ln(4.1 / 4) = 0.0247; its standard deviation over two runs is 0.0247 / √2 = 1.7%, and
    that of their ratios 2.5%.
    """
    for number, run in enumerate(
        ask(home, host).submit_study(StudyDesign.parse("seed", BASE, ["1", "2"]))
    ):
        train(run, at, 100.0 * number, 4.0 + 0.1 * number)
    text = texts(show("studies"))
    assert "scatter by 1.7% in their time per epoch (standard deviation of 2 runs)" in text
    assert "Ratios of two such runs scatter by 2.5%." in text
    assert (
        "clear in 8 of 10 studies of two variants with about 15 repeats; of 5% about 5, of 10%"
        " about 3." in text
    )
    assert "With two or more repeats" not in text


def test_one_repeat_is_reported_as_inconclusive() -> None:
    effect = difference({1: 3.0}, {1: 4.0})
    assert effect is not None
    assert (
        study_words.sentence("batch 128", "batch 64", effect)
        == "**batch 128** takes 25% less time per epoch than batch 64 (× 0.75: 1 repeat, which"
        " says nothing about noise)."
    )


@pytest.mark.parametrize(
    ("ratio", "amount"),
    [
        (5.004, "5.0 × as long per step as"),
        (1.31, "31% more time per step than"),
        (0.2, "80% less time per step than"),
        (1.001, "the same time per step as"),
    ],
)
def test_a_ratio_is_phrased_as_a_comparison(ratio: float, amount: str) -> None:
    assert study_words.amount(ratio, "step") == amount


def test_a_run_without_a_value_has_no_point() -> None:
    rows = [
        {"variant": "a", "variant_index": 0, "repeat": 1, "run_id": "x", "epoch_seconds": 2.0},
        {
            "variant": "a",
            "variant_index": 0,
            "repeat": 2,
            "run_id": "y",
            "epoch_seconds": float("nan"),
        },
    ]
    points = study_words.points(pd.DataFrame(rows), "epoch_seconds")
    assert list(points["run_id"]) == ["x"]
    assert list(points["mean"]) == [2.0]
    assert points["low"].isna().all()


def test_a_wide_interval_is_clipped_in_the_chart_only() -> None:
    rows = [
        {
            "variant": "a",
            "variant_index": 0,
            "repeat": repeat,
            "run_id": str(repeat),
            "workload": "pix2pix",
            "loss_generator": value,
        }
        for repeat, value in ((1, 1.0), (2, 2.0))
    ]
    points = study_words.points(pd.DataFrame(rows), "loss_generator")
    assert (points["low"].iloc[0], points["high"].iloc[0]) == pytest.approx(
        (1.5 - 6.3531, 1.5 + 6.3531), abs=1e-3
    )
    assert (points["drawn_low"].iloc[0], points["drawn_high"].iloc[0]) == (0.25, 2.75)


@pytest.mark.parametrize(("workload", "unit"), [("dcgan_mnist", "nats"), ("pix2pix", "")])
def test_a_loss_has_the_unit_of_its_own_workload(workload: str, unit: str) -> None:
    """A distance, or a weighted sum, is not in nats."""
    results = pd.DataFrame({"workload": [workload], "loss_generator": [1.0]})
    assert study_measures.measure_of("loss_generator", results).unit == unit


@pytest.mark.usefixtures("replicas")
def test_a_replica_study_is_compared_with_published_speeds(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Next to published speeds" not in texts(show("studies"))  # no published speeds yet
    speeds = (Speed("V100 GPUs", 2, 96, 1779.3), Speed("V100 GPUs", 128, 96, 34.9))
    published = PublishedSpeeds("A table", "Their networks are larger.", 124_987, speeds)
    entry = dataclasses.replace(catalog.WORKLOADS["mlp_gan"], published=published)
    monkeypatch.setitem(catalog.WORKLOADS, "mlp_gan", entry)
    app = show("studies")
    assert not app.exception
    assert "Dashed: A table. Their networks are larger." in texts(app)
    table = next(element.value for element in app.dataframe if "Speed-up" in element.value)
    assert table["System"].tolist() == ["replicas 1", "replicas 2", "V100 GPUs", "V100 GPUs"]
    assert table["Devices"].tolist() == ["1", "2", "2", "128"]
    assert table["Images/s"].tolist() == ["160", "320", "70", "3,581"]
    assert table["Speed-up"].tolist() == ["1.00", "2.00", "1.00", "50.98"]
    assert table["Loss G (nats)"].tolist() == ["3.000", "3.000", "", ""]
