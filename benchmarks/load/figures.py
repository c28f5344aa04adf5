"""The targets of all figures, and the stored record of a figure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class FigureTarget:
    """`limit`: the maximum or minimum, by `direction`; None without a target. Shares, 0 to 1, have
    the unit "%".
    """

    name: str
    title: str
    limit: float | None = None
    direction: Literal["at_most", "at_least"] = "at_most"
    unit: str = "s"

    def is_met_by(self, value: float) -> bool | None:
        """Whether a value meets the target; None without a limit."""
        if self.limit is None:
            return None
        return value <= self.limit if self.direction == "at_most" else value >= self.limit


PAGES = (
    *("home", "launch", "data", "runs", "studies"),
    *("run", "run/samples", "run/histograms", "run/evaluation", "compare", "compare/curves"),
)  # visits of benchmarks/pages.py
MAX_RATIO = 1.6  # to a one-line page: the machine and Streamlit take most of a first view
TARGETS = (
    *(
        FigureTarget(
            f"first_view_{page}",
            f"first screen of {page.capitalize()}",
            MAX_RATIO,
            unit="×",
        )
        for page in PAGES
    ),
    FigureTarget("first_view_bare_s", "first screen of a one-line Streamlit page"),
    *(
        FigureTarget(f"payload_{page}_mb", f"payload of {page.capitalize()}", 1.5, unit="MB")
        for page in PAGES
    ),
    FigureTarget("query_p95_ms", "queries of these pages, p95", 60.0, unit="ms"),
    FigureTarget(
        "long_curve_ms",
        "losses of a run of ten million numbers, processor time of a refresh",
        25.0,
        unit="ms",
    ),
    FigureTarget(
        "ingest_rows_per_s", "rows ingested per second, ended runs", 200_000.0, "at_least", ""
    ),
    FigureTarget(
        "ingest_steps_per_s", "steps ingested per second, live run", 2_000.0, "at_least", ""
    ),
    FigureTarget(
        "bytes_per_million_rows", "database size per million rows of numbers", None, unit="MB"
    ),
    FigureTarget("start_s", "from process start until Home is drawn, median", 3.0),
    FigureTarget(
        "one_page_slows", "one open run page slows a training on all cores", 0.03, unit="%"
    ),
    FigureTarget("thirty_pages_slow", "thirty open run pages slow it", 0.15, unit="%"),
    FigureTarget(
        "memory_visited_mb",
        "memory of the dashboard right after visiting every page",
        300.0,
        unit="MB",
    ),
    FigureTarget(
        "memory_mb", "memory of the dashboard at rest, after visiting every page", 300.0, unit="MB"
    ),
    FigureTarget(
        "memory_growth_mb",
        "growth of memory over the second half of an hour of live data",
        20.0,
        unit="MB",
    ),
    FigureTarget("pixel_p95_s", "from a step to a changed pixel, one page, p95", 2.0),
    FigureTarget("pixel_p95_s_thirty", "the same with thirty more open pages", 2.0),
)
BY_NAME = {target.name: target for target in TARGETS}


@dataclass(frozen=True)
class Figure:
    """One figure. `facts`: further stored values.

    `reason`: why a target is missed, or why nothing was measured.
    """

    name: str
    value: float | None
    facts: dict[str, Any]
    reason: str = ""

    def record(self) -> dict[str, Any]:
        """The stored record, with the target and whether the value meets it."""
        target = BY_NAME[self.name]
        met = None if self.value is None else target.is_met_by(self.value)
        target_facts = {key: asdict(target)[key] for key in ("title", "limit", "direction", "unit")}
        value = None if self.value is None else round(self.value, 4)
        return {
            "kind": "figure",
            "name": self.name,
            "value": value,
            **target_facts,
            "met": met,
            "reason": self.reason,
            **self.facts,
        }


def p95(values: list[float]) -> float:
    """The 95th percentile by nearest rank: of 20 values, the second largest."""
    return sorted(values)[-(-95 * len(values) // 100) - 1]
