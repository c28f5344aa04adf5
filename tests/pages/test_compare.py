"""The Compare page on stored runs: what a person reads, sets and clicks there."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pyarrow as pa
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from dashboard.samples import players
from gan_runtime.records import journal
from gan_runtime.records.rundir import RunDir
from gan_runtime.store import queries
from tests.pages.test_pages import texts, titles
from tests.small_pictures import write_grid

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


def spec_of(app: AppTest, title: str) -> str:
    """The Vega-Lite spec of the chart of this title, as text."""
    found = [item.proto.spec for item in app.get("vega_lite_chart") if title in item.proto.spec]
    assert len(found) == 1
    return str(found[0])


def test_compare_draws_along_what_is_chosen(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert '"title": "Step"' in spec_of(app, "Generator loss")
    for axis, title in {
        "images": "Images seen",
        "wall_s": "Training time (s)",
        "device_s": "Device time (s)",
    }.items():
        app.session_state["x"] = axis
        app.run()
        assert not app.exception
        assert f'"title": "{title}"' in spec_of(app, "Generator loss")


def test_compare_smooths_and_scales_as_chosen(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    app.selectbox(key="smoothing").set_value("none").run()
    assert '"value": 0.35' not in spec_of(app, "Generator loss")
    app.selectbox(key="smoothing").set_value("strong")
    app.selectbox(key="y").set_value("log").run()
    assert not app.exception
    assert '"value": 0.35' in spec_of(app, "Generator loss"), "the raw curve stays behind the smoothed one"
    assert '"type": "log"' in spec_of(app, "Generator loss")


def test_compare_says_why_a_chart_is_missing_on_a_logarithmic_axis(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(-0.5, 1.0), generator_loss="minimax")
    trained("quick-0002", losses=(-0.7, 1.0), seconds=10, generator_loss="minimax")
    app = show("compare", runs="quick-0001,quick-0002")
    app.selectbox(key="y").set_value("log").run()
    assert "Generator loss: no value is above 0" in texts(app)
    assert titles(app)[0] == "Discriminator loss"


def test_compare_takes_runs_that_differ_in_the_seed_alone_as_one_curve(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.5, 1.0), seed=1)
    trained("quick-0002", losses=(1.5, 1.0), seconds=10, seed=2)
    trained("quick-0003", losses=(3.0, 1.0), seconds=20, seed=2, replicas=2)
    app = show("compare", runs="quick-0001,quick-0002,quick-0003")
    assert app.selectbox(key="by").options == ["Each run alone", "All but the seed", "Replicas"]
    app.selectbox(key="by").set_value("over seeds").run()
    assert not app.exception
    spec = json.loads(spec_of(app, "Generator loss"))
    assert spec["layer"][1]["encoding"]["color"]["scale"]["domain"] == [
        "replicas 1 (2 runs)",
        "replicas 2 (1 run)",
    ]
    assert "</span>replicas 1 (2 runs)</span>" in texts(app)
    assert "Band: from its lowest to its highest run." in texts(app)


def test_compare_opens_the_run_that_was_clicked(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    assert "Click a curve" in texts(app)
    app.session_state["compare.picked.curves"] = "quick-0002"
    app.run()
    assert [(link.proto.label, link.proto.query_string) for link in app.get("page_link")] == [
        ("Open quick-0002 · finished", "run=quick-0002")
    ]
    app.session_state["compare.picked.curves"] = "same options (2 runs)"
    app.selectbox(key="by").set_value("over seeds").run()
    assert [link.proto.query_string for link in app.get("page_link")] == ["run=quick-0001", "run=quick-0002"]


def test_compare_shows_the_best_epoch_beside_the_last_and_says_that_losses_have_none(
    show: Show, trained: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    best = next(table.value for table in app.dataframe if "Score gap, best" in table.value)
    assert best.iloc[0].to_dict() == {
        "Run": "quick-0001",
        "Score gap, best": pytest.approx(0.2),
        "at epoch (Score gap)": 1,
        "Score gap, last": pytest.approx(0.2),
        "D's accuracy, best": 62.5,
        "at epoch (D's accuracy)": 1,
        "D's accuracy, last": 62.5,
        "Spread ratio, best": 0.5,
        "at epoch (Spread ratio)": 1.0,
        "Spread ratio, last": 0.5,
        "Images/s, best": 160.0,
        "at epoch (Images/s)": 2,
        "Images/s, last": 160.0,
    }
    assert "Losses have no best value in a GAN" in texts(app)


def test_compare_draws_any_result_against_time_with_its_front(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    assert "no run is both faster and better" in spec_of(app, "Score gap, best epoch against training time")
    app.selectbox(key="compare.result").set_value("loss_generator").run()
    assert not app.exception
    assert "there is no Pareto front" in spec_of(app, "Generator loss, last step against training time")


def test_compare_says_when_a_result_was_not_recorded(show: Show, trained: Make, new_run: Make) -> None:
    trained("quick-0001")
    new_run("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert "1 of the 2 runs has not recorded it." in texts(app)


def test_compare_of_runs_without_numbers_says_when_there_will_be_some(show: Show, new_run: Make) -> None:
    new_run("quick-0001")
    new_run("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert "None of these runs has finished a step yet." in texts(app)
    assert "'Score gap, best epoch' appears after a first epoch." in texts(app)


def test_compare_puts_options_beside_results(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2, replicas=2)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert '"sort": ["Replicas (devices)", "Seed"' in spec_of(app, "Which options lead where?")
    axes = next(widget for widget in app.multiselect if widget.label == "Axes")
    axes.set_value(["seed"]).run()
    assert "Pick two or more axes" in texts(app)


def test_one_slider_moves_samples_and_scores_of_all_runs(show: Show, trained: Make) -> None:
    first = (
        journal.Sample(
            epoch=1, step=10, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}
        ),
        journal.Histogram(
            epoch=1, step=10, name="score/real", bin_left=[0.0, 0.5], bin_right=1.0, count=[1, 3]
        ),
    )
    for number in (1, 2):
        run = trained(f"quick-000{number}", seconds=float(number), after_epoch_1=first)
        write_grid(run.samples / "epoch-00001.png")
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert len(app.slider) == 1
    assert texts(app).count("After epoch 2, step 20") == 2
    assert shares(app) == [[0.75, 0.25, 0.75, 0.25]] * 2
    app.slider[0].set_value(1).run()
    assert texts(app).count("After epoch 1, step 10") == 2
    assert shares(app) == [[0.25, 0.75]] * 2


def shares(app: AppTest) -> list[list[float]]:
    """What each chart of D's scores shows."""
    charts = [item.proto for item in app.get("vega_lite_chart") if "D's score (1 = real)" in item.proto.spec]
    return [list(pa.ipc.open_stream(chart.datasets[0].data.data).read_pandas()["share"]) for chart in charts]


def test_compare_says_whether_images_can_be_compared_one_by_one(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    trained("other-0003", seconds=20, workload="mlp_gan")
    assert "compare image by image" in texts(show("compare", runs="quick-0001,quick-0002"))
    assert "not image by image" in texts(show("compare", runs="quick-0001,other-0003"))


def test_the_film_of_a_comparison_shows_all_runs_over_all_epochs(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert [button.proto.label for button in app.get("download_button")] == ["Time-lapse"]
    store = session.runtime().store
    film = players.film(
        store, queries.runs(store), queries.sample_epochs(store, ["quick-0001", "quick-0002"]), "samples"
    )
    with Image.open(io.BytesIO(film)) as opened:
        assert (opened.format, opened.n_frames, opened.size) == ("GIF", 1, (988, 544))
