"""The charts of the Compare page, as data and as specs, and how runs are grouped into curves."""

from __future__ import annotations

import json
from typing import Any

import altair as alt
import pandas as pd
import pytest

from dashboard import health_charts, palette, plots
from dashboard.compare import charts as compare_charts
from dashboard.compare import grouping
from dashboard.compare.charts import CurveStyle
from dashboard.evaluation import charts as evaluation_charts
from dashboard.run import health_view
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow

METRICS = declarations.of("dcgan_mnist").table()
LOSS, NORM = METRICS["loss_generator"], METRICS["gradient_norm_generator"]
COLORS = {"first": "#009E73", "second": "#E69F00"}


def curve(*values: float) -> pd.DataFrame:
    """Both runs with these values at steps 1, 2, …"""
    steps = list(range(1, len(values) + 1))
    rows = pd.DataFrame(
        {"x": steps, "step": steps, "epoch": 1, "low": values, "mean": values, "high": values}
    )
    return pd.concat([rows.assign(run="first"), rows.assign(run="second")])


def smoothed(chart: alt.LayerChart) -> list[float]:
    """The values of the first run's bold line."""
    rows = chart.data[chart.data["run"] == "first"]
    return [round(value, 6) for value in rows["smoothed"]]


def _without_rows(chart: alt.LayerChart) -> alt.LayerChart:
    chart.data = alt.NamedData("rows")
    return chart


def y_axes(chart: alt.LayerChart) -> set[tuple[str, str]]:
    """Scale and title of the y axes of all layers."""
    return {
        (layer["encoding"]["y"]["scale"].get("type", "linear"), layer["encoding"]["y"]["title"])
        for layer in chart.to_dict()["layer"][
            1:
        ]  # the first is the background, which receives double-clicks
    }


@pytest.mark.parametrize(("smoothing", "points"), [("none", 1), ("light", 2), ("strong", 10)])
def test_smoothing_is_a_mean_over_a_share_of_the_points(smoothing: Any, points: int) -> None:
    values = [0.0] * 50 + [1.0] * 50
    chart = compare_charts.run_curves(curve(*values), COLORS, "step", LOSS, CurveStyle(smoothing))
    rise = [round(step / points, 6) for step in range(1, points + 1)]
    assert smoothed(chart) == [0.0] * 50 + rise + [1.0] * (50 - points)


def test_per_epoch_metrics_are_not_smoothed() -> None:
    values = [1.0] * 50 + [2.0] * 50
    chart = compare_charts.run_curves(curve(*values), COLORS, "epoch", NORM, CurveStyle("strong"))
    assert smoothed(chart) == values


def test_a_single_epoch_shows_its_interval() -> None:
    def marks(metric: Metric) -> list[str]:
        chart = compare_charts.run_curves(curve(0.5), COLORS, "epoch", metric, CurveStyle())
        return [layer["mark"]["type"] for layer in chart.to_dict()["layer"]]

    assert marks(NORM).count("rule") == marks(LOSS).count("rule") + 1


def test_the_number_of_points_changes_only_the_rows_of_a_chart() -> None:
    few, many = (
        compare_charts.run_curves(
            curve(*[0.5] * points), COLORS, "step", LOSS, CurveStyle("strong")
        )
        for points in (4, 100)
    )
    assert plots.specification(_without_rows(few)) == plots.specification(_without_rows(many))


def test_the_y_scale_fits_the_metric_unless_selected() -> None:
    frame = curve(0.5, 0.25)
    domains = {
        (metric.title, y): y_axes(
            compare_charts.run_curves(frame, COLORS, "step", metric, CurveStyle(y=y))
        )  # type: ignore[arg-type]
        for metric in (LOSS, NORM)
        for y in ("auto", "linear", "log")
    }
    assert domains == {
        ("Generator loss", "auto"): {("linear", "Loss (nats)")},
        ("Generator loss", "linear"): {("linear", "Loss (nats)")},
        ("Generator loss", "log"): {("log", "Loss (nats, log)")},
        ("Gradient norm of the generator", "auto"): {("log", "Norm (log)")},
        ("Gradient norm of the generator", "linear"): {("linear", "Norm")},
        ("Gradient norm of the generator", "log"): {("log", "Norm (log)")},
    }


