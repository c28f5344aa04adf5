"""What is looked at after each epoch: histograms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gan_runtime.base.metrics import SCORE
from gan_runtime.base.metrics import histogram as histogram_name
from gan_runtime.store.queries.distributions import FINITE
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


def histogram(store: Store, run_id: str, names: tuple[str, ...], epoch: int) -> pd.DataFrame:
    """Some histograms of one epoch. Columns: name, left, right (bin edges), count, share (of all counts, 0 to 1)."""
    return store.frame(
        f"""
        WITH chosen AS (SELECT * FROM histograms WHERE run_id = ? AND list_contains(?, name) AND epoch = ? AND {FINITE}),
        bins AS (
            SELECT name, unnest(bin_left) AS "left", unnest(list_append(bin_left[2:], bin_right)) AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT name, "left", "right", count, count / total AS share FROM bins ORDER BY name, "left"
        """,
        [run_id, list(names), epoch],
    )


def score_histograms(store: Store, run_ids: list[str], epoch: int) -> pd.DataFrame:
    """What the judging networks of several runs made of the probed rows, each at its newest epoch up to `epoch`.

    Columns: run_id, epoch (int64), name (score/<judgement>), left, right (bin edges), share (of all counts, 0 to 1),
    top (the largest share of any bin of these runs in any epoch: the same for all rows). Empty before the first epoch.
    """
    return store.frame(
        f"""
        WITH scores AS (
            SELECT * FROM histograms WHERE list_contains($runs, run_id) AND starts_with(name, $scores) AND {FINITE}
        ), chosen AS (
            SELECT * FROM scores WHERE epoch <= $epoch QUALIFY epoch = max(epoch) OVER (PARTITION BY run_id)
        ), bins AS (
            SELECT run_id, epoch, name, unnest(bin_left) AS "left", unnest(list_append(bin_left[2:], bin_right)) AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT run_id, epoch, name, "left", "right", count / total AS share,
               (SELECT max(list_max(count) / list_sum(count)) FROM scores) AS top
        FROM bins ORDER BY run_id, name, "left"
        """,
        {"runs": run_ids, "epoch": epoch, "scores": histogram_name(SCORE, "")},
    )
