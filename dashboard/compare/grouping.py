"""Which runs of a comparison share a curve, and the name of that curve."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from dashboard import option_words, palette, run_selection
from gan_runtime.base.options import GROUPS, Option
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries import RunRow

EACH_RUN, OVER_SEEDS = "each run", "over seeds"
SAME_OPTIONS = "same options"
ABSENT = "–"  # the value of an option that a run's workload does not have


@dataclass(frozen=True)
class Series:
    """One curve: one run, or the mean of several."""

    name: str
    run_ids: tuple[str, ...]
    color: str


def each_run(rows: list[RunRow]) -> list[Series]:
    """A series for every run, each in another color."""
    names, colors = run_selection.unique_names(rows), run_selection.colors(rows)
    return [Series(names[row.run_id], (row.run_id,), colors[row.run_id]) for row in rows]


def grouped(rows: list[RunRow], by: str) -> list[Series]:
    """A series for each group of runs that agree in the option `by`, or with OVER_SEEDS in every
    option except the seed.

    Groups, and so their colors, are ordered by the option's value, whatever the order of the runs.
    """
    specs = {row.run_id: full_spec(row) for row in rows}
    options = [
        option
        for option in differing(rows)
        if (option.name == by if by != OVER_SEEDS else option.name != "seed")
    ]
    members: dict[tuple[Any, ...], list[str]] = {}
    for run_id, spec in specs.items():
        members.setdefault(tuple(spec[option.name] for option in options), []).append(run_id)
    return [
        Series(
            _group_name(options, key, len(members[key])),
            tuple(members[key]),
            palette.group_color(index),
        )
        for index, key in enumerate(sorted(members, key=_order))
    ]


def choices(rows: list[RunRow]) -> dict[str, str]:
    """What runs can be grouped by: name → label.

    Each option that differs, and "All but the seed" where seeds differ.
    """
    options = differing(rows)
    over_seeds = (
        {OVER_SEEDS: "All but the seed"} if any(option.name == "seed" for option in options) else {}
    )
    by_option = {option.name: option.label for option in options if option.name != "seed"}
    return {EACH_RUN: "Each run alone", **over_seeds, **by_option}


def differing(rows: list[RunRow]) -> list[Option]:
    """The options in which the runs differ, in the order of the form, except the name."""
    specs = [full_spec(row) for row in rows]
    by_name = {
        name: option for row in rows for name, option in RunSpec.options(row.workload).items()
    }
    options = sorted(by_name.values(), key=lambda option: GROUPS.index(option.group))
    return [
        option
        for option in options
        if option.name != "name" and len({str(spec[option.name]) for spec in specs}) > 1
    ]


def full_spec(row: RunRow) -> defaultdict[str, Any]:
    """Every option of a stored run.

    An option newer than the run is at its default; an option of another workload is ABSENT.
    """
    return defaultdict(
        lambda: ABSENT, {**option_words.defaults(row.workload), **json.loads(row.spec)}
    )


def _group_name(options: list[Option], values: tuple[Any, ...], runs: int) -> str:
    phrases = [
        option_words.phrase(option, value) for option, value in zip(options, values, strict=True)
    ]
    return f"{' · '.join(phrases) or SAME_OPTIONS} ({runs} run{'s' if runs > 1 else ''})"


def _order(values: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    """Numbers by size, then texts alphabetically: the two cannot be compared."""
    return [(isinstance(value, str), value) for value in values]
