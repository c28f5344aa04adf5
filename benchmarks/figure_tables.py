"""The tables of figures with targets, and of the comparison with an external script."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks import conditions
from benchmarks.markdown import NOT_MEASURED, find, number, select, spread_of, table
from benchmarks.results import Record
from benchmarks.targets import TARGETS, Target

NEVER_RUN = "no result in benchmarks/results/"
HEADER = [
    "Figure",
    "Median",
    "Quartiles",
    "Turns",
    "Of totals",
    "Target",
    "Machine",
]


def figures(records: Sequence[Record]) -> str:
    """The table of targets, each with its figure or the reason why it is missing."""
    return table(HEADER, [_line(target, records) for target in TARGETS])


def _line(target: Target, records: Sequence[Record]) -> list[str]:
    limit = f"{'≥' if target.direction == 'at_least' else '≤'} {number(target.limit, target.unit)}"
    figure = find(records, target.row, "figure", target.name)
    if figure is None:
        return [
            target.title,
            f"{NOT_MEASURED}: {_reason(target, records)}",
            "",
            "",
            "",
            limit,
            "–",
        ]
    of_totals = number(figure["of_totals"], target.unit) if "of_totals" in figure else ""
    return [
        target.title,
        *spread_of(figure, target.unit),
        of_totals,
        limit if target.is_met_by(figure) else f"**{limit}, missed**",
        _machine(records, target.row),
    ]


def _reason(target: Target, records: Sequence[Record]) -> str:
    names = (target.name, target.row)  # a failed row has one record for all its figures
    missing = [
        record for record in select(records, target.row, "not_measured") if record["name"] in names
    ]
    return str(missing[0]["reason"]).removesuffix(".") if missing else NEVER_RUN


def _machine(records: Sequence[Record], row: str) -> str:
    """Empty for an idle machine; a dash for rows without a machine record."""
    machines = select(records, row, "machine")
    return conditions.in_words(machines[0]) if machines else "–"


def referee(records: Sequence[Record]) -> str:
    """Our speed relative to an external script, with the digest of the script."""
    facts = select(records, "referee", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    lines = [
        [figure["name"], *spread_of(figure), _machine(records, "referee")]
        for figure in select(records, "referee", "figure")
    ]
    header = ["Ours, times as fast", "Median", "Quartiles", "Turns", "Machine"]
    return f"The script's SHA-256 is `{facts[0]['sha256']}`.\n\n" + table(header, lines)
