"""Queries over several runs: groups of runs as one curve, and the figures of the paper."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gan_runtime import catalog
from gan_runtime.base.metrics import Metric, Role
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.queries.metrics import (
    DEVICES,
    XAxis,
    among,
    buckets,
    columns_of,
    declared_of,
    names_of,
)
from gan_runtime.store.queries.run_curves import EVERYTHING, Window
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


def group_curves(
    store: Store,
    groups: dict[str, list[str]],
    metric: str,
    x: XAxis = "step",
    max_points: int = 200,
    window: Window = EVERYTHING,
) -> pd.DataFrame:
    """One metric of groups of runs: the mean, lowest and highest value over the runs of a group, on
    a common grid.

    Each run is thinned as in `curves` and interpolated linearly. The grid has `max_points` points
    from the first to the last x of all runs within the window; a run counts from its first to its
    last x. `groups`: name → ids of its runs. Columns: run (the group's name), x, low, mean, high
    (float64), runs (int64, how many are in the mean there), by name and x. Nothing logged yet gives
    an empty frame with these columns.
    """
    members = [(name, run_id) for name, run_ids in groups.items() for run_id in run_ids]
    return store.frame(
        f"""{buckets(x, [run_id for _, run_id in members])}, members AS (
            SELECT unnest($names) AS name, unnest($runs) AS run_id
        ), pieces AS (
            SELECT run_id, x, x_to, mean, lead(x) OVER along AS next_x, lead(mean) OVER along AS
                next_mean,
                   CASE WHEN lag(x) OVER along IS NULL THEN x_from ELSE x END AS "from"
            FROM buckets WINDOW along AS (PARTITION BY run_id ORDER BY x, step)
        ), ends AS (SELECT min(x_from) AS first, max(x_to) AS last FROM buckets), grid AS (
            SELECT DISTINCT CASE i WHEN $points - 1 THEN last ELSE first + (last - first) * i /
                ($points - 1) END AS x
            FROM ends, range($points) AS places(i)
        ), runs_on_grid AS (
            SELECT p.run_id, g.x, mean + coalesce(greatest(0, g.x - p.x) / nullif(next_x - p.x, 0)
                * (next_mean - mean), 0) AS value
            FROM (SELECT * FROM grid, (SELECT DISTINCT run_id FROM buckets)) g
            ASOF JOIN pieces p ON g.run_id = p.run_id AND g.x >= p."from"
            WHERE g.x <= coalesce(p.next_x, p.x_to)
        )
        SELECT name AS run, x, min(value) AS low, avg(value) AS mean, max(value) AS high, count(*)
            AS runs
        FROM runs_on_grid JOIN members USING (run_id) GROUP BY name, x ORDER BY name, x
        """,
        {
            "runs": [run_id for _, run_id in members],
            "names": [name for name, _ in members],
            "metrics": [metric],
            "points": max_points,
            "first": window[0],
            "last": window[1],
        },
    )


_JUDGED = ("score_gap", "accuracy", "spread_ratio")  # derived from the scores of an epoch


def results(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """The results of runs, one row each, in the order of `run_ids`.

    Columns: run_id; seconds (of training), device_seconds, images (seen); images_per_s (median of
    the epochs); one of each loss that their workloads declare (its name; last step); score_gap_last
    (|mean D(x) − mean D(G(z))|), accuracy_last (mean of D's two accuracies) and spread_ratio_last
    (generated over real) after the last epoch that has it, by the roles that the workloads give
    their numbers; of each number of which they declare a better way _best, _best_epoch and _last,
    over the means of the epochs that have it. What a run has not measured, or has no number for, is
    NaN; of several best epochs the first counts.
    """
    declared = declared_of(store, run_ids)
    return store.frame(
        f"""
        WITH wanted AS (SELECT unnest($runs) AS run_id, unnest(range(len($runs))) AS place), specs
            AS (
            SELECT run_id, images_per_step, {DEVICES} AS devices FROM ingest.created
        ), ends AS (
            SELECT run_id, max(wall_s) AS seconds, max(step) AS
                step{columns_of(declared.losses, "max(value)")}
            FROM ingest.last_scalars WHERE {among(run_ids)} GROUP BY run_id
        ), rates AS (
            SELECT run_id, median(images_per_s) AS images_per_s FROM epochs
            WHERE {among(run_ids)} GROUP BY run_id
        ), scores AS (
            SELECT run_id, epoch, {_of_role("judged_real")} - {_of_role("judged_generated")} AS
                signed_gap,
                   abs(signed_gap) AS score_gap,
                   ({_of_role("accuracy_on_real")} + {_of_role("accuracy_on_generated")}) / 2 AS
                       accuracy,
                   nullif(greatest({_of_role("spread_of_generated")}, 0), 0) /
                       nullif({_of_role("spread_of_real")}, 0) AS spread_ratio
            FROM scalars JOIN ingest.roles USING (run_id, metric) WHERE {among(run_ids)}
            GROUP BY run_id, epoch
        ), judged AS (SELECT run_id, {_judged()} FROM scores GROUP BY run_id
        ), means AS (
            SELECT run_id, metric, epoch, avg(value) AS value FROM numbers
            WHERE {among(run_ids)} AND list_contains($rated, metric) AND isfinite(value)
            GROUP BY ALL
        ), rated AS (SELECT run_id{_best_and_last(declared.rated)} FROM means GROUP BY run_id)
        SELECT run_id, seconds, seconds * devices AS device_seconds, step * images_per_step AS
            images,
               rates.* EXCLUDE (run_id){names_of(declared.losses, "ends")},
                   judged.* EXCLUDE (run_id), rated.* EXCLUDE (run_id)
        FROM wanted LEFT JOIN specs USING (run_id) LEFT JOIN ends USING (run_id) LEFT JOIN rates
            USING (run_id)
        LEFT JOIN judged USING (run_id) LEFT JOIN rated USING (run_id) ORDER BY place
        """,
        {"runs": run_ids, "rated": [metric.name for metric in declared.rated]},
    ).pipe(_numbers)


def _numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """All columns but the run's id as float64: NULL becomes NaN. Copied, since pandas warns of a
    column added to a frame whose columns are stored one by one.
    """
    return frame.astype(dict.fromkeys(frame.columns.drop("run_id"), "float64")).copy()


def _judged() -> str:
    """Columns _last of the derived scores, which have no best epoch."""
    return ", ".join(
        f"arg_max({name}, epoch) FILTER (isfinite({name})) AS {name}_last" for name in _JUDGED
    )


def _best_and_last(rated: Iterable[Metric]) -> str:
    """The columns _best, _best_epoch and _last of each metric, over the means of its epochs."""
    return "".join(
        columns_of([metric], f"arg_min(value, ({far}, epoch))", "_best")
        + columns_of([metric], f"arg_min(epoch, ({far}, epoch))", "_best_epoch")
        + columns_of([metric], "arg_max(value, epoch)", "_last")
        for metric in rated
        for far in [f"{metric.sign} * value"]
    )


def _of_role(role: Role) -> str:
    return f"max(value) FILTER (role = '{role}')"


# Options that do not affect the comparison of speed.
NOT_OF_SPEED = (
    "name",
    "seed",
    "epochs",
    "replicas",
    "workers",
    *sorted({rate for entry in catalog.WORKLOADS.values() for rate in entry.rates}),
    "learning_rate_schedule",
    "restart_epochs",
    "adam_beta_1",
    "adam_beta_2",
    "rmsprop_epsilon",
    "weight_snapshots",
    "count_kernels",
    "profile_steps",  # the clock stops while steps are profiled
    "alarm_action",
    "still_action",
    "resume_lost",
    "collapse_share",
    "d_wins_score",
    "keep_checkpoints",
    "pictures_every",
    "quality_every",
)
IMPORTED = "host IS NOT NULL AND host->>'hostname' IS NULL"  # a bundle leaves out the host's name


@dataclass(frozen=True)
class Conditions:
    """The conditions under which runs were measured.

    `images`: of the training set, None before a trainer has loaded it. `devices`: replicas ×
    workers. `imported`: from a bundle, so the host is unknown. `target`: where the runs trained.
    """

    dataset: str
    images: int | None
    accelerator: str
    engine: str
    devices: int
    epochs: int
    cpu_model: str
    cores: int | None
    imported: bool
    target: str


def conditions(store: Store, run_ids: list[str]) -> list[Conditions]:
    """The distinct conditions of these runs, by number of devices."""
    rows = store.rows(
        f"""
        SELECT DISTINCT dataset, images, accelerator, engine, replicas * workers AS devices,
            r.epochs,
               coalesce(host->>'cpu_model', ''), TRY_CAST(host->>'cores' AS INTEGER),
               {IMPORTED}, coalesce(spec->>'target', '{HERE}')
        FROM runs r LEFT JOIN (SELECT run_id, max(images) AS images FROM ingest.plans GROUP BY
            run_id) USING (run_id)
        WHERE list_contains(?, run_id) ORDER BY ALL
        """,
        [run_ids],
    )
    return sorted((Conditions(*row) for row in rows), key=lambda condition: condition.devices)


def loss_quartiles(store: Store, run_ids: list[str], metric: str) -> pd.DataFrame:
    """A per-step metric in each epoch: its mean, and the interquartile range.

    Source: the paper's Figs. 7 and 8.

    Columns: run_id, epoch, mean, width. Values that are not finite do not count.
    """
    return store.frame(
        f"""
        SELECT run_id, epoch, avg(value) AS mean, quantile_cont(value, 0.75) - quantile_cont(value,
            0.25) AS width FROM scalars
        WHERE {among(run_ids)} AND metric = ? AND isfinite(value) GROUP BY run_id, epoch
            ORDER BY run_id, epoch
        """,
        [metric],
    )


def rates_by_device(store: Store, workload: str) -> pd.DataFrame:
    """The steady speed of the finished runs of a workload, by device and settings.

    Columns: accelerator, devices (replicas × workers), precision, batch_size_global, dataset,
    images (of its training set), engine, xla, cpu_model, imported (see `Conditions`), settings
    (JSON of all options but `NOT_OF_SPEED`: runs that agree in it can be joined to a line over
    devices), runs, images_per_s (median over the runs).
    """
    return store.frame(
        f"""
        WITH later AS (
            SELECT run_id, images_per_s FROM epochs QUALIFY epoch > min(epoch) OVER (PARTITION BY
                run_id, attempt)
        ), speed AS (SELECT run_id, median(images_per_s) AS images_per_s FROM later GROUP BY run_id
        ), sets AS (SELECT run_id, max(images) AS images FROM ingest.plans GROUP BY run_id)
        SELECT accelerator, replicas * workers AS devices, precision, batch_size_global, dataset,
            images, engine, xla,
               coalesce(host->>'cpu_model', '') AS cpu_model, {IMPORTED} AS imported,
               CAST(json_merge_patch(spec, $excluded) AS VARCHAR) AS settings, count(*) AS runs,
               median(images_per_s) AS images_per_s
        FROM runs JOIN speed USING (run_id) LEFT JOIN sets USING (run_id) WHERE workload =
            $workload AND status = 'finished'
        GROUP BY ALL ORDER BY accelerator, devices, precision, batch_size_global, dataset,
            settings, cpu_model, imported
        """,
        {
            "workload": workload,
            "excluded": "{" + ", ".join(f'"{name}": null' for name in NOT_OF_SPEED) + "}",
        },
    )