def test_a_log_axis_omits_values_not_above_zero() -> None:
    frame = curve(-1.0, 0.0, 2.0)
    assert list(compare_charts.drawable(frame, LOSS, "log")["mean"]) == [2.0, 2.0]
    assert len(compare_charts.drawable(frame, LOSS, "auto")) == 6


def labels_of_y(chart: alt.LayerChart) -> str:
    """What the y axis labels, as Vega reads it."""
    axes = [layer["encoding"].get("y", {}).get("axis", {}) for layer in chart.to_dict()["layer"]]
    return str(next(axis["values"] for axis in axes if "values" in axis)["expr"])


def test_a_log_axis_has_labels_however_close_the_values_are() -> None:
    epochs = pd.DataFrame({"epoch": [1, 2], "value": [0.6, 0.93], "floor": 0.97, "series": "first"})
    epochs = epochs.assign(low=epochs["value"], high=epochs["value"])
    quality = METRICS["quality_coverage"]
    for chart in (
        compare_charts.run_curves(curve(0.6, 0.93), COLORS, "step", NORM, CurveStyle()),
        evaluation_charts.over_epochs(epochs, quality, COLORS),
        health_charts.quality_curve(epochs, quality, log=True),
    ):
        close, listed = labels_of_y(chart).split(" ? null : ")  # null: the labels that Vega chooses
        assert close == "domain('y')[1] < 5 * domain('y')[0]"
        values = json.loads(listed)
        assert [value for value in values if 0.06 <= value <= 3.0] == [0.1, 0.2, 0.5, 1.0, 2.0]
        assert all(third <= 5.001 * first for first, third in zip(values, values[2:], strict=False))


@pytest.mark.parametrize("value", [0.0378490073, -1.97, 858.0])
def test_a_single_measurement_has_an_axis_from_zero(value: float) -> None:
    """Alone it has no range: its label would have every digit."""
    assert not health_view.is_log(pd.DataFrame({"value": [value]}))
    rows = pd.DataFrame({"epoch": [90], "value": value, "low": value, "high": value})
    chart = health_charts.quality_curve(rows, METRICS["quality_kcd"], log=False).to_dict()
    assert all(layer["encoding"]["y"]["scale"]["zero"] for layer in chart["layer"])


def test_the_name_of_a_measured_score_fits_a_narrow_column() -> None:
    """A longer title of the axis would push the title of the chart out of sight."""
    qualities = [
        metric
        for evaluation in evaluations().values()
        for metric in evaluation.scores
        if metric.role == "measured_quality"
    ]
    assert len(qualities) > 20
    for metric in qualities:
        chart = health_charts.quality_curve(pd.DataFrame(), metric, log=True).to_dict()
        lines = chart["title"]["subtitle"]
        assert lines[0].startswith(metric.title)
        assert max(map(len, lines)) <= 52
        assert {layer["encoding"]["y"]["title"] for layer in chart["layer"]} == {None}


def test_a_click_selects_the_run() -> None:
    params = compare_charts.run_curves(curve(0.5), COLORS, "step", LOSS, CurveStyle()).to_dict()[
        "params"
    ]
    assert {param["name"]: param["select"].get("fields") for param in params}["pick"] == ["run"]


def test_lines_are_dashed_when_colors_run_out() -> None:
    colors = {"first": "#009E73", "second": "#E69F00", "third": "#009E73", "fourth": "#009E73"}
    assert palette.repeated(colors) == {"third", "fourth"}
    assert palette.is_ambiguous(colors), "the third and the fourth look the same"
    assert not palette.is_ambiguous({**colors, "fourth": "#56B4E9"})
    bold = compare_charts.run_curves(curve(0.5), colors, "step", LOSS, CurveStyle()).to_dict()[
        "layer"
    ][3]
    assert bold["encoding"]["strokeDash"]["scale"]["range"] == [[1, 0], [1, 0], [5, 3], [5, 3]]


