"""The files of the pages, for navigation and links."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

_PAGES = Path(__file__).resolve().parents[2] / "pages"
HOME = _PAGES / "home.py"
LAUNCH = _PAGES / "launch.py"
DATA = _PAGES / "data.py"
RUN = _PAGES / "run.py"
RUNS = _PAGES / "runs.py"
COMPARE = _PAGES / "compare.py"
STUDIES = _PAGES / "studies.py"
TPU = _PAGES / "tpu.py"
PHYSICS = _PAGES / "physics.py"
FLOW = _PAGES / "flow.py"
PAGES = (
    HOME,
    LAUNCH,
    DATA,
    RUN,
    RUNS,
    COMPARE,
    STUDIES,
    TPU,
    PHYSICS,
    FLOW,
)


def of_runs(run_ids: Sequence[str], tab: str) -> tuple[Path, dict[str, str]]:
    """Where a tab that runs and comparisons both have shows these runs: the page, and the rest of its address."""
    if len(run_ids) == 1:
        return RUN, {"run": run_ids[0], "tab": tab}
    return COMPARE, {"runs": ",".join(run_ids), "tab": tab}
