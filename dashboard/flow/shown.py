"""What is looked at on the Flow page: iterations of runs, by the name they have in charts."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.flow import charts as flow_charts
from gan_runtime.store.queries import FlowRow, RunRow


@dataclass(frozen=True)
class Shown:
    """`rows`: series → iteration, the first one is the one whose film is shown; `runs`: run → its row."""

    rows: dict[str, FlowRow]
    runs: dict[str, RunRow]

    @property
    def first(self) -> FlowRow:
        """The iteration whose flow, copied frame and solver stand for all."""
        return next(iter(self.rows.values()))

    @property
    def colors(self) -> dict[str, str]:
        """Series → color, the flow before the predictions."""
        indices = [self.runs[row.run_id].color for row in self.rows.values()]
        return flow_charts.colors_of(list(self.rows), indices)

    @property
    def key(self) -> str:
        """The same for the same choice."""
        return "+".join(row.key for row in self.rows.values())
