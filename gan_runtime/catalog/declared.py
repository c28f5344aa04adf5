"""What a workload says of its numbers, asked by the name that is stored with a run.

A workload that this version does not know, such as one of an imported run, declares nothing: its
numbers are shown under their own names, and nothing is asked of their roles.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import metrics
from gan_runtime.base.metrics import Metric, Network, Panel, Role
from gan_runtime.catalog.entries import Judgement


@dataclass(frozen=True)
class Declared:
    """`networks`: the one that pictures come from first, then in the order of the workload's
    entry.
    """

    networks: tuple[Network, ...] = ()
    metrics: tuple[Metric, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    panels: tuple[Panel, ...] = ()

    @property
    def losses(self) -> tuple[Metric, ...]:
        """What each network follows."""
        return tuple(metric for metric in self.metrics if metric.role == "loss")

    @property
    def rated(self) -> tuple[Metric, ...]:
        """Numbers of which one way is better."""
        return tuple(metric for metric in self.metrics if metric.better)

    @property
    def qualities(self) -> tuple[Metric, ...]:
        """Numbers by which an epoch can be the best: lower is better."""
        return tuple(
            metric for metric in self.metrics if metric.role in ("quality", "measured_quality")
        )

    @property
    def compared(self) -> tuple[Metric, ...]:
        """What the report of a study tells of each variant."""
        return (*self.losses, *(metric for metric in self.rated if metric not in self.losses))

    @property
    def histograms(self) -> dict[str, Judgement]:
        """The judgements by the names of their histograms."""
        return {metrics.histogram(metrics.SCORE, judged.name): judged for judged in self.judgements}

    def of_role(self, role: Role) -> Metric | None:
        """The number that has a role, the first where several have it; None where none has."""
        return next((metric for metric in self.metrics if metric.role == role), None)

    def value(self, role: Role, numbers: Mapping[str, float]) -> float | None:
        """The value of the number that has a role; None where none has, or it was not measured."""
        metric = self.of_role(role)
        return None if metric is None else numbers.get(metric.name)

    def network(self, name: str) -> Network:
        """A network by its name; one that is not declared is called by its name."""
        known = {network.name: network for network in self.networks}
        return known.get(name) or Network(name, name.replace("_", " ").capitalize())

    def panel(self, name: str) -> Panel:
        """A panel by its name."""
        by_class = (judged.by_class for judged in self.judgements)
        known = {panel.name: panel for panel in (*metrics.PANELS, *self.panels, *by_class)}
        return known.get(name) or Panel(name)

    def table(self, stored: Iterable[str] = ()) -> dict[str, Metric]:
        """As `metrics.table`, with what is judged class by class behind what the workload
        declares.
        """
        names = tuple(stored)
        return metrics.table((*self.metrics, *self._by_class(names)), self.networks, names)

    def _by_class(self, stored: tuple[str, ...]) -> list[Metric]:
        """Those of `stored` that are means over the rows of a class, in the order of the
        judgements.
        """
        order = [judgement.name for judgement in self.judgements]
        told = [parts for name in stored if (parts := metrics.judged_class(name))]
        told.sort(key=lambda parts: order.index(parts[0]) if parts[0] in order else len(order))
        return [self._judgement(judged).of_class(class_name) for judged, class_name in told]

    def _judgement(self, name: str) -> Judgement:
        """One that is not declared is called by its name."""
        known = {judgement.name: judgement for judgement in self.judgements}
        title = metrics.undeclared(name).title
        return known.get(name) or Judgement(name, title, title)

    def loss_name(self, loss: Metric) -> str:
        """Beside the other losses: "G"; "G, first" where that network follows several; the
        title where it is of no network.
        """
        if not loss.network:
            return loss.title
        of_it = [other for other in self.losses if other.network == loss.network]
        return self.network(loss.network).short if len(of_it) == 1 else loss.legend

    def loss_title(self, loss: Metric) -> str:
        """Of a narrow column: "Loss G", or the whole title where it is of no network."""
        return f"Loss {self.loss_name(loss)}" if loss.network else loss.title


def of(workload: str) -> Declared:
    """What one workload declares; nothing for one that is not known."""
    entry = catalog.WORKLOADS.get(workload)
    if entry is None:
        return Declared()
    networks = sorted(entry.networks, key=lambda network: network.name != entry.averages[0])
    return Declared(tuple(networks), entry.metrics, entry.judgements, entry.panels)


def together(workloads: Iterable[str]) -> Declared:
    """What several workloads declare, for runs that are shown beside each other; of equal names the
    first counts. A number that they measure on different axes, such as a loss in nats and one that
    is a distance, has no unit there.
    """
    all_of_them = [of(workload) for workload in dict.fromkeys(workloads)]
    merged = Declared()
    for part in ("networks", "metrics", "judgements", "panels"):
        rows: dict[str, Any] = {}
        for known in all_of_them:
            for row in getattr(known, part):
                first = rows.setdefault(row.name, row)
                if isinstance(row, Metric) and row.axis != first.axis:
                    rows[row.name] = replace(first, axis=first.title)
        merged = replace(merged, **{part: tuple(rows.values())})
    return merged