# ---- groups --------------------------------------------------------------------------------------


def row(run_id: str, color: int = 0, **options: Any) -> RunRow:
    """A stored run with these options."""
    spec = RunSpec.parse(options)
    values = {"run_id": run_id, "name": run_id, "color": color, "spec": spec.model_dump_json()}
    return RunRow(**{**dict.fromkeys(RunRow.__dataclass_fields__), **values})  # type: ignore[arg-type]


GRID = [
    row("run-1", batch_size_global=256, seed=1),
    row("run-2", batch_size_global=64, seed=1, color=1),
    row("run-3", batch_size_global=256, seed=2, color=2),
    row("run-4", batch_size_global=1024, seed=2, color=3),
]


def test_each_single_run_keeps_its_own_color() -> None:
    assert [(group.name, group.color) for group in grouping.each_run(GRID)][:2] == [
        ("run-1", "#009E73"),
        ("run-2", "#CC79A7"),
    ]


def test_eight_runs_get_distinct_colors_and_keep_their_own_if_free() -> None:
    runs = palette.RUNS
    assert palette.distinct([3, 5, 3]) == [runs[3], runs[5], runs[0]]
    assert palette.distinct([0, 8, 1]) == [runs[0], runs[1], runs[2]]
    assert len(set(palette.distinct([7] * 8))) == 8
    assert palette.distinct([2] * 9)[8] == runs[2], "the ninth begins anew, and is drawn dashed"


def test_the_two_greens_are_combined_only_if_no_other_color_is_free() -> None:
    first, second = palette.RUNS.index("#009E73"), palette.RUNS.index("#44AA99")
    assert palette.distinct([first, second, second]) == [
        "#009E73",
        palette.RUNS[1],
        palette.RUNS[2],
    ]
    assert palette.distinct([second, first]) == ["#44AA99", palette.RUNS[1]]


def test_groups_are_sorted_by_option_value_and_have_own_colors() -> None:
    groups = grouping.grouped(GRID, "batch_size_global")
    assert [(group.name, group.run_ids, group.color) for group in groups] == [
        ("batch 64 (1 run)", ("run-2",), "#AA3377"),
        ("batch 256 (2 runs)", ("run-1", "run-3"), "#228833"),
        ("batch 1024 (1 run)", ("run-4",), "#CCBB44"),
    ]
    assert [group.name for group in grouping.grouped(GRID[::-1], "batch_size_global")] == [
        group.name for group in groups
    ]
    assert set(palette.GROUPS) & {*palette.RUNS, palette.GENERATOR, palette.DISCRIMINATOR} == set()


def test_a_group_over_seeds_has_equal_other_options() -> None:
    assert [
        (group.name, group.run_ids) for group in grouping.grouped(GRID[:3], grouping.OVER_SEEDS)
    ] == [
        ("batch 64 (1 run)", ("run-2",)),
        ("batch 256 (2 runs)", ("run-1", "run-3")),
    ]
    same = [row("run-1", seed=1), row("run-2", seed=2)]
    assert [group.name for group in grouping.grouped(same, grouping.OVER_SEEDS)] == [
        "same options (2 runs)"
    ]


def test_only_differing_options_can_group_runs() -> None:
    assert list(grouping.choices(GRID)) == ["each run", "over seeds", "batch_size_global"]
    assert list(grouping.choices([GRID[0], row("run-9", batch_size_global=256, seed=1)])) == [
        "each run"
    ]


def test_run_names_do_not_count_as_differing_options() -> None:
    named = [row("run-1", seed=1, name="first try"), row("run-2", seed=2, name="second try")]
    assert [option.name for option in grouping.differing(named)] == ["seed"]
