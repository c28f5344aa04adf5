"""The networks, numbers and charts that a workload declares, by the name stored with a run.

A workload that this version lacks, as of an imported run, declares nothing: its numbers are shown
under their own names and have no roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import metrics
from gan_runtime.base.metrics import Metric, Network, Panel, Role
from gan_runtime.catalog import evaluations
from gan_runtime.catalog.entries import Judgement


@dataclass(frozen=True)
class Declarations:
    """`networks`: the generating network first, then in the order of the workload's entry."""

    networks: tuple[Network, ...] = ()
    metrics: tuple[Metric, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    panels: tuple[Panel, ...] = ()

    @property
    def losses(self) -> tuple[Metric, ...]:
        """The losses that the networks follow."""
        return tuple(metric for metric in self.metrics if metric.role == "loss")

    @property
    def rated(self) -> tuple[Metric, ...]:
        """Numbers with a better direction."""
        return tuple(metric for metric in self.metrics if metric.better)

    @property
    def qualities(self) -> tuple[Metric, ...]:
        """Numbers by which an epoch can be the best."""
        return tuple(
            metric for metric in self.metrics if metric.role in ("quality", "measured_quality")
        )

    @property
    def compared(self) -> tuple[Metric, ...]:
        """The numbers of each variant in the report of a study."""
        return (*self.losses, *(metric for metric in self.rated if metric not in self.losses))

    @property
    def histograms(self) -> dict[str, Judgement]:
        """The judgements by the names of their histograms."""
        return {metrics.histogram(metrics.SCORE, judged.name): judged for judged in self.judgements}

    def of_role(self, role: Role) -> Metric | None:
        """The first metric with a role; None without one."""
        return next((metric for metric in self.metrics if metric.role == role), None)

    def value(self, role: Role, numbers: Mapping[str, float]) -> float | None:
        """The value of the metric with a role; None without one, or if it was not measured."""
        metric = self.of_role(role)
        return None if metric is None else numbers.get(metric.name)

    def network(self, name: str) -> Network:
        """A network by name; an undeclared one has its name as title."""
        declared = {network.name: network for network in self.networks}
        return declared.get(name) or Network(name, name.replace("_", " ").capitalize())

    def panel(self, name: str) -> Panel:
        """A panel by name; an undeclared one has its name as title."""
        by_class = (judgement.by_class for judgement in self.judgements)
        declared = {panel.name: panel for panel in (*metrics.PANELS, *self.panels, *by_class)}
        return declared.get(name) or Panel(name)

    def table(self, stored: Iterable[str] = ()) -> dict[str, Metric]:
        """As `metrics.table`, with the means by class after the declared numbers."""
        names = tuple(stored)
        return metrics.table((*self.metrics, *self._by_class(names)), self.networks, names)

    def _by_class(self, stored: tuple[str, ...]) -> list[Metric]:
        """The means by class among `stored`, in the order of the judgements."""
        order = [judgement.name for judgement in self.judgements]
        means = [parts for name in stored if (parts := metrics.judged_class(name))]
        means.sort(key=lambda parts: order.index(parts[0]) if parts[0] in order else len(order))
        return [self._judgement(name).of_class(class_name) for name, class_name in means]

    def _judgement(self, name: str) -> Judgement:
        declared = {judgement.name: judgement for judgement in self.judgements}
        title = metrics.undeclared(name).title
        return declared.get(name) or Judgement(name, title, title)

    def loss_name(self, loss: Metric) -> str:
        """Short name: "G"; "G, first" if that network follows several losses; the title without
        a network.
        """
        if not loss.network:
            return loss.title
        same_network = [other for other in self.losses if other.network == loss.network]
        return self.network(loss.network).short if len(same_network) == 1 else loss.legend

    def loss_title(self, loss: Metric) -> str:
        """Title of a narrow column: "Loss G", or the whole title without a network."""
        return f"Loss {self.loss_name(loss)}" if loss.network else loss.title


def of(workload: str, loss: str = "") -> Declarations:
    """The declarations of a workload; empty for an unknown workload. `loss`: the option `loss` of a
    run, "" for the usual one.
    """
    entry = catalog.WORKLOADS.get(workload)
    if entry is None:
        return Declarations()
    networks = sorted(entry.networks, key=lambda network: network.name != entry.averages[0])
    own = {metric.name: metric for metric in entry.metrics}
    measured = {metric.name: metric for metric in evaluations.scores_of(workload)}
    # Scores last, in the order of the evaluations: the first measured quality is a run's headline.
    others = {name: metric for name, metric in own.items() if name not in measured}
    numbers = tuple({**others, **measured, **own}.values())
    if loss and loss not in entry.in_nats:
        numbers = tuple(
            replace(metric, axis=metric.axis.removesuffix(" (nats)"))
            if metric.role == "loss"
            else metric
            for metric in numbers
        )
    return Declarations(tuple(networks), numbers, entry.judgements, entry.panels)


def together(workloads: Iterable[str]) -> Declarations:
    """As `together_with_losses`, independent of the losses of runs."""
    return together_with_losses((workload, "") for workload in workloads)


def together_with_losses(workloads_and_losses: Iterable[tuple[str, str]]) -> Declarations:
    """The joint declarations of several runs, given (workload, option `loss`) of each.

    The first of equal names counts. A metric on different axes, such as a loss in nats and a hinge
    loss, has no unit.
    """
    declarations = [of(workload, loss) for workload, loss in dict.fromkeys(workloads_and_losses)]
    merged = Declarations()
    for part in ("networks", "metrics", "judgements", "panels"):
        rows: dict[str, Any] = {}
        for declaration in declarations:
            for row in getattr(declaration, part):
                first = rows.setdefault(row.name, row)
                if isinstance(row, Metric) and row.axis != first.axis:
                    rows[row.name] = replace(first, axis=first.title)
        merged = replace(merged, **{part: tuple(rows.values())})
    return merged
