"""Several runs taken together: groups of runs as one curve."""

from __future__ import annotations

import pandas as pd

from gan_runtime.store.queries.metrics import XAxis, buckets
from gan_runtime.store.store import Store


def group_curves(
    store: Store, groups: dict[str, list[str]], metric: str, x: XAxis = "step", max_points: int = 200
) -> pd.DataFrame:
    """One metric of groups of runs: the mean over the runs of a group, and its lowest and highest run, on a common grid.

    Each run is thinned as in `curves` and taken, between two of its points, on the straight line that joins them. The grid
    has `max_points` places from the first to the last x of all runs; a run counts from its own first to its own last x.
    `groups`: name → ids of its runs. Columns: run (the group's name), x, low, mean, high (float64), runs (int64, how many
    are in the mean there), by name and x. Nothing logged yet gives an empty frame with these columns.
    """
    members = [(name, run_id) for name, run_ids in groups.items() for run_id in run_ids]
    return store.frame(
        f"""{buckets(x)}, members AS (
            SELECT unnest($names) AS name, unnest($runs) AS run_id
        ), pieces AS (
            SELECT run_id, x, x_to, mean, lead(x) OVER along AS next_x, lead(mean) OVER along AS next_mean,
                   CASE WHEN lag(x) OVER along IS NULL THEN x_from ELSE x END AS "from"
            FROM buckets WINDOW along AS (PARTITION BY run_id ORDER BY x, step)
        ), ends AS (SELECT min(x_from) AS first, max(x_to) AS last FROM buckets), grid AS (
            SELECT DISTINCT CASE i WHEN $points - 1 THEN last ELSE first + (last - first) * i / ($points - 1) END AS x
            FROM ends, range($points) AS places(i)
        ), runs_on_grid AS (
            SELECT p.run_id, g.x, mean + coalesce(greatest(0, g.x - p.x) / nullif(next_x - p.x, 0) * (next_mean - mean), 0) AS value
            FROM (SELECT * FROM grid, (SELECT DISTINCT run_id FROM buckets)) g
            ASOF JOIN pieces p ON g.run_id = p.run_id AND g.x >= p."from"
            WHERE g.x <= coalesce(p.next_x, p.x_to)
        )
        SELECT name AS run, x, min(value) AS low, avg(value) AS mean, max(value) AS high, count(*) AS runs
        FROM runs_on_grid JOIN members USING (run_id) GROUP BY name, x ORDER BY name, x
        """,
        {
            "runs": [run_id for _, run_id in members],
            "names": [name for name, _ in members],
            "metrics": [metric],
            "points": max_points,
        },
    )
