"""Studies and other sets of runs that differ in one option: progress, medians, parity."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gan_runtime.records.states import ENDED
from gan_runtime.spec import RunSpec
from gan_runtime.store.queries.metrics import among, columns_of, declared_of, names_of
from gan_runtime.store.queries.run_rows import RunRow, runs
from gan_runtime.store.queries.speed import progress
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StudyRow:
    """A study. `question`: a key of studies/design.py; `runs`: number of runs, with the numbers
    that are finished, waiting and training.
    """

    study_id: str
    title: str
    question: str
    created_at: datetime
    runs: int
    finished: int
    waiting: int
    training: int

    @property
    def is_live(self) -> bool:
        """Whether any of its runs waits or trains."""
        return self.waiting + self.training > 0

    @property
    def status(self) -> str:
        """queued, running, finished, or stopped when runs have ended before their time."""
        if self.training or (self.waiting and self.finished):
            return "running"
        return "queued" if self.waiting else "finished" if self.finished == self.runs else "stopped"


@dataclass(frozen=True)
class StudyProgress:
    """`share` of all steps that are done, 0 to 1.

    `seconds_left`: an estimate; None before anything can be said.
    """

    share: float
    seconds_left: float | None


_STUDY_COLUMNS = ", ".join(StudyRow.__dataclass_fields__)


def studies(store: Store) -> list[StudyRow]:
    """All studies with runs, newest first."""
    return [
        StudyRow(*row)
        for row in store.rows(f"SELECT {_STUDY_COLUMNS} FROM studies ORDER BY created_at DESC")
    ]


def study_runs(store: Store, study_id: str) -> list[RunRow]:
    """The runs of a study in their planned order: all variants of the first repeat, then those of
    the second in reverse.
    """
    return sorted(
        (row for row in runs(store) if row.study_id == study_id), key=lambda row: row.created_at
    )


def study_progress(store: Store, study_id: str) -> StudyProgress:
    """The progress of a study. A training run has its own estimate of the remaining time. A waiting
    run is expected to take as long as the finished runs of its variant, or else as long per image
    as all finished runs.
    """
    rows = study_runs(store, study_id)
    seconds_by_run = {row.run_id: _seconds(row) for row in rows if row.status == "finished"}
    rates = [seconds / row.epochs for row in rows if (seconds := seconds_by_run.get(row.run_id))]
    done, remaining_s, has_estimate = 0.0, 0.0, True
    for row in rows:
        if row.status in ENDED:
            done += 1.0
            continue
        now = progress(store, row.run_id)
        done += now.step / now.last_step if now.last_step else 0.0
        same_variant_s = [
            seconds_by_run[other.run_id]
            for other in rows
            if other.variant == row.variant and other.run_id in seconds_by_run
        ]
        guess = (
            same_variant_s[-1]
            if same_variant_s
            else sum(rates) / len(rates) * row.epochs
            if rates
            else None
        )
        run_s = now.seconds_left if now.seconds_left is not None else guess
        has_estimate, remaining_s = has_estimate and run_s is not None, remaining_s + (run_s or 0.0)
    return StudyProgress(done / len(rows) if rows else 0.0, remaining_s if has_estimate else None)


def _seconds(row: RunRow) -> float:
    """The seconds from the start of a finished run's first trainer to the end of the run."""
    return (
        (row.finished_at - row.started_at).total_seconds()
        if row.finished_at and row.started_at
        else 0.0
    )


