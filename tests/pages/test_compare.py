"""The Compare page on stored runs: texts, settings and clicks."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Callable

import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard import run_selection
from dashboard.compare import results_view
from dashboard.frame import session
from dashboard.samples import players
from gan_runtime.catalog import declarations
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from tests.pages.reading import texts, titles
from tests.support.measured_showers import measured
from tests.support.small_pictures import write_grid

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]
ENDED = journal.StatusChange(status="stopped", reason="stopped on request")


def spec_of(app: AppTest, title: str) -> str:
    """Returns the Vega-Lite spec of the chart with this title, as text."""
    specs = [
        element.proto.spec for element in app.get("vega_lite_chart") if title in element.proto.spec
    ]
    assert len(specs) == 1
    return str(specs[0])


def test_compare_draws_along_the_selected_axis(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
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


def test_compare_applies_the_selected_smoothing_and_scale(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    app.selectbox(key="smoothing").set_value("none").run()
    assert '"value": 0.35' not in spec_of(app, "Generator loss")
    app.selectbox(key="smoothing").set_value("strong")
    app.selectbox(key="y").set_value("log").run()
    assert not app.exception
    assert '"value": 0.35' in spec_of(app, "Generator loss"), (
        "the raw curve stays behind the smoothed one"
    )
    assert '"type": "log"' in spec_of(app, "Generator loss")


def test_compare_explains_a_missing_chart_on_a_log_axis(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(-0.5, 1.0), generator_loss="minimax")
    trained("quick-0002", losses=(-0.7, 1.0), seconds=10, generator_loss="minimax")
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    app.selectbox(key="y").set_value("log").run()
    assert "Generator loss: no value is above 0" in texts(app)
    assert titles(app)[0] == "Discriminator loss"


def test_compare_groups_runs_that_differ_only_in_seed(show: Show, trained: Make) -> None:
    trained("quick-0001", losses=(0.5, 1.0), seed=1)
    trained("quick-0002", losses=(1.5, 1.0), seconds=10, seed=2)
    trained("quick-0003", losses=(3.0, 1.0), seconds=20, seed=2, replicas=2)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002,quick-0003")
    assert app.selectbox(key="by").options == ["Each run alone", "All but the seed", "Replicas"]
    app.selectbox(key="by").set_value("over seeds").run()
    assert not app.exception
    spec = json.loads(spec_of(app, "Generator loss"))
    assert spec["layer"][1]["encoding"]["color"]["scale"]["domain"] == [
        "replicas 1 (2 runs)",
        "replicas 2 (1 run)",
    ]
    assert "</span>replicas 1 (2 runs)</span>" in texts(app)
    assert "Band: lowest to highest run." in texts(app)


def test_many_runs_of_several_seeds_share_a_line_until_a_user_wants_each(
    show: Show, trained: Make
) -> None:
    runs = [f"quick-{number:04d}" for number in range(1, 8)]
    for number, run_id in enumerate(runs):
        trained(run_id, seconds=number, seed=number)
    few = show("compare", tab="curves", runs=",".join(runs[:6]))
    assert few.selectbox(key="by").value == "each run"
    app = show("compare", tab="curves", runs=",".join(runs))
    assert not app.exception
    assert app.selectbox(key="by").value == "over seeds"
    assert "same options (7 runs)" in texts(app)
    app.selectbox(key="by").set_value("each run").run()
    assert app.run().selectbox(key="by").value == "each run"
    assert "same options (7 runs)" not in texts(app)


def test_compare_links_to_the_clicked_run(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    assert "Click a curve" in texts(app)
    app.session_state["compare.picked.curves"] = "quick-0002"
    app.run()
    assert [(link.proto.label, link.proto.query_string) for link in app.get("page_link")] == [
        ("Open quick-0002 · finished", "run=quick-0002")
    ]
    app.session_state["compare.picked.curves"] = "same options (2 runs)"
    app.selectbox(key="by").set_value("over seeds").run()
    assert [link.proto.query_string for link in app.get("page_link")] == [
        "run=quick-0001",
        "run=quick-0002",
    ]


def test_compare_names_no_best_epoch_without_an_image_score(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    ends = next(table.value for table in app.dataframe if "Score gap" in table.value)
    assert ends.iloc[0].to_dict() == {
        "Run": "quick-0001",
        "Score gap": pytest.approx(0.2),
        "D's accuracy": 62.5,
        "Spread ratio": 0.5,
    }
    assert "After the last epoch" in texts(app)
    assert "None of these numbers measures how good the images are" in texts(app)
    assert "est epoch" not in texts(app)


def test_compare_names_the_best_epoch_of_an_image_score(show: Show, new_run: Make) -> None:
    for number, errors in enumerate(((0.4, 0.2, 0.3), (0.5, 0.6, 0.1)), start=1):
        run = new_run(
            f"karman-000{number}", seconds=number, workload="pix2pix", dataset="karman_small"
        )
        scores = [
            journal.EpochScores(
                epoch=epoch, step=epoch, wall_s=float(epoch), values={"tile_error": error}
            )
            for epoch, error in enumerate(errors, start=1)
        ]
        calls = journal.Scalars(
            epoch=1, first_step=1, wall_s=[4.0], values={"loss_generator": [9.0]}
        )
        journal.append(run.trainer_journal(), 1, calls, *scores)
    app = show("compare", runs="karman-0001,karman-0002")
    title = "Difference to the target, after each epoch"
    best = next(table.value for table in app.dataframe if f"{title}, best" in table.value)
    assert list(best[f"at epoch ({title})"]) == [2, 3]
    assert "Best epoch and last epoch" in texts(app)
    assert "no run is both faster and better" in spec_of(
        app, f"{title}, best epoch against training time"
    )


def test_compare_draws_other_results_without_a_pareto_front(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1)
    trained("quick-0002", seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    names = [
        "score_gap_last",
        "accuracy_last",
        "spread_ratio_last",
        "images_per_s",
        "images",
        "loss_generator",
    ]
    assert app.selectbox(key="compare.result").options
    for name in names:
        app.selectbox(key="compare.result").set_value(name).run()
        assert not app.exception
        assert "there is no Pareto front" in spec_of(app, "against training time")


def test_x_axis_defaults_to_epochs_for_different_batch_sizes(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    assert app.selectbox(key="x").value == "step"
    for run_id, dataset in (("big-0003", "digits"), ("big-0004", "mnist")):
        new_run(run_id, seconds=20, batch_size_global=64, dataset=dataset)
    session.close()
    assert (
        show("compare", tab="curves", runs="quick-0001,big-0003").selectbox(key="x").value
        == "epoch"
    )
    assert (
        show("compare", tab="curves", runs="quick-0001,big-0004").selectbox(key="x").value
        == "images"
    )
    assert (
        show("compare", tab="curves", runs="quick-0001,big-0003", x="Step").selectbox(key="x").value
        == "step"
    )


def test_default_axis_follows_the_runs_but_a_selected_axis_stays(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    new_run("big-0003", seconds=20, batch_size_global=64)
    app = show("compare", tab="curves", runs="quick-0001,quick-0002")
    picker = app.multiselect(key="compare.runs")
    picker.set_value(["quick-0001", "big-0003"]).run()
    assert app.selectbox(key="x").value == "epoch"
    app.selectbox(key="x").set_value("wall_s").run()
    app.multiselect(key="compare.runs").set_value(["quick-0001", "quick-0002"]).run()
    assert app.selectbox(key="x").value == "wall_s"


def test_compare_reports_a_result_that_was_not_recorded(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    new_run("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert "1 of the 2 runs has not recorded this number." in texts(app)


def test_compare_reports_that_no_run_has_results_yet(show: Show, new_run: Make) -> None:
    new_run("quick-0001")
    new_run("quick-0002", seconds=10)
    app = show("compare", runs="quick-0001,quick-0002")
    assert not app.exception
    assert "No run has recorded 'Score gap, last epoch' yet." in texts(app)
    curves = show("compare", tab="curves", runs="quick-0001,quick-0002")
    assert not curves.exception
    assert "No run has finished a step yet." in texts(curves)


@pytest.mark.filterwarnings("error::pandas.errors.PerformanceWarning")
def test_numbers_against_time_begin_with_one_that_most_runs_have(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    trained("quick-0003", seconds=20)
    measured(trained("showers-0004", seconds=30, workload="shower_3dgan", dataset="showers"), 2)
    runs = "quick-0001,quick-0002,quick-0003,showers-0004"
    app = show("compare", runs=runs)
    assert not app.exception
    first, *_ = app.selectbox(key="compare.result").options
    assert first == "Error of the sampling fraction, measured, best epoch"
    result = app.selectbox(key="compare.result").value
    assert result in ("score_gap_last", "images_per_s")
    axes = next(widget for widget in app.multiselect if widget.label == "Axes")
    assert [name for name in axes.value if name.startswith("physics")] == []


def test_a_table_of_many_numbers_is_made_at_once() -> None:
    """Columns inserted one after another fill the log with warnings of pandas."""
    declared = declarations.together(["dcgan_mnist", "shower_3dgan", "pix2pix"])
    columns = [
        f"{metric.name}_{end}"
        for metric in declared.rated
        for end in ("best", "best_epoch", "last")
    ]
    assert len(columns) > 100
    results = pd.DataFrame({name: [] for name in ("run_id", *columns)})
    scores = ("score_gap_last", "accuracy_last", "spread_ratio_last")
    results = results.assign(**dict.fromkeys(scores, 0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.PerformanceWarning)
        results_view.best_and_last(results, pd.DataFrame({"metric": []}), [], declared)


def test_compare_draws_options_alongside_results(show: Show, trained: Make) -> None:
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
    app = show("compare", tab="samples", runs="quick-0001,quick-0002")
    assert not app.exception
    assert len(app.slider) == 1
    assert texts(app).count("After epoch 2, step 20") == 2
    assert shares(app) == [[0.75, 0.25, 0.75, 0.25]] * 2
    app.slider[0].set_value(1).run()
    assert texts(app).count("After epoch 1, step 10") == 2
    assert shares(app) == [[0.25, 0.75]] * 2


def test_epoch_slider_keeps_its_epoch_when_a_longer_run_is_added(
    show: Show, trained: Make, new_run: Make
) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    longer = new_run("longer-0003", seconds=20, epochs=9)
    meta = {"sample_kind": "fixed_latents", "file": "samples/epoch-00009.png", "meta": {}}
    write_grid(longer.samples / "epoch-00009.png")
    journal.append(
        longer.trainer_journal(),
        1,
        journal.Sample(epoch=9, step=90, **meta),
        ENDED,
    )
    app = show("compare", tab="samples", runs="quick-0001,quick-0002")
    assert app.slider[0].value == 2

    def epoch_with(runs: str) -> object:
        app.query_params["runs"] = runs
        app.run()
        assert not app.exception
        return app.slider[0].value

    assert epoch_with("quick-0001,longer-0003") == 9  # the newest, as before
    app.slider[0].set_value(7).run()
    assert epoch_with("quick-0001,quick-0002") == 2
    app.slider[0].set_value(1).run()
    assert epoch_with("quick-0001,longer-0003") == 1


def test_a_run_named_like_a_column_leaves_the_options_readable(show: Show, trained: Make) -> None:
    trained("quick-0001", seed=1, name="Option")
    trained("quick-0002", seconds=10, seed=2)
    app = show("compare", runs="quick-0001,quick-0002")
    [table] = [element.value for element in app.dataframe if "Option" in element.value]
    assert table.iloc[0].to_dict() == {"Option": "Seed", "Option (run)": "1", "quick-0002": "2"}


def shares(app: AppTest) -> list[list[float]]:
    """Returns the shares in each chart of D's scores."""
    charts = [
        element.proto
        for element in app.get("vega_lite_chart")
        if "D's score (1 = real)" in element.proto.spec
    ]
    return [
        list(pa.ipc.open_stream(chart.datasets[0].data.data).read_pandas()["share"])
        for chart in charts
    ]


def test_compare_explains_whether_images_match_one_to_one(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    trained("other-0003", seconds=20, workload="mlp_gan")
    assert "compare these grids image by image" in texts(
        show("compare", tab="samples", runs="quick-0001,quick-0002")
    )
    assert "not single images" in texts(
        show("compare", tab="samples", runs="quick-0001,other-0003")
    )


def test_comparison_time_lapse_shows_all_runs_and_epochs(show: Show, trained: Make) -> None:
    trained("quick-0001")
    trained("quick-0002", seconds=10)
    app = show("compare", tab="samples", runs="quick-0001,quick-0002")
    buttons = [button.proto.label for button in app.get("download_button")]
    assert buttons == ["Download report", "Time-lapse"]
    store = session.runtime().store
    rows = queries.runs(store)
    epochs = queries.sample_epochs(store, ["quick-0001", "quick-0002"])
    film = players.film(store, rows, epochs, "samples", run_selection.colors(rows))
    with Image.open(io.BytesIO(film)) as opened:
        assert (opened.format, opened.n_frames, opened.size) == ("GIF", 1, (988, 544))
