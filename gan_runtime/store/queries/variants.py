"""Runs that differ in one option only, and what each value of it costs: medians over repeats,
work of a step, parity of curves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gan_runtime.spec import RunSpec
from gan_runtime.store.queries.run_rows import RunRow, runs
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

# Options that may differ within a set: repeats differ in their seed, and profiling and counting
# count in no time. `accelerator` is compared as it was resolved, not as it was asked for.
_FREE = ("name", "seed", "profile_steps", "count_kernels", "weight_snapshots", "accelerator")

Variants = Mapping[str, Sequence[str]]  # what a variant is called → its runs


@dataclass(frozen=True)
class ComparableSet:
    """Runs that differ only in `option` (and seed, name, profiling), on hosts with the same
    processor.

    `runs`: value of the option → its runs, newest first; at least two values, in the order of the
    option's choices.
    """

    option: str
    runs: dict[str, tuple[RunRow, ...]]

    @property
    def variants(self) -> dict[str, list[str]]:
        """The run ids by value, as the queries of this file take them."""
        return {value: [row.run_id for row in rows] for value, rows in self.runs.items()}

    def of_one_seed(self) -> dict[str, RunRow]:
        """A run of each value that has a run of the newest seed shared by as many values as
        possible, at least two; else none.
        """
        seeds: dict[int, dict[str, RunRow]] = {}
        for value, rows in self.runs.items():
            for row in rows:
                seeds.setdefault(_options(row)["seed"], {}).setdefault(value, row)
        shared = [found for found in seeds.values() if len(found) > 1]
        return max(
            shared,
            key=lambda found: (len(found), max(row.created_at for row in found.values())),
            default={},
        )


@dataclass(frozen=True)
class Parity:
    """How far two runs are apart in a metric, over the `steps` that both have; `at_step`:
    where they are furthest apart.
    """

    steps: int
    mean_difference: float
    max_difference: float
    at_step: int


def comparable_sets(store: Store, option: str) -> list[ComparableSet]:
    """The sets of stored runs with a measured steady step that differ in `option` only; the
    set with the newest run first.
    """
    measured = {
        row[0]
        for row in store.rows("SELECT DISTINCT run_id FROM phases WHERE phase = 'steady_step'")
    }
    groups: dict[str, dict[str, list[RunRow]]] = {}
    for row in runs(store):  # newest first, and so are the groups
        if row.run_id in measured:
            value = str(_options(row)[option])
            groups.setdefault(_alike(row, option), {}).setdefault(value, []).append(row)
    order = RunSpec.options()[option].choices
    sets = [
        {value: tuple(group[value]) for value in order if value in group}
        for group in groups.values()
    ]
    return [ComparableSet(option, values) for values in sets if len(values) > 1]


def variant_medians(store: Store, variants: Variants) -> pd.DataFrame:
    """What each variant costs: medians over its runs, each by its newest attempt that has a steady
    step.

    Columns: variant, runs (how many count), trace, first_call, compile, steady_step (float64, s),
    images_per_s (images of a step / steady step), process_peak_bytes, device_peak_bytes (float64;
    NaN where unknown). In the order of `variants`; variants without such a run are left out.
    """
    frame = store.frame(
        """
        WITH members AS (SELECT unnest($variants) AS variant, unnest($runs) AS run_id),
        newest AS (SELECT run_id, max(attempt) AS attempt FROM phases WHERE phase = 'steady_step'
            GROUP BY run_id),
        times AS (
            SELECT run_id, max(seconds) FILTER (phase = 'trace') AS trace, max(seconds) FILTER
                (phase = 'first_call') AS first_call,
                   max(seconds) FILTER (phase = 'compile') AS compile, max(seconds) FILTER (phase =
                       'steady_step') AS steady_step
            FROM phases JOIN newest USING (run_id, attempt) GROUP BY run_id
        ), peaks AS (
            SELECT run_id, max(process_peak_bytes) AS process_peak_bytes, max(device_peak_bytes) AS
                device_peak_bytes
            FROM memory JOIN newest USING (run_id, attempt) GROUP BY run_id
        )
        SELECT members.variant, count(*) AS runs, median(trace) AS trace, median(first_call) AS
            first_call, median(compile) AS compile,
               median(steady_step) AS steady_step,
               median(images_per_step / steady_step) AS images_per_s,
               median(process_peak_bytes) AS process_peak_bytes, median(device_peak_bytes) AS
                   device_peak_bytes
        FROM members JOIN runs USING (run_id) JOIN times USING (run_id) LEFT JOIN peaks USING
            (run_id) GROUP BY members.variant
        """,
        _members(variants),
    )
    return _in_order(frame.astype(dict.fromkeys(frame.columns[2:], "float64")), variants)


def variant_profiles(store: Store, variants: Variants) -> pd.DataFrame:
    """Where a step's time goes in each variant: means over its profiled runs, by kind of work, all
    networks together.

    Columns: variant, category, share (float64, 0 to 1; those of a variant add up to 1), runs (how
    many were profiled). In the order of `variants`; variants without a profiled run are left out.
    """
    frame = store.frame(
        """
        WITH members AS (SELECT unnest($variants) AS variant, unnest($runs) AS run_id),
        newest AS (SELECT run_id, max(attempt) AS attempt FROM profiles GROUP BY run_id),
        profiled AS (
            SELECT variant, run_id, category, sum(share) AS share
            FROM members JOIN profiles USING (run_id) JOIN newest USING (run_id, attempt) GROUP BY
                variant, run_id, category
        ), counted AS (SELECT variant, count(DISTINCT run_id) AS runs FROM profiled GROUP BY
            variant)
        SELECT variant, category, sum(share) / any_value(runs) AS share, any_value(runs) AS runs
        FROM profiled JOIN counted USING (variant) GROUP BY variant, category ORDER BY variant,
            category
        """,
        _members(variants),
    )
    return _in_order(frame, variants)


def variant_kernels(store: Store, variants: Variants) -> pd.DataFrame:
    """What a step of each variant is made of: medians over its runs that have counted it
    (docs/metrics.md).

    Columns: variant, operations, kernels_before, kernels_after, fusions (float64; NaN where XLA
    compiles nothing). In the order of `variants`; variants without such a run are left out.
    """
    frame = store.frame(
        """
        WITH members AS (SELECT unnest($variants) AS variant, unnest($runs) AS run_id)
        SELECT variant, median(operations) AS operations, median(kernels_before) AS kernels_before,
               median(kernels_after) AS kernels_after, median(fusions) AS fusions
        FROM members JOIN kernels USING (run_id) GROUP BY variant
        """,
        _members(variants),
    )
    return _in_order(frame.astype(dict.fromkeys(frame.columns[1:], "float64")), variants)


def parity(store: Store, run_id: str, other_id: str, metric: str) -> Parity | None:
    """How far a metric of two runs is apart, step by step; None when they share no step with
    finite values.
    """
    rows = store.rows(
        """
        WITH apart AS (
            SELECT step, abs(a.value - b.value) AS difference FROM scalars a JOIN scalars b USING
                (step, metric)
            WHERE a.run_id = $run AND b.run_id = $other AND metric = $metric AND isfinite(a.value)
                AND isfinite(b.value)
        )
        SELECT count(*), avg(difference), max(difference), arg_max(step, difference) FROM apart
        """,
        {"run": run_id, "other": other_id, "metric": metric},
    )
    return Parity(*rows[0]) if rows[0][0] else None


def _members(variants: Variants) -> dict[str, Any]:
    pairs = [(variant, run_id) for variant, run_ids in variants.items() for run_id in run_ids]
    return {"variants": [variant for variant, _ in pairs], "runs": [run_id for _, run_id in pairs]}


def _in_order(frame: pd.DataFrame, variants: Variants) -> pd.DataFrame:
    order = frame["variant"].map({variant: place for place, variant in enumerate(variants)})
    return frame.iloc[order.argsort(kind="stable")].reset_index(drop=True)


def _options(row: RunRow) -> dict[str, Any]:
    """All options of a run; those that came after it are at their default."""
    known = RunSpec.options(row.workload)
    return {**{name: option.default for name, option in known.items()}, **json.loads(row.spec)}


def _alike(row: RunRow, option: str) -> str:
    """The same text for runs that differ in `option` at most."""
    host = json.loads(row.host) if row.host else {}
    rest = {name: value for name, value in _options(row).items() if name not in (*_FREE, option)}
    return json.dumps(
        [rest, row.accelerator, host.get("cpu_model"), host.get("cores")], sort_keys=True
    )
