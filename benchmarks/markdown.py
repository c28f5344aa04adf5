"""Tables in Markdown, and numbers in the format of the page of benchmarks."""

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
    """Median, quartiles and turns of a figure or rate, each as text; empty where
    there was one turn only.
    """

    def words(*names: str) -> str:
        return " to ".join(number(figure[name], unit) for name in names if name in figure)

    return [
        f"**{words('value')}**",
        words("quartile_1", "quartile_3"),
        str(figure["count"]),
    ]


def of(records: Sequence[Record], row: str, kind: str) -> list[Record]:
    """The records of one row and kind."""
    return [record for record in records if (record["row"], record["kind"]) == (row, kind)]


def only(records: Sequence[Record], row: str, kind: str, name: str) -> Record | None:
    """The record of that name; None where it was not measured."""
    return next((record for record in of(records, row, kind) if record["name"] == name), None)
