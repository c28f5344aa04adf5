"""The charts of distributions, as data."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dashboard import histogram_charts, palette
from dashboard.histogram_view import choices, panel_names, part_name, whole_networks
from gan_runtime.catalog import declarations

COLUMNS = ["run_id", "epoch", "left", "right", "share"]
LAYERS = [
    f"{kind}/{part}"
    for kind in ("weight", "gradient")
    for part in ("generator", "generator/up_1", "discriminator")
]

PAIR = declarations.of("dcgan_mnist")


@pytest.fixture
def two_epochs() -> pd.DataFrame:
    rows = [
        ("quick-0001", epoch, edge, edge + 0.5, share)
        for epoch in (1, 2)
        for edge, share in ((0.0, 0.25), (0.5, 0.75))
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def chart_rows(chart: Any) -> pd.DataFrame:
    return chart.data if isinstance(chart.data, pd.DataFrame) else chart.layer[0].data


def test_each_ridge_is_at_its_epoch_and_all_have_equal_height(
    two_epochs: pd.DataFrame,
) -> None:
    rows = chart_rows(histogram_charts.ridgelines(two_epochs, "Scores", "Score", palette.REAL))
    assert list(rows["value"]) == [0.25, 0.75] * 2
    # The highest bin rises 2.5 epochs, the other one a third of that; up is toward the older
    # epochs.
    assert list(rows["top"].round(4)) == [0.1667, -1.5, 1.1667, -0.5]
    assert list(rows["epoch"]) == [1, 1, 2, 2], "the newest is drawn last, in front"


def test_ridges_of_a_thinned_run_scale_with_the_epoch_gap(two_epochs: pd.DataFrame) -> None:
    thinned = two_epochs.assign(epoch=two_epochs["epoch"] * 10)
    rows = chart_rows(histogram_charts.ridgelines(thinned, "Scores", "Score", palette.REAL))
    assert rows["top"].min() == 10 - 2.5 * 10


def test_a_ridge_ends_where_its_values_do() -> None:
    """Otherwise, the flat lines of newer epochs would cross the ridges of older ones."""
    shares = [0.0, 0.0, 0.5, 0.0, 0.5, 0.0, 0.0, 0.0]
    rows = [
        ("quick-0001", epoch, edge, edge + 1, share)
        for epoch in (1, 2)
        for edge, share in enumerate(shares)
    ]
    drawn_rows = chart_rows(
        histogram_charts.ridgelines(
            pd.DataFrame(rows, columns=COLUMNS), "Scores", "Score", palette.REAL
        )
    )
    assert list(drawn_rows["left"]) == [1, 2, 3, 4, 5] * 2


def test_the_score_axis_spans_zero_to_one(two_epochs: pd.DataFrame) -> None:
    choice, *_ = choices(["score/real"], [], PAIR)
    (panel,) = choice.panels
    spec = histogram_charts.ridgelines(
        two_epochs, panel.title, panel.axis, panel.color, domain=panel.domain
    ).to_dict()
    assert spec["layer"][0]["encoding"]["x"]["scale"] == {"domain": [0.0, 1.0]}


def test_a_single_epoch_is_drawn_as_a_ridge(two_epochs: pd.DataFrame) -> None:
    rows = chart_rows(
        histogram_charts.ridgelines(
            two_epochs[two_epochs["epoch"] == 1], "Scores", "Score", palette.REAL
        )
    )
    assert list(rows["top"].round(4)) == [0.1667, -1.5]


def test_the_heatmap_omits_empty_bins_and_spans_the_epochs(two_epochs: pd.DataFrame) -> None:
    thinned = two_epochs.assign(epoch=two_epochs["epoch"] * 4, share=[0.0, 1.0, 0.25, 0.75])
    rows = chart_rows(histogram_charts.heatmap(thinned, "Scores", "Score", palette.REAL))
    assert rows[["begin", "end", "share"]].to_numpy().tolist() == [
        [0.5, 4.5, 1.0],
        [4.5, 8.5, 0.25],
        [4.5, 8.5, 0.75],
    ]


def test_several_runs_keep_their_colors(two_epochs: pd.DataFrame) -> None:
    frame = two_epochs.assign(run=["a", "a", "b", "b"])
    chart = histogram_charts.run_overlay(
        frame, {"a": "#009E73", "b": "#CC79A7"}, "Scores", "Score"
    ).to_dict()
    assert chart["layer"][0]["encoding"]["color"]["scale"] == {
        "domain": ["a", "b"],
        "range": ["#009E73", "#CC79A7"],
    }


def test_the_distribution_spec_contains_no_data(two_epochs: pd.DataFrame) -> None:
    for draw in (histogram_charts.ridgelines, histogram_charts.heatmap):
        specs = [
            draw(frame, "Scores", "Score", palette.REAL).to_dict()
            for frame in (two_epochs, two_epochs.assign(epoch=7))
        ]
        first, second = (
            {key: value for key, value in spec.items() if key not in ("data", "datasets")}
            for spec in specs
        )
        assert str(first).replace(str(specs[0].get("data")), "") == str(second).replace(
            str(specs[1].get("data")), ""
        )


def test_layers_follow_their_network_and_the_generator_comes_first() -> None:
    options = choices(
        ["score/real", "score/fake", *LAYERS],
        ["loss_generator", "loss_discriminator", "d_real"],
        PAIR,
    )
    assert [choice.label for choice in options] == [
        "Scores of the discriminator",
        "Losses of the steps",
        "Generator, all layers",
        "Generator, layer up 1",
        "Discriminator, all layers",
    ]
    up_1 = options[3].panels
    assert [panel.title for panel in up_1] == [
        "Weights: generator, layer up 1",
        "Gradients: generator, layer up 1",
    ]
    assert {panel.color for panel in up_1} == {palette.GENERATOR}
    assert [panel.color for panel in options[1].panels] == [
        palette.GENERATOR,
        palette.DISCRIMINATOR,
    ]


def test_only_stored_histograms_are_offered() -> None:
    assert choices([], [], PAIR) == []
    assert [choice.label for choice in choices(["gradient/discriminator"], [], PAIR)] == [
        "Discriminator, all layers"
    ]
    assert part_name("critic/conv_1", PAIR) == "Critic, layer conv 1"


def test_a_series_of_an_unknown_kind_is_not_shown() -> None:
    assert panel_names([*LAYERS, "activation/generator"], [], PAIR) == set(LAYERS)


def test_gradients_of_several_phases_are_next_to_each_other() -> None:
    names = ["gradient@g_2/generator", "weight/generator", "gradient@g_1/generator"]
    [choice] = choices(names, [], PAIR)
    assert [panel.title for panel in choice.panels] == [
        "Weights: generator, all layers",
        "Gradients of phase g_1: generator, all layers",
        "Gradients of phase g_2: generator, all layers",
    ]
    assert [panel.title for panel in whole_networks(PAIR, [*names, "weight/generator/up_1"])] == [
        "Generator weights",
        "Generator gradients of phase g_1",
        "Generator gradients of phase g_2",
    ]


def test_undeclared_series_have_a_neutral_color() -> None:
    options = choices(
        ["score/edge", "weight/critic"], ["loss_critic"], declarations.of("removed_gan")
    )
    assert [
        (choice.label, choice.panels[0].title, choice.panels[0].color) for choice in options
    ] == [
        ("Scores", "Score edge", palette.NEUTRAL),
        ("Critic, all layers", "Weights: critic, all layers", palette.NEUTRAL),
    ]
