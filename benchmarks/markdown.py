"""Markdown tables, and numbers in the format of docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.results import Record

NOT_MEASURED = "not measured"


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A Markdown table; "Not measured." without lines."""
    if not lines:
        return f"{NOT_MEASURED.capitalize()}.\n"
    head, *below = [f"| {' | '.join(row)} |\n" for row in (header, *lines)]
    return "".join([head, f"|{'---|' * len(header)}\n", *below])


def number(value: float, unit: str = "") -> str:
    """A ratio, a share ("%"), seconds ("s") or 10⁶ bytes ("MB"); the unit follows it."""
    if unit == "%":
        return f"{100 * value:.1f}%"
    digits = 0 if unit == "MB" or abs(value) >= 1_000 else 2
    return f"{value:,.{digits}f} {unit}".rstrip()


def spread_of(figure: Record, unit: str = "") -> list[str]:
    """Median, quartiles and turns of a figure or rate as text; one turn has no quartiles."""

    def text_of(*names: str) -> str:
        return " to ".join(number(figure[name], unit) for name in names if name in figure)

    return [
        f"**{text_of('value')}**",
        text_of("quartile_1", "quartile_3"),
        str(figure["count"]),
    ]


def select(records: Sequence[Record], row: str, kind: str) -> list[Record]:
    """The records of one row and kind."""
    return [record for record in records if (record["row"], record["kind"]) == (row, kind)]


def find(records: Sequence[Record], row: str, kind: str, name: str) -> Record | None:
    """The record with this name; None if it was not measured."""
    return next((record for record in select(records, row, kind) if record["name"] == name), None)
