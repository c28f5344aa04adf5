"""The table of `make load`, from benchmarks/results/load.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks import conditions
from benchmarks.load.figures import BY_NAME
from benchmarks.markdown import NOT_MEASURED, table
from benchmarks.results import FOLDER, Record

SIGNS = {"at_least": "≥", "at_most": "≤"}
STORED = FOLDER / "load.jsonl"
INTRODUCTION = """`make load` measures the dashboard with 1,000 stored runs, 10 million numbers and 20,000 images. Thirty windows show one more run during its training. "First screen" is the median time
from a new window until everything in 1280 × 720 is drawn; × is its ratio to a one-line Streamlit page. "Whole page" is the median until all is drawn. Payload: of the heaviest page.

"""  # noqa: E501


def under_load(path: Path = STORED) -> str:
    """Commit and load of each question, then each figure with its target."""
    if not path.exists():
        return f"{NOT_MEASURED.capitalize()}.\n"
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    machines = {record["question"]: record for record in records if record["kind"] == "machine"}
    figures = [record for record in records if record["kind"] == "figure"]
    lines = [_line(record) for record in _without_light_pages(figures)]
    questions = ", ".join(
        f"{name} ({', '.join(filter(None, (machine['commit'], conditions.in_words(machine))))})"
        for name, machine in machines.items()
    )
    return (
        f"{INTRODUCTION}Groups of rows, with commit and load if not idle: {questions}.\n\n"
        + table(["Figure", "Value", "Target"], lines)
    )


def _without_light_pages(figures: list[Record]) -> list[Record]:
    """All figures, but of the payloads only the largest."""
    payloads = [figure for figure in figures if figure["name"].startswith("payload_")]
    heaviest = max(payloads, key=lambda figure: figure["value"] or 0.0, default=None)
    return [figure for figure in figures if figure is heaviest or figure not in payloads]


def _line(record: Record) -> list[str]:
    limit, unit = record["limit"], record["unit"]
    target = "stated" if limit is None else f"{SIGNS[record['direction']]} {_number(limit, unit)}"
    if record["met"] is False:
        target = f"**{target}, missed**"
    reason = f": {record['reason']}" if record["reason"] else ""
    value = (
        NOT_MEASURED
        if record["value"] is None
        else f"**{_number(record['value'], record['unit'])}**"
    )
    if "whole_page_median_s" in record:
        value += f", whole page {record['whole_page_median_s']:.2f} s"
    return [
        BY_NAME[record["name"]].title if record["name"] in BY_NAME else record["title"],
        value + (reason if record["value"] is None else ""),
        target + (reason if record["value"] is not None else ""),
    ]


def _number(value: float, unit: str) -> str:
    if unit == "%":
        return f"{100 * value:.1f}%"
    return f"{value:,.{0 if abs(value) >= 100 else 2}f} {unit}".rstrip()
