"""Which numbers share a chart, with their names and colors, as the workloads declare them. No
Streamlit.

A number has the color of its rows (real or generated), else of its network, else a neutral one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dashboard import palette
from gan_runtime.base import metrics
from gan_runtime.base.metrics import Metric, Panel
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.catalog.entries import Judgement

UNDECLARED_SCORE = "Score"  # the axis of undeclared scores


@dataclass(frozen=True)
class Line:
    """A number or a histogram. `name`: as stored; `label`: in the legend."""

    name: str
    label: str
    color: str


@dataclass(frozen=True)
class Group:
    """The numbers of one chart; they share its axis.

    `format`: of the values, in d3's notation. It never changes while a run trains.
    """

    panel: Panel
    lines: tuple[Line, ...]
    axis: str
    format: str = ".3~g"
    log: bool = False
    per_epoch: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """Stored names of its numbers."""
        return tuple(line.name for line in self.lines)

    @property
    def labels(self) -> dict[str, str]:
        """Stored name → name in the legend."""
        return {line.name: line.label for line in self.lines}

    @property
    def colors(self) -> dict[str, str]:
        """Name in the legend → color."""
        return {line.label: line.color for line in self.lines}


def network_color(declaration: Declarations, network: str) -> str:
    """The color of a network on every page; neutral for an undeclared network."""
    order = [declared_network.name for declared_network in declaration.networks]
    return (
        palette.NETWORKS[order.index(network) % len(palette.NETWORKS)]
        if network in order
        else palette.NEUTRAL
    )


def color(declaration: Declarations, metric: Metric) -> str:
    """The color of a number."""
    return palette.SIDES.get(metric.side) or network_color(declaration, metric.network)


def groups(declaration: Declarations, table: Iterable[Metric]) -> list[Group]:
    """The charts of these numbers, in their order: one for each panel and axis, and one for each
    number of `FURTHER_NUMBERS`.
    """
    members: dict[tuple[object, ...], list[Metric]] = {}
    for metric in table:
        own_name = metric.name if metric.panel == metrics.FURTHER_NUMBERS else ""
        members.setdefault(
            (metric.panel, metric.axis, metric.per_epoch, metric.log, own_name), []
        ).append(metric)
    return [
        _group(declaration, metrics_of_chart)
        for metrics_of_chart in members.values()
        if metrics_of_chart[0].panel != metrics.NOT_DRAWN
    ]


def panel_groups(declaration: Declarations, name: str) -> list[Group]:
    """The charts of the numbers that are declared for a panel."""
    return groups(
        declaration, [metric for metric in declaration.table().values() if metric.panel == name]
    )


def score_histograms(declaration: Declarations, stored: Iterable[str] = ()) -> list[Group]:
    """The score histograms that the workloads declare, and others of that kind among `stored`: a
    chart for each axis.

    The domain of a panel holds all possible values, if each of its histograms has bounds.
    """
    prefix = metrics.histogram(metrics.SCORE, "")
    judgements = dict(declaration.histograms)
    for name in stored:
        if name.startswith(prefix):
            judgements.setdefault(name, Judgement(name, _title(name), UNDECLARED_SCORE))
    axes = dict.fromkeys(judgement.axis for judgement in judgements.values())
    panel = declaration.panel(metrics.SCORES)
    return [
        _score_histogram(
            axis, panel, {name: each for name, each in judgements.items() if each.axis == axis}
        )
        for axis in axes
    ]


def _score_histogram(axis: str, panel: Panel, judgements: dict[str, Judgement]) -> Group:
    lines = [
        Line(name, judgement.legend, palette.SIDES.get(judgement.side, palette.NEUTRAL))
        for name, judgement in judgements.items()
    ]
    bounds = [judgement.bounds for judgement in judgements.values()]
    limits = [limit for pair in bounds if pair is not None for limit in pair]
    domain = None if None in bounds else (min(limits), max(limits))
    return Group(replace(panel, domain=domain), tuple(lines), axis, ".3f", per_epoch=True)


def _group(declaration: Declarations, metrics_of_chart: list[Metric]) -> Group:
    first = metrics_of_chart[0]
    panel = (
        declaration.panel(first.panel)
        if first.panel != metrics.FURTHER_NUMBERS
        else Panel(first.panel, first.title)
    )
    lines = [
        Line(metric.name, metric.legend, color(declaration, metric)) for metric in metrics_of_chart
    ]
    if len(lines) > 1 and {line.color for line in lines} == {palette.NEUTRAL}:
        colors = palette.LINES
        lines = [
            replace(line, color=colors[place % len(colors)]) for place, line in enumerate(lines)
        ]
    return Group(panel, tuple(lines), first.axis, first.format, first.log, first.per_epoch)


def _title(histogram: str) -> str:
    """The title of an undeclared histogram: "score/edge" → "Score edge"."""
    return histogram.replace("/", " ").replace("_", " ").capitalize()
