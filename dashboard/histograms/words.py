"""What the stored distributions are called, and which of them the Histograms page shows beside each other.

Names and colors are those that the runs' workloads declare. A histogram that fits no kind here is shown nowhere;
tests/engines/test_every_series.py fails for one that a trainer stores.
"""

from __future__ import annotations

from dataclasses import dataclass

from dashboard import panels
from gan_runtime.base.metrics import GRADIENT, OF_PHASE, WEIGHT, histogram
from gan_runtime.catalog.declared import Declared
from gan_runtime.catalog.entries import Judgement

KINDS = {WEIGHT: ("Weights", "Weight"), GRADIENT: ("Gradients", "Gradient")}


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
class Choice:
    """What a person picks: distributions that belong together."""

    label: str
    panels: tuple[Panel, ...]


def choices(histograms: list[str], metrics: list[str], known: Declared) -> list[Choice]:
    """Everything that can be shown of runs that have stored these histograms and metrics: scores, losses, then layer by layer."""
    offered = [Choice(_of_whom(known), _scores(histograms, known))]
    losses = [loss for loss in known.losses if loss.name in metrics]
    offered.append(
        Choice(
            "Losses of the steps",
            tuple(
                Panel(loss.name, loss.title, loss.axis, panels.color(known, loss), True) for loss in losses
            ),
        )
    )
    parts = {_part(name) for name in histograms if _kind(name)[0] in KINDS}
    offered += [
        Choice(part_name(part, known), _values(part, histograms, known))
        for part in sorted(parts, key=lambda part: _order(part, known))
    ]
    return [choice for choice in offered if choice.panels]


def shown(histograms: list[str], metrics: list[str], known: Declared) -> set[str]:
    """Those of the series that the page shows."""
    return {panel.series for choice in choices(histograms, metrics, known) for panel in choice.panels}


def whole_networks(known: Declared, histograms: list[str]) -> list[Panel]:
    """Weights and gradients of each network, all its layers together: those that are stored, or are to be expected."""
    expected = [histogram(kind, network.name) for network in known.networks for kind in KINDS]
    stored = [name for name in histograms if _kind(name)[0] in KINDS and "/" not in _part(name)]
    names = sorted(stored or expected, key=lambda name: (_order(_part(name), known), *_kind_order(name)))
    return [
        _value_panel(name, f"{known.network(_part(name)).title} {_begin_small(_kind_title(name))}", known)
        for name in names
    ]


def part_name(part: str, known: Declared) -> str:
    """ "generator" → "Generator, all layers"; "generator/up_1" → "Generator, layer up 1"."""
    network, _, layer = part.partition("/")
    which = f"layer {layer.replace('_', ' ')}" if layer else "all layers"
    return f"{known.network(network).title}, {which}"


def _scores(histograms: list[str], known: Declared) -> tuple[Panel, ...]:
    lines = [line for group in panels.judged(known, histograms) for line in group.lines]
    return tuple(
        _score_panel(line, known.histograms.get(line.name)) for line in lines if line.name in histograms
    )


def _score_panel(line: panels.Line, judged: Judgement | None) -> Panel:
    if judged is None:
        return Panel(line.name, line.label, panels.UNDECLARED_SCORE, line.color)
    return Panel(line.name, judged.title, judged.axis, line.color, domain=judged.bounds)


def _of_whom(known: Declared) -> str:
    """ "Scores of the discriminator", where the workload says who judges."""
    score = known.of_role("judged_real")
    return f"Scores of the {known.network(score.network).noun}" if score and score.network else "Scores"


def _values(part: str, histograms: list[str], known: Declared) -> tuple[Panel, ...]:
    names = [name for name in histograms if _part(name) == part and _kind(name)[0] in KINDS]
    named = _begin_small(part_name(part, known))
    return tuple(
        _value_panel(name, f"{_kind_title(name)}: {named}", known) for name in sorted(names, key=_kind_order)
    )


def _value_panel(name: str, title: str, known: Declared) -> Panel:
    network = _part(name).partition("/")[0]
    return Panel(name, title, KINDS[_kind(name)[0]][1], panels.network_color(known, network))


def _kind(name: str) -> tuple[str, str]:
    """Kind and phase: "gradient@judge/critic" gives ("gradient", "judge"); without a phase it is ""."""
    kind, _, phase = name.partition("/")[0].partition(OF_PHASE)
    return kind, phase


def _kind_title(name: str) -> str:
    kind, phase = _kind(name)
    return f"{KINDS[kind][0]} of phase {phase}" if phase else KINDS[kind][0]


def _kind_order(name: str) -> tuple[int, str]:
    kind, phase = _kind(name)
    return list(KINDS).index(kind), phase


def _part(name: str) -> str:
    return name.partition("/")[2]


def _order(part: str, known: Declared) -> tuple[int, str]:
    """Networks in their order, and each before its layers."""
    networks = [network.name for network in known.networks]
    network = part.partition("/")[0]
    return (networks.index(network) if network in networks else len(networks), part)


def _begin_small(text: str) -> str:
    return text[:1].lower() + text[1:]
