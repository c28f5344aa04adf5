"""What the stored distributions are called, and which of them the Histograms page shows beside each other.

A histogram that fits no row here is shown nowhere; tests/engines/test_every_series.py fails for one that a trainer stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard import palette
from dashboard.metric_words import METRICS
from gan_runtime.store import queries

NETWORK_COLORS = {"generator": palette.GENERATOR, "discriminator": palette.DISCRIMINATOR}
KINDS = {"weight": ("Weights", "Weight"), "gradient": ("Gradients", "Gradient")}
SCORES = {
    "score/real": ("Scores of real images", palette.REAL),
    "score/fake": ("Scores of generated images", palette.GENERATOR),
}
SCORE_AXIS = "D's score (1 = real)"


@dataclass(frozen=True)
class Panel:
    """One distribution. `series`: name of a histogram, or with `of_steps` a metric of the steps. `domain`: all that it can be."""

    series: str
    title: str
    axis: str
    color: str
    of_steps: bool = False
    domain: tuple[float, float] | None = None


@dataclass(frozen=True)
class Item:
    """What a person picks: one or two distributions that belong together."""

    label: str
    panels: tuple[Panel, ...]


def items(histograms: list[str], metrics: list[str]) -> list[Item]:
    """Everything that can be shown of runs that have stored these histograms and metrics: scores, losses, then layer by layer."""
    scores = tuple(
        Panel(name, title, SCORE_AXIS, color, domain=(0.0, 1.0))
        for name, (title, color) in SCORES.items()
        if name in histograms
    )
    losses = tuple(_loss(metric) for metric in queries.LOSSES if metric in metrics)
    found = [Item("Scores of the discriminator", scores), Item("Losses of the steps", losses)]
    parts = {name.partition("/")[2] for name in histograms if name.partition("/")[0] in KINDS}
    found += [Item(part_name(part), _values(part, histograms)) for part in sorted(parts, key=_order)]
    return [item for item in found if item.panels]


def shown(histograms: list[str], metrics: list[str]) -> set[str]:
    """Those of the series that the page shows."""
    return {panel.series for item in items(histograms, metrics) for panel in item.panels}


def part_name(part: str) -> str:
    """ "generator" → "Generator, all layers"; "generator/up_1" → "Generator, layer up 1"."""
    network, _, layer = part.partition("/")
    return (
        f"{network.capitalize()}, layer {layer.replace('_', ' ')}"
        if layer
        else f"{network.capitalize()}, all layers"
    )


def _values(part: str, histograms: list[str]) -> tuple[Panel, ...]:
    color = NETWORK_COLORS.get(part.partition("/")[0], palette.NEUTRAL)
    return tuple(
        Panel(f"{kind}/{part}", f"{title}: {_begin_small(part_name(part))}", axis, color)
        for kind, (title, axis) in KINDS.items()
        if f"{kind}/{part}" in histograms
    )


def _loss(metric: str) -> Panel:
    return Panel(
        metric,
        METRICS[metric].title,
        METRICS[metric].axis,
        NETWORK_COLORS[metric.partition("_")[2]],
        of_steps=True,
    )


def _order(part: str) -> tuple[int, str]:
    """The generator first, and each network before its layers."""
    networks = list(NETWORK_COLORS)
    network = part.partition("/")[0]
    return (networks.index(network) if network in networks else len(networks), part)


def _begin_small(text: str) -> str:
    return text[:1].lower() + text[1:]