def study_results(store: Store, study_id: str) -> pd.DataFrame:
    """One row per run of a study, in the order of variants and repeats.

    Columns: run_id, workload, loss_option ("" without it), variant, variant_index, repeat, status,
    color, epochs (as planned), seconds (of training), epoch_seconds (median of the epochs after the
    first of each attempt, which holds the compiling), speed_up (epoch_seconds of the first variant
    in the same repeat, over its own), images_per_s (as epoch_seconds), steady_step, trace, compile,
    first_call (seconds, newest attempt), memory_bytes (highest), one of each loss, and of each
    number with a better way, that the runs' workloads declare (its name; mean over the last epoch
    that has it), spread_ratio (spread of generated images over that of real ones after the last
    epoch, docs/metrics.md). What was not measured is NULL, and what is infinite NaN.
    """
    members = store.rows(
        "SELECT run_id FROM ingest.created WHERE study->>'study_id' = ?", [study_id]
    )
    run_ids = [run_id for (run_id,) in members]
    declared = declared_of(store, run_ids)
    of_study = among(run_ids)
    results = store.frame(
        f"""
        WITH chosen AS (
            SELECT run_id, study->>'variant' AS variant,
                   TRY_CAST(study->>'variant_index' AS INTEGER) AS variant_index,
                   TRY_CAST(study->>'repeat' AS INTEGER) AS repeat
            FROM ingest.created WHERE study->>'study_id' = $study
        ), later AS (
            SELECT * FROM epochs WHERE {of_study}
            QUALIFY epoch > min(epoch) OVER (PARTITION BY run_id, attempt)
        ), speed AS (
            SELECT run_id, median(seconds) AS epoch_seconds, median(images_per_s) AS images_per_s
                FROM later GROUP BY run_id
        ), last AS (
            SELECT run_id, max(epoch) AS epoch, max(wall_s) AS seconds FROM ingest.last_scalars
                WHERE {of_study} GROUP BY run_id
        ), newest AS (
            SELECT run_id, metric, max(epoch) AS epoch FROM numbers WHERE {of_study}
                GROUP BY ALL
        ), ends AS (
            SELECT run_id{columns_of(declared.compared, "avg(value)")}
            FROM numbers JOIN newest USING (run_id, metric, epoch) WHERE {of_study} GROUP BY run_id
        ), spreads AS (
            SELECT run_id, avg(value) FILTER (role = 'spread_of_generated')
                           / nullif(avg(value) FILTER (role = 'spread_of_real'), 0) AS spread_ratio
            FROM scalars JOIN last USING (run_id, epoch) JOIN ingest.roles USING (run_id, metric)
                WHERE {of_study} GROUP BY run_id
        ), times AS (
            SELECT run_id, arg_max(seconds, attempt) FILTER (phase = 'steady_step') AS steady_step,
                   arg_max(seconds, attempt) FILTER (phase = 'trace') AS trace,
                   arg_max(seconds, attempt) FILTER (phase = 'compile') AS compile,
                   arg_max(seconds, attempt) FILTER (phase = 'first_call') AS first_call
            FROM phases WHERE {of_study} GROUP BY run_id
        ), peaks AS (SELECT run_id, max(process_peak_bytes) AS memory_bytes FROM memory
            WHERE {of_study} GROUP BY run_id)
        SELECT run_id, r.workload, coalesce(r.spec->>'loss', '') AS loss_option, chosen.variant,
            variant_index, chosen.repeat, r.status, r.color, r.epochs, last.seconds, epoch_seconds,
               max(epoch_seconds) FILTER (variant_index = 0) OVER (PARTITION BY chosen.repeat) /
                   epoch_seconds AS speed_up, images_per_s,
               steady_step, trace, compile, first_call,
                   memory_bytes{names_of(declared.compared, "ends")}, spread_ratio
        FROM chosen JOIN runs r USING (run_id) LEFT JOIN speed USING (run_id) LEFT JOIN last USING
            (run_id) LEFT JOIN ends USING (run_id) LEFT JOIN spreads USING (run_id)
             LEFT JOIN times USING (run_id) LEFT JOIN peaks USING (run_id)
        ORDER BY variant_index, chosen.repeat
        """,
        {"study": study_id},
    )
    return results.replace([math.inf, -math.inf], math.nan)


# Options that may differ within a set: repeats differ in their seed, and profiling and counting
# count in no time. `accelerator` is compared as resolved.
_FREE = (
    "name",
    "seed",
    "profile_steps",
    "count_kernels",
    "weight_snapshots",
    "accelerator",
    "quality_every",
)

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
        shared = [by_value for by_value in seeds.values() if len(by_value) > 1]
        return max(
            shared,
            key=lambda by_value: (len(by_value), max(row.created_at for row in by_value.values())),
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
            groups.setdefault(_settings_without(row, option), {}).setdefault(value, []).append(row)
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
    NaN where unknown). In the order of `variants`, without those that have no steady step.
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
    compiles nothing). In the order of `variants`, without those that have no counts.
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
    options = RunSpec.options(row.workload)
    return {**{name: option.default for name, option in options.items()}, **json.loads(row.spec)}


def _settings_without(row: RunRow, option: str) -> str:
    """The same text for runs that differ in `option` at most."""
    host = json.loads(row.host) if row.host else {}
    rest = {name: value for name, value in _options(row).items() if name not in (*_FREE, option)}
    return json.dumps(
        [rest, row.accelerator, host.get("cpu_model"), host.get("cores")], sort_keys=True
    )
