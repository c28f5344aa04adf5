"""Histograms: one run over its epochs, several at one epoch; every stored histogram is offered."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from dashboard import widgets
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from tests.pages.reading import charts, texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
WHOLE_NETWORKS = [
    "Generator weights",
    "Generator gradients",
    "Discriminator weights",
    "Discriminator gradients",
]
ENDED = journal.StatusChange(status="stopped", reason="stopped on request")


def over_epochs(app: AppTest) -> list[str]:
    """The chart titles of the selection, without the whole networks after one epoch below it."""
    return [title for title in titles(app) if title not in WHOLE_NETWORKS]


def test_a_run_without_histograms_explains_when_they_appear(show: Show, new_run: Make) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, ENDED)  # else the page's runtime would start a trainer
    app = show("run", tab="histograms", run="quick-0001")
    assert not app.exception
    assert "histograms after each epoch" in texts(app)
    assert charts(app) == []


def test_every_stored_histogram_can_be_selected_and_drawn(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    bins = {"bin_left": [-1.0, 0.0], "bin_right": 1.0, "count": [3, 1]}
    layers = [f"{kind}/generator/up_1" for kind in ("weight", "gradient")]
    histograms = [
        journal.Histogram(epoch=epoch, step=10 * epoch, name=name, **bins)
        for name in layers
        for epoch in (1, 2)
    ]  # type: ignore[arg-type]
    journal.append(run.trainer_journal(), 1, *histograms)
    app = show("run", tab="histograms")
    charts_by_label = {}
    for label in app.selectbox(key="histograms.item").options:
        app.selectbox(key="histograms.item").set_value(label).run()
        assert not app.exception
        charts_by_label[label] = over_epochs(app)
    assert charts_by_label == {
        "Scores of the discriminator": ["Scores of real images", "Scores of generated images"],
        "Losses of the steps": ["Generator loss", "Discriminator loss"],
        "Generator, all layers": [
            "Weights: generator, all layers",
            "Gradients: generator, all layers",
        ],
        "Generator, layer up 1": [
            "Weights: generator, layer up 1",
            "Gradients: generator, layer up 1",
        ],
        "Discriminator, all layers": [
            "Weights: discriminator, all layers",
            "Gradients: discriminator, all layers",
        ],
    }


def test_histograms_switch_between_ridgelines_and_heatmap(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", tab="histograms")
    assert app.selectbox(key="run.picked").value == "quick-0001"
    assert "run" not in app.query_params, (
        "an address that the page writes itself costs a press on Back"
    )
    assert [chart["layer"][0]["mark"]["type"] for chart in charts(app)[:2]] == ["area", "area"]  # type: ignore[index]
    app.segmented_control[0].set_value("Heatmap").run()
    assert not app.exception
    assert [chart["mark"]["type"] for chart in charts(app)[:2]] == ["rect", "rect"]  # type: ignore[index]


def test_histograms_of_several_runs_overlap_at_one_epoch(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="histograms", runs="quick-0001,quick-0002")
    assert not app.exception
    assert over_epochs(app) == ["Scores of real images", "Scores of generated images"]
    assert charts(app)[0]["layer"][0]["encoding"]["color"]["scale"]["domain"] == [
        "quick-0001",
        "quick-0002",
    ]  # type: ignore[index]
    app.slider[0].set_value(1).run()
    assert not app.exception
    assert titles(app) == []
    assert "not stored up to epoch 1" in texts(app)


def test_many_runs_leave_the_plot_its_height_and_differ_in_color_or_dash(
    show: Show, trained: Make
) -> None:
    """Twelve names above each plot would take nearly all of its height."""
    names = [f"quick-{number:04d}" for number in range(1, 13)]
    for seconds, name in enumerate(names):
        trained(name, seconds=float(seconds))
    app = show("compare", tab="histograms", runs=",".join(names))
    for chart in charts(app):
        _, line, _ = chart["layer"]  # type: ignore[misc]
        color, dash = line["encoding"]["color"], line["encoding"]["strokeDash"]
        assert (color["legend"], dash["legend"]) == (None, None)
        styles = zip(color["scale"]["range"], map(str, dash["scale"]["range"]), strict=True)
        assert len(set(styles)) == 12
    bodies = [part.proto.body for part in app.get("html")]
    [legend] = [body for body in bodies if body.startswith("<div style='display:flex")]
    assert (legend.count("quick-"), legend.count("dashed")) == (12, 4)
    assert widgets.LIKE_OTHERS not in texts(app)


def test_shorter_runs_are_shown_at_their_last_epoch(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    shorter = new_run("quick-0002", seconds=10, epochs=1)
    scores = {"bin_left": [0.0, 0.5], "bin_right": 1.0, "count": [1, 3], "epoch": 1, "step": 10}
    names = ("score/real", "score/fake")
    journal.append(
        shorter.trainer_journal(),
        1,
        ENDED,
        *(journal.Histogram(name=name, **scores) for name in names),
    )  # type: ignore[arg-type]
    app = show("compare", tab="histograms", runs="quick-0001,quick-0002")
    assert "Not stored at epoch 2, shown at an earlier epoch: quick-0002 at epoch 1." in texts(app)


def test_a_run_without_the_selected_histogram_shows_its_first(show: Show, trained: Make) -> None:
    run = trained("quick-0001")
    trained("quick-0002", seconds=10)
    bins = {"bin_left": [-1.0, 0.0], "bin_right": 1.0, "count": [3, 1], "epoch": 2, "step": 20}
    journal.append(
        run.trainer_journal(), 1, journal.Histogram(name="weight/generator/up_1", **bins)
    )  # type: ignore[arg-type]
    app = show("run", tab="histograms", run="quick-0001")
    app.selectbox(key="histograms.item").set_value("Generator, layer up 1").run()
    assert over_epochs(app) == ["Weights: generator, layer up 1"]
    app.selectbox(key="run.picked").set_value("quick-0002").run()
    assert not app.exception
    assert over_epochs(app) == ["Scores of real images", "Scores of generated images"]


def test_histograms_after_the_last_epoch_of_a_stopped_run_are_the_newest(
    show: Show, new_run: Make
) -> None:
    run = new_run("quick-0001", epochs=8)
    bins = {"bin_left": [0.0, 0.5], "bin_right": 1.0, "count": [1, 3]}
    names = ("score/real", "score/fake", "weight/generator")
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=320, steps_per_epoch=10, epochs=8),
        *(
            journal.Histogram(epoch=epoch, step=10 * epoch, name=name, **bins)
            for name in names
            for epoch in (1, 2, 3)
        ),
        ENDED,
    )
    app = show("run", tab="histograms", run="quick-0001")
    app.slider[0].set_value(7).run()
    assert "Generator weights" in titles(app)
    assert "shown at an earlier epoch: quick-0001 at epoch 3." in texts(app)
    app = show("run", run="quick-0001")
    app.slider[0].set_value(7).run()
    assert "Distribution of the scores" in titles(app)
    assert "Not stored at epoch 7, shown at epoch 3." in texts(app)
