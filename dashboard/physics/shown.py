"""What is looked at on the Physics page: runs, epoch, energy, angle."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from dashboard.physics.words import Bounds
from gan_runtime.store.queries import RunRow


@dataclass(frozen=True)
class Shown:
    """The measured runs that are picked, by name, and the epoch that the slider stands at: of each run the measurement that is
    nearest before it. `scores`: all that was measured of them, as `queries.physics_scores` gives it. `energies`, `angles`: the bins of the
    first of them; `energy`, `angle`: numbers of bins, None for all. `is_log`: whether profiles are drawn on such a scale."""

    rows: dict[str, RunRow]
    epochs: dict[str, int]
    scores: pd.DataFrame
    energies: list[Bounds]
    angles: list[Bounds]
    energy: int | None = None
    angle: int | None = None
    is_log: bool = False

    @property
    def first(self) -> tuple[RunRow, int]:
        """The run whose bins and real showers stand for all."""
        name = next(iter(self.rows))
        return self.rows[name], self.epochs[name]

    @property
    def whole(self) -> Shown:
        """The same of all energies and angles."""
        return replace(self, energy=None, angle=None)
