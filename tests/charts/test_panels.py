"""Which metrics share a chart, and their names and colors, as declared by workloads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import altair as alt
import pandas as pd
import pytest

from dashboard import chart_panels, charts, health_charts, palette
from gan_runtime import catalog
from gan_runtime.base.metrics import (
    FURTHER_NUMBERS,
    LOSSES,
    NOT_DRAWN,
    SCORES,
    Metric,
    Network,
    Panel,
)
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.catalog.entries import Judgement

PAIR = declarations.of("dcgan_mnist")
CRITIC_LOSS = Metric(
    "loss_critic", "Critic loss", "Loss", LOSSES, "loss", network="critic", label="Critic"
)
SCORE_OF_REAL = Metric(
    "c_real", "Value of real rows", "Critic's value", SCORES, "score_of_real", network="critic"
)


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Declarations:
    """A workload whose images come from its second network, and whose critic outputs no
    probability.
    """
    entry = replace(
        catalog.WORKLOADS["dcgan_mnist"],
        networks=(
            Network("critic", "Critic", "C"),
            Network("painter", "Painter"),
            Network("encoder", "Encoder"),
        ),
        metrics=(
            CRITIC_LOSS,
            SCORE_OF_REAL,
            replace(SCORE_OF_REAL, name="c_painted", role="score_of_generated"),
            Metric("slope", "Slope", "Norm", FURTHER_NUMBERS),
            Metric("hidden", "Hidden", "Norm", NOT_DRAWN),
        ),
        judgements=(Judgement("real", "Values of real rows", "Critic's value", side="real"),),
        panels=(),
        averaged="painter",
    )
    monkeypatch.setitem(catalog.WORKLOADS, "stranger", entry)
    return declarations.of("stranger")


def test_the_network_producing_images_is_blue_and_others_follow(
    stranger: Declarations,
) -> None:
    names = ("painter", "critic", "encoder", "unheard_of")
    colors = [chart_panels.network_color(stranger, name) for name in names]
    assert colors == [
        palette.GENERATOR,
        palette.DISCRIMINATOR,
        palette.NETWORKS[2],
        palette.NEUTRAL,
    ]
    assert [chart_panels.network_color(PAIR, network.name) for network in PAIR.networks] == colors[
        :2
    ]


def test_losses_of_one_network_have_distinct_names() -> None:
    metrics = declarations.of("shower_3dgan")
    (losses,) = chart_panels.panel_groups(metrics, LOSSES)
    assert list(losses.colors) == ["G, first", "G, second", "D, simulated", "D, generated"]
    assert [metrics.loss_title(loss) for loss in metrics.losses] == [
        *("Loss G, first", "Loss G, second"),
        *("Loss D, simulated", "Loss D, generated"),
    ]
    assert [PAIR.loss_title(loss) for loss in PAIR.losses] == ["Loss G", "Loss D"]


def test_metrics_share_a_chart_by_panel_and_axis(
    stranger: Declarations,
) -> None:
    groups = chart_panels.groups(stranger, stranger.table(["slope", "cell_energy"]).values())
    names_by_panel = {group.panel.heading: group.names for group in groups}
    assert names_by_panel[LOSSES] == ("loss_critic",)
    assert names_by_panel[SCORES] == ("c_real", "c_painted")
    assert names_by_panel["How large are the gradients?"] == tuple(
        f"gradient_norm_{name}" for name in ("painter", "critic", "encoder")
    )
    assert (names_by_panel["Slope"], names_by_panel["Cell energy"]) == (
        ("slope",),
        ("cell_energy",),
    )
    assert "hidden" not in [name for names in names_by_panel.values() for name in names]


def test_a_metric_has_the_color_of_its_rows_or_its_network(stranger: Declarations) -> None:
    table = stranger.table(["cell_energy"])
    colors = [
        chart_panels.color(stranger, table[name])
        for name in ("c_real", "c_painted", "loss_critic", "cell_energy")
    ]
    assert colors == [palette.REAL, palette.GENERATOR, palette.DISCRIMINATOR, palette.NEUTRAL]


def test_unbounded_scores_span_lowest_to_highest_value(
    stranger: Declarations,
) -> None:
    [judged] = chart_panels.score_histograms(stranger)
    frame = pd.DataFrame({"name": ["score/real"], "left": [-3.0], "right": [4.0], "share": [1.0]})
    x = charts.score_histogram(frame, judged).to_dict()["encoding"]["x"]
    assert (x["title"], x["scale"]) == ("Critic's value", {"zero": False})
    [pair] = chart_panels.score_histograms(PAIR)
    assert pair.panel.domain == (0.0, 1.0)
    assert pair.names == ("score/real", "score/fake")


def test_judgments_with_different_axes_have_separate_charts() -> None:
    energy = Judgement("energy", "Energy of a shower", "Energy (GeV)", 0.0, 500.0)
    width, height = (
        Judgement(name, name.capitalize(), "Length (mm)") for name in ("width", "height")
    )
    groups = chart_panels.score_histograms(
        Declarations(judgements=(energy, width, height)), ["score/width", "score/edge"]
    )
    assert [(group.axis, group.names, group.panel.domain) for group in groups] == [
        ("Energy (GeV)", ("score/energy",), (0.0, 500.0)),
        ("Length (mm)", ("score/width", "score/height"), None),
        ("Score", ("score/edge",), None),
    ]
    assert chart_panels.score_histograms(Declarations()) == []


def test_equal_colors_are_distinguished_by_dashes() -> None:
    names = ["gradient_norm_generator@g_1", "gradient_norm_generator@g_2"]
    table = PAIR.table(names)
    [group] = chart_panels.groups(PAIR, [table[name] for name in names])
    assert list(group.colors) == ["G, g_1", "G, g_2"]
    frame = pd.DataFrame({"metric": names, "epoch": 1, "step": 4, "value": [0.5, 0.25]})
    line = health_charts.over_epochs(frame, group).to_dict()["layer"][0]
    assert line["encoding"]["strokeDash"]["scale"]["range"] == [[1, 0], [6, 4]]


def by_class(names: list[str]) -> list[chart_panels.Group]:
    """The score charts of real and of generated images of these classes."""
    stored = [f"score/{side}/{name}" for name in names for side in ("fake", "real")]
    table = PAIR.table(stored)
    return chart_panels.groups(PAIR, [metric for name, metric in table.items() if name in stored])


def test_judged_classes_share_charts_under_their_names() -> None:
    real, generated = by_class(["cat", "a/b@c"])
    assert (real.panel.heading, generated.panel.heading) == (
        "Scores of real images, by class",
        "Scores of generated images, by class",
    )
    assert real.labels == {"score/real/cat": "cat", "score/real/a/b@c": "a/b@c"}
    assert list(real.colors.values()) == list(generated.colors.values()) == list(palette.LINES[:2])
    assert (real.panel.domain, real.per_epoch, real.axis) == (
        (0.0, 1.0),
        True,
        "D's score (1 = real)",
    )
    assert PAIR.table(["score/real/cat"])["score/real/cat"].title == "Scores of real images: cat"


def test_metrics_of_undeclared_classes_are_named_by_their_parts() -> None:
    table = declarations.of("removed_gan").table(["score/margin/cat", "score/margin/dog"])
    [group] = chart_panels.groups(declarations.of("removed_gan"), table.values())
    assert (group.panel.heading, list(group.colors)) == ("Margin, by class", ["cat", "dog"])


def test_twenty_classes_are_distinguishable_with_a_column_legend() -> None:
    group, _ = by_class([f"class {number}" for number in range(20)])
    frame = pd.DataFrame({"metric": group.names, "epoch": 1, "step": 4, "value": 0.5})
    spec = health_charts.over_epochs(frame, group).to_dict()
    line = spec["layer"][0]["encoding"]
    looks = zip(
        line["color"]["scale"]["range"], map(str, line["strokeDash"]["scale"]["range"]), strict=True
    )
    assert len(set(looks)) == 20
    legend = line["color"]["legend"]
    assert (legend["columns"], legend["symbolType"]) == (3, "stroke")
    assert spec["height"] == health_charts.HEIGHT + 6 * health_charts.ROW_HEIGHT, (
        "seven rows of names"
    )


def legends(spec: dict[str, Any]) -> list[dict[str, Any]]:
    encodings = [layer.get("encoding", {}) for layer in spec["layer"]]
    return [
        channel["color"]["legend"] for channel in encodings if "legend" in channel.get("color", {})
    ]


@pytest.mark.parametrize(
    "draw", [health_charts.over_epochs, health_charts.over_steps, charts.step_curves]
)
def test_legend_names_are_never_truncated(
    stranger: Declarations, draw: Callable[..., alt.LayerChart]
) -> None:
    """Long names are in columns of their own width, even on the narrowest chart."""
    names = [f"update_ratio_critic@phase_with_a_long_name_{number}" for number in range(5)]
    table = stranger.table(names)
    [group] = chart_panels.groups(stranger, [table[name] for name in names])
    [legend, *further] = legends(draw(alt.NamedData("rows"), group).to_dict())
    longest = charts.LETTER * max(map(len, group.colors))
    assert all(other == legend for other in further)
    assert legend["columns"] == 1
    assert longest <= legend["labelLimit"] <= charts.NARROWEST


def test_a_few_short_names_fit_in_one_legend_row() -> None:
    [group] = chart_panels.panel_groups(PAIR, LOSSES)
    assert legends(charts.step_curves(alt.NamedData("rows"), group).to_dict())[0]["columns"] == 0
    assert charts.legend_rows(dict.fromkeys("0123456789", "")) == 2


def test_a_metric_stored_per_phase_has_no_overall_line(
    stranger: Declarations,
) -> None:
    names = ["gradient_norm_critic@judge", "gradient_norm_critic@punish", "gradient_norm_painter"]
    table = stranger.table(names)
    assert "gradient_norm_critic" not in table
    assert table["gradient_norm_critic@punish"].label == "C, punish"
    assert {"gradient_norm_painter", "update_ratio_critic"} <= set(table)
    assert "gradient_norm_critic" in stranger.table([*names, "gradient_norm_critic"])


@pytest.mark.parametrize("per_epoch", [True, False])
@pytest.mark.parametrize("usual", [(0.25, 0.75), (2.0, 2.0)])
def test_the_usual_range_is_drawn_behind_the_values(
    per_epoch: bool, usual: tuple[float, float]
) -> None:
    metrics = (Metric("slope", "Slope", "Slope", "Slopes", per_epoch=per_epoch),)
    declaration = Declarations(metrics=metrics, panels=(Panel("Slopes", usual=usual),))
    [group] = chart_panels.groups(declaration, declaration.table().values())
    draws = (
        [health_charts.over_epochs] if per_epoch else [health_charts.over_steps, charts.step_curves]
    )
    for draw in draws:
        spec = draw(alt.NamedData("rows"), group).to_dict()
        [behind] = [
            layer
            for layer in spec["layer"]
            if {"low": usual[0], "high": usual[1]} in values(layer, spec)
        ]
        assert behind["mark"]["type"] == ("rule" if usual[0] == usual[1] else "rect")
        assert spec["layer"].index(behind) <= 1


def values(layer: dict[str, Any], spec: dict[str, Any]) -> list[Any]:
    data = layer.get("data", {})
    return list(data.get("values", spec.get("datasets", {}).get(data.get("name"), [])))


@pytest.mark.parametrize("workload", ["shower_3dgan", "pix2pix"])
def test_weighted_losses_have_a_logarithmic_axis(workload: str) -> None:
    [group] = chart_panels.panel_groups(declarations.of(workload), LOSSES)
    layers = charts.step_curves(alt.NamedData("rows"), group).to_dict()["layer"]
    [y, *_] = [
        layer["encoding"]["y"]
        for layer in layers
        if "field" in layer.get("encoding", {}).get("y", {})
    ]
    assert y["scale"] == {"type": "log", "nice": False}
    assert " 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, " in y["axis"]["values"]["expr"]


def test_a_shared_metric_has_a_unit_only_if_all_workloads_agree() -> None:
    units = {}
    for names in (
        ["dcgan_mnist", "mlp_gan"],
        ["dcgan_mnist", "pix2pix"],
        ["pix2pix", "dcgan_mnist", "mlp_gan"],
    ):
        declaration = declarations.together(names)
        loss = next(metric for metric in declaration.losses if metric.name == "loss_generator")
        units[tuple(names)] = (loss.axis, loss.unit)
    assert list(units.values()) == [
        ("Loss (nats)", "nats"),
        ("Generator loss", ""),
        ("Generator loss", ""),
    ]


def test_combined_workloads_keep_their_order(stranger: Declarations) -> None:
    both = declarations.together(["dcgan_mnist", "stranger", "mlp_gan", "removed_gan"])
    assert [network.name for network in both.networks] == [
        "generator",
        "discriminator",
        "painter",
        "critic",
        "encoder",
    ]
    assert [both.loss_title(loss) for loss in both.losses] == ["Loss G", "Loss D", "Loss C"]
    assert stranger.of_role("judged_real") is None


def test_a_second_network_loss_is_dashed_in_plot_and_legend() -> None:
    losses = chart_panels.panel_groups(declarations.of("shower_3dgan"), LOSSES)[0]
    layers = charts.step_curves(alt.NamedData("rows"), losses).to_dict()["layer"]
    dashes = [
        layer["encoding"]["strokeDash"]
        for layer in layers
        if "strokeDash" in layer.get("encoding", {})
    ]
    assert [dash["scale"]["range"] for dash in dashes] == [
        [charts.SOLID, charts.DASHED, charts.SOLID, charts.DASHED]
    ]
    assert dashes[0]["scale"]["domain"] == list(losses.colors)
    assert dashes[0]["legend"]["symbolType"] == "stroke"


def test_lines_with_distinct_colors_are_not_dashed() -> None:
    losses = chart_panels.panel_groups(PAIR, LOSSES)[0]
    spec = charts.step_curves(alt.NamedData("rows"), losses).to_dict()
    assert all("strokeDash" not in layer.get("encoding", {}) for layer in spec["layer"])
