"""The files of the pages, for navigation and links."""

from __future__ import annotations

from pathlib import Path

_PAGES = Path(__file__).resolve().parents[2] / "pages"
HOME = _PAGES / "home.py"
LAUNCH = _PAGES / "launch.py"
DATA = _PAGES / "data.py"
LIVE = _PAGES / "live.py"
RUNS = _PAGES / "runs.py"
COMPARE = _PAGES / "compare.py"
SAMPLES = _PAGES / "samples.py"
HISTOGRAMS = _PAGES / "histograms.py"
STUDIES = _PAGES / "studies.py"
PAPER = _PAGES / "paper.py"
XLA = _PAGES / "xla.py"
PRECISION = _PAGES / "precision.py"
TPU = _PAGES / "tpu.py"
PHYSICS = _PAGES / "physics.py"
FLOW = _PAGES / "flow.py"
PAGES = (
    HOME,
    LAUNCH,
    DATA,
    LIVE,
    RUNS,
    COMPARE,
    SAMPLES,
    HISTOGRAMS,
    STUDIES,
    PAPER,
    XLA,
    PRECISION,
    TPU,
    PHYSICS,
    FLOW,
)
