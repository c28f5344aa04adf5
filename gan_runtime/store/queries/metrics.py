"""Metrics of steps and epochs, and their declarations.

Curves are thinned in SQL to a bucket envelope, so a chart stays small for long runs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.store.queries import run_curves
from gan_runtime.store.queries.run_curves import EVERYTHING, Window
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


XAxis = Literal["step", "epoch", "images", "wall_s", "device_s"]
MOST_POINTS, MOST_EACH = 1_500, 400  # in a chart, over all its curves; in one curve


def curves(
    store: Store,
    run_ids: list[str],
    metrics: tuple[str, ...],
    x: XAxis = "step",
    max_points: int = 400,
    window: Window = EVERYTHING,
) -> pd.DataFrame:
    """Metrics of runs along `x` within the window, thinned to at most `max_points` buckets per run
    and metric.

    `x`: step; epoch; images seen; training seconds; device seconds, which are training seconds
    times replicas × workers.
    Columns: run_id, metric, x (float64), step, epoch (int64), low, mean, high (float64; the
    bucket's envelope, and one standard deviation beyond it where that is known; NaN and infinite
    values are left out). Nothing logged yet gives an empty frame with these columns.
    """
    prefixes = _metric_prefixes(store)
    if (
        x == "step"
        and len(run_ids) == 1
        and not any(metric.startswith(prefixes) for metric in metrics)
    ):
        return run_curves.curves(store, run_ids[0], metrics, max_points, window)
    return store.frame(
        f"{buckets(x, run_ids)} SELECT * EXCLUDE (x_from, x_to) FROM buckets"
        " ORDER BY run_id, metric, x",
        {
            "metrics": list(metrics),
            "points": max_points,
            "first": window[0],
            "last": window[1],
        },
    )


def means_of_epoch(store: Store, run_id: str, epoch: int, metrics: list[str]) -> dict[str, float]:
    """Mean over the steps of an epoch of each of these metrics that was stored then."""
    rows = store.rows(
        "SELECT metric, avg(value) FROM scalars WHERE run_id = ? AND epoch = ? AND list_contains(?,"
        " metric) GROUP BY metric",
        [run_id, epoch, metrics],
    )
    return dict(rows)


def among(run_ids: Iterable[str]) -> str:
    """SQL condition that `run_id` is one of these; false for none. The ids are literals, since
    DuckDB then skips the blocks of other runs; with a list parameter it reads the numbers of all
    runs.
    """
    quoted = ("'" + run_id.replace("'", "''") + "'" for run_id in run_ids)
    return f"run_id IN ({', '.join(quoted) or 'NULL'})"


def buckets(x: XAxis, run_ids: list[str]) -> str:
    """SQL that begins a query with the table `buckets`: as `curves` gives it, and each bucket's
    first and last x.

    Parameters: $metrics, $points, and the window $first, $last.
    """
    return f"""
        WITH wanted AS (
            SELECT run_id, metric, step, epoch, value, coalesce(error, 0.0) AS error,
                CAST({_X_EXPRESSIONS[x]} AS DOUBLE) AS x
            FROM numbers LEFT JOIN (
                SELECT run_id, arg_max(steps_per_epoch, attempt) AS steps_per_epoch FROM
                    ingest.plans GROUP BY run_id
            ) USING (run_id) LEFT JOIN (SELECT run_id, spec, images_per_step FROM ingest.created)
                USING (run_id)
            WHERE {among(run_ids)} AND list_contains($metrics, metric) AND isfinite(value)
                AND (x BETWEEN $first AND $last) IS NOT FALSE
        ), width AS (
            SELECT run_id, min(step) AS first, greatest(1, ceil((max(step) - min(step) + 1) /
                $points)) AS steps
            FROM wanted GROUP BY run_id
        ), buckets AS (
            SELECT run_id, metric, avg(x) AS x, CAST(avg(step) AS BIGINT) AS step, max(epoch) AS
                epoch,
                   min(value - error) AS low, avg(value) AS mean, max(value + error) AS high,
                       min(x) AS x_from, max(x) AS x_to
            FROM wanted JOIN width USING (run_id)
            GROUP BY run_id, metric, floor((step - width.first) / width.steps)
        )
        """


def points_each(curves_in_chart: int, most: int = MOST_EACH) -> int:
    """The most points for each curve of a chart: `most`, or fewer in a chart with many curves."""
    return max(2, min(most, MOST_POINTS // max(1, curves_in_chart)))


# As RunSpec.replicas_in_all. Runs older than an option have its default.
DEVICES = (
    "TRY_CAST(spec->>'replicas' AS BIGINT) * coalesce(TRY_CAST(spec->>'workers' AS BIGINT), 1)"
)
_X_EXPRESSIONS: dict[XAxis, str] = {
    "step": "step",
    "epoch": "step / steps_per_epoch",
    "images": "step * images_per_step",
    "wall_s": "wall_s",
    "device_s": f"wall_s * {DEVICES}",
}


def epoch_scores(
    store: Store, run_id: str, metrics: tuple[str, ...], max_points: int = 200
) -> pd.DataFrame:
    """Metrics that one run measures once per epoch; in long runs a point is the mean over several
    epochs.

    Columns: metric, epoch (int64, the last of the bucket), step (int64), value (float64; NaN and
    infinite values are left out). Before the end of the first epoch the frame is empty, with these
    columns.
    """
    return store.frame(
        """
        WITH wanted AS (
            SELECT metric, epoch, step, value FROM scalars
            WHERE run_id = $run AND list_contains($metrics, metric) AND isfinite(value)
        ), width AS (SELECT greatest(1, ceil(max(epoch) / $points)) AS epochs FROM wanted)
        SELECT metric, max(epoch) AS epoch, max(step) AS step, avg(value) AS value
        FROM wanted, width GROUP BY metric, floor((epoch - 1) / width.epochs) ORDER BY metric, epoch
        """,
        {"run": run_id, "metrics": list(metrics), "points": max_points},
    )


def once_an_epoch(store: Store, run_ids: list[str], metrics: list[str]) -> set[str]:
    """The metrics, among undeclared ones, that these runs have measured only once per epoch. A run
    with a single step counts as measuring everything once per step.
    """
    rows = store.rows(
        f"""
        WITH lengths AS (
            SELECT run_id, max(step) - min(step) + 1 AS steps FROM scalars WHERE {among(run_ids)}
            GROUP BY run_id
        ), counted AS (
            SELECT run_id, metric, count(*) AS numbers, max(epoch) - min(epoch) + 1 AS epochs
            FROM scalars WHERE {among(run_ids)} AND list_contains($metrics, metric)
            GROUP BY run_id, metric
        )
        SELECT metric FROM counted JOIN lengths USING (run_id)
        GROUP BY metric HAVING bool_and(numbers <= epochs AND numbers < steps)
        """,
        {"metrics": metrics},
    )
    return {metric for (metric,) in rows}


def recorded(store: Store, run_ids: list[str]) -> list[str]:
    """The names of the metrics of these runs, including those of evaluations."""
    return [
        row[0]
        for row in store.rows(
            f"""
            SELECT metric FROM ingest.last_scalars WHERE {among(run_ids)} UNION
            SELECT metric FROM ingest.measured_numbers WHERE {among(run_ids)} ORDER BY 1
            """
        )
    ]


def not_finite(store: Store, run_id: str) -> pd.DataFrame:
    """Steps at which a metric was NaN or infinite. Columns: step, metric, value (text)."""
    return store.frame(
        "SELECT step, metric, CAST(value AS VARCHAR) AS value FROM scalars WHERE run_id = ? AND NOT"
        " isfinite(value) ORDER BY step",
        [run_id],
    )


def best_epochs(
    store: Store, run_id: str, metrics: Iterable[Metric], epochs: list[int]
) -> dict[str, tuple[int, float]]:
    """Metric name → the epoch among `epochs` in which its mean is best by its declared direction
    (the earliest of several), and that mean. Metrics measured in fewer than two of the epochs, or
    without a better direction, are left out.
    """
    signs = {metric.name: metric.sign for metric in metrics if metric.better}
    rows = store.rows(
        """
        WITH directions AS (SELECT unnest($names) AS metric, unnest($signs) AS sign), means AS (
            SELECT metric, epoch, sign, avg(value) AS value FROM numbers JOIN directions
                USING (metric)
            WHERE run_id = $run AND list_contains($epochs, epoch) AND isfinite(value) GROUP BY ALL
        )
        SELECT metric, arg_min(epoch, (sign * value, epoch)), arg_min(value, sign * value)
            FROM means GROUP BY metric HAVING count(*) > 1
        """,
        {
            "run": run_id,
            "names": list(signs),
            "signs": list(signs.values()),
            "epochs": epochs,
        },
    )
    return {metric: (epoch, value) for metric, epoch, value in rows}


def declared_of(store: Store, run_ids: list[str] | None = None) -> Declarations:
    """The joint declarations of the workloads of these runs; without `run_ids`, of all
    stored runs.
    """
    condition = "" if run_ids is None else "WHERE list_contains(?, run_id)"
    rows = store.rows(
        "SELECT spec->>'workload' AS workload, coalesce(spec->>'loss', '') AS loss FROM"
        f" ingest.created {condition} GROUP BY ALL ORDER BY min(created_at)",
        [] if run_ids is None else [run_ids],
    )
    return declarations.together_with_losses(
        (workload, loss) for workload, loss in rows if workload
    )


def metric_table(store: Store, run_ids: list[str]) -> dict[str, Metric]:
    """Every metric that these runs have recorded or their workloads declare, by name. Whether an
    undeclared metric is per epoch follows from the recorded values.
    """
    declaration, names = declared_of(store, run_ids), recorded(store, run_ids)
    declared_table, table = declaration.table(), declaration.table(names)
    strangers = [
        name
        for name, metric in table.items()
        if name not in declared_table and not metric.per_epoch
    ]
    once = once_an_epoch(store, run_ids, strangers) if strangers else set()
    return {
        name: replace(metric, per_epoch=True) if name in once else metric
        for name, metric in table.items()
    }


def columns_of(metrics: Iterable[Metric], expression: str, ending: str = "") -> str:
    """Columns of a SELECT over `scalars`, one a metric, of its name and `ending`, each after
    a comma: `expression` of its rows.
    """
    return "".join(
        f", {expression} FILTER (metric = {_text(metric.name)}) AS {_name(metric.name + ending)}"
        for metric in metrics
    )


def names_of(metrics: Iterable[Metric], table: str) -> str:
    """Columns of `table` with the names of metrics, each after a comma."""
    return "".join(f", {table}.{_name(metric.name)}" for metric in metrics)


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _metric_prefixes(store: Store) -> tuple[str, ...]:
    """The prefixes of metrics that come from evaluations."""
    rows = store.rows(
        "SELECT DISTINCT metric_prefix FROM ingest.evaluations WHERE metric_prefix <> '' ORDER BY 1"
    )
    return tuple(prefix for (prefix,) in rows)
