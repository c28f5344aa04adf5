"""Distributions by epoch or run: stored histograms, and the losses of the steps of an epoch.

Stored histograms have different bins at each epoch. They are resampled to common bins, as if the
values of a bin were uniform; shares add up to 1. The outermost 0.5% at either end are counted in
the first and last bin, so that outliers do not widen all bins. At most 30 epochs × 50 bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.metrics import SCORE
from gan_runtime.base.metrics import histogram as histogram_name
from gan_runtime.store.queries.metrics import among
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

FINITE = (  # histograms of overflowed values, in old runs
    "isfinite(bin_left[1]) AND isfinite(bin_right)"
)
MAX_EPOCHS = 30
MAX_BINS = 50
MAX_ROWS = MAX_EPOCHS * MAX_BINS
TAIL = 0.005  # share of the values cut at each end
COLUMNS = ("run_id", "epoch", "left", "right", "share")

# Evenly spaced epochs of one run, including the newest.
_SPREAD = """
SELECT run_id, epoch FROM (
    SELECT run_id, epoch, row_number() OVER (ORDER BY epoch DESC) - 1 AS back, count(*) OVER () AS
        total FROM present
) WHERE back % CAST(ceil(total / $epochs) AS BIGINT) = 0
"""
# Each run's newest epoch up to $epoch.
_AT_EPOCH = "SELECT run_id, max(epoch) AS epoch FROM present WHERE epoch <= $epoch GROUP BY run_id"


@dataclass(frozen=True)
class Bins:
    """Counts over adjacent bins: `edges` (bins + 1,) ascending, `counts` (bins,), not all 0."""

    edges: NDArray[np.float64]
    counts: NDArray[np.float64]

    def below(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of all counts, 0 to 1, below each of `values`."""
        return np.interp(values, self.edges, self._cumulative(), left=0.0, right=1.0)

    def quantile(self, share: float) -> float:
        """The value below which a share of the counts is."""
        return float(np.interp(share, self._cumulative(), self.edges))

    def _cumulative(self) -> NDArray[np.float64]:
        return np.concatenate([[0.0], np.cumsum(self.counts)]) / self.counts.sum()


def common_edges(several: list[Bins], bins: int = MAX_BINS) -> NDArray[np.float64]:
    """The common edges of histograms: unchanged if all are equal, else of `bins` equal bins."""
    first = several[0].edges
    if (
        len(first) - 1 <= bins
        and first[0] < first[-1]
        and all(np.array_equal(histogram.edges, first) for histogram in several)
    ):
        return first
    low, high = (
        min(histogram.quantile(TAIL) for histogram in several),
        max(histogram.quantile(1 - TAIL) for histogram in several),
    )
    if low == high:  # all values are equal: center them
        around = max(abs(low) * 0.01, 1e-6)
        low, high = low - around, high + around
    return np.linspace(low, high, bins + 1)


def rebinned(histogram: Bins, edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """The shares of a histogram's counts in other bins; the first and last bin include outliers."""
    below = histogram.below(edges)
    below[0], below[-1] = 0.0, 1.0
    return np.diff(below)


def histogram_names(store: Store, run_ids: list[str]) -> list[str]:
    """The names of the histograms of these runs."""
    return [
        row[0]
        for row in store.rows(
            f"SELECT DISTINCT name FROM histograms WHERE {among(run_ids)} ORDER BY 1"
        )
    ]


def histogram_ridges(store: Store, run_id: str, name: str) -> pd.DataFrame:
    """One histogram of a run over its epochs, on common bins.

    Columns: run_id, epoch (at most 30, oldest first, the newest always among them), left, right
    (float64, bin edges), share (float64, 0 to 1; those of an epoch add up to 1). Before the end of
    the first epoch the frame is empty.
    """
    return _histograms(store, [run_id], _SPREAD, {"name": name, "epochs": MAX_EPOCHS})


def histogram_overlay(store: Store, run_ids: list[str], name: str, epoch: int) -> pd.DataFrame:
    """One histogram of several runs, each at its newest epoch up to `epoch`, on common bins.

    Columns as `histogram_ridges`.
    """
    return _histograms(store, run_ids, _AT_EPOCH, {"name": name, "epoch": epoch})


def loss_ridges(store: Store, run_id: str, metric: str) -> pd.DataFrame:
    """The distribution of a loss, or of another metric of steps, within each epoch.

    Columns as `histogram_ridges`. NaN and infinite values are left out; a run without finite values
    gives an empty frame.
    Source: the concentration of the loss in each epoch, Fig. 8 of the paper.
    """
    return _step_values(store, [run_id], _SPREAD, {"metric": metric, "epochs": MAX_EPOCHS})


def loss_overlay(store: Store, run_ids: list[str], metric: str, epoch: int) -> pd.DataFrame:
    """As `loss_ridges`, for several runs, each at its newest epoch up to `epoch`."""
    return _step_values(store, run_ids, _AT_EPOCH, {"metric": metric, "epoch": epoch})


def _histograms(
    store: Store, run_ids: list[str], selection: str, parameters: dict[str, Any]
) -> pd.DataFrame:
    import pandas as pd  # takes 0.3 s, and Home does not need it

    rows = store.rows(
        f"""
        WITH present AS (SELECT run_id, epoch FROM histograms WHERE {among(run_ids)}
            AND name = $name AND {FINITE}),
        chosen AS ({selection})
        SELECT run_id, epoch, list_append(bin_left, bin_right), count
        FROM histograms JOIN chosen USING (run_id, epoch) WHERE name = $name AND list_sum(count) >
            0 ORDER BY run_id, epoch
        """,
        parameters,
    )
    several = [Bins(np.array(edges), np.array(counts, np.float64)) for _, _, edges, counts in rows]
    if not several:
        return pd.DataFrame(columns=list(COLUMNS))
    edges = common_edges(several, min(MAX_BINS, MAX_ROWS // len(several)))
    frames = [
        pd.DataFrame(
            {
                "run_id": run_id,
                "epoch": epoch,
                "left": edges[:-1],
                "right": edges[1:],
                "share": rebinned(histogram, edges),
            }
        )
        for (run_id, epoch, *_), histogram in zip(rows, several, strict=True)
    ]
    return pd.concat(frames, ignore_index=True)


def _step_values(
    store: Store, run_ids: list[str], selection: str, parameters: dict[str, Any]
) -> pd.DataFrame:
    """Histograms of step values. Few steps give fewer bins, since narrow bins would show gaps."""
    return store.frame(
        f"""
        WITH known AS (
            SELECT run_id, epoch, value FROM scalars
            WHERE {among(run_ids)} AND metric = $metric AND isfinite(value)
        ), present AS (SELECT DISTINCT run_id, epoch FROM known),
        chosen AS ({selection}),
        wanted AS (SELECT * FROM known JOIN chosen USING (run_id, epoch)),
        sizes AS (
            SELECT run_id, epoch, count(*) AS steps,
                   quantile_cont(value, {TAIL}) AS low, quantile_cont(value, {1 - TAIL}) AS high
            FROM wanted GROUP BY run_id, epoch
        ), limits AS (
            SELECT least({MAX_BINS}, {MAX_ROWS} // greatest(1, count(*)), greatest(24, CAST(6 *
                sqrt(median(steps)) AS BIGINT))) AS bins,
                   min(low) AS low, greatest(max(high), min(low) + 1e-6) AS high
            FROM sizes
        ), span AS (SELECT bins, low, (high - low) / bins AS width FROM limits),
        counted AS (
            SELECT run_id, epoch, count(*) AS steps,
                   CAST(least(bins - 1, greatest(0, floor((value - low) / width))) AS BIGINT) AS bin
            FROM wanted, span GROUP BY ALL
        ), empty AS (SELECT run_id, epoch, sizes.steps AS total, unnest(range(bins)) AS bin FROM
            sizes, span)
        SELECT run_id, epoch, low + bin * width AS "left", low + (bin + 1) * width AS "right",
               coalesce(counted.steps, 0) / total AS share
        FROM empty LEFT JOIN counted USING (run_id, epoch, bin), span ORDER BY run_id, epoch, bin
        """,
        parameters,
    )


def histogram(store: Store, run_id: str, names: tuple[str, ...], epoch: int) -> pd.DataFrame:
    """Histograms of the newest epoch up to `epoch`. Columns: name, epoch, left, right (bin edges),
    count, share (of all counts, 0 to 1).
    """
    return store.frame(
        f"""
        WITH present AS (SELECT * FROM histograms WHERE run_id = ? AND list_contains(?, name) AND
            epoch <= ? AND {FINITE}),
        chosen AS (SELECT * FROM present WHERE epoch = (SELECT max(epoch) FROM present)),
        bins AS (
            SELECT name, epoch, unnest(bin_left) AS "left",
                   unnest(list_append(bin_left[2:], bin_right)) AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT name, epoch, "left", "right", count, count / total AS share FROM bins
        ORDER BY name, "left"
        """,
        [run_id, list(names), epoch],
    )


def score_histograms(store: Store, run_ids: list[str], epoch: int) -> pd.DataFrame:
    """Histograms of discriminator scores of several runs, each at its newest epoch up to `epoch`.

    Columns: run_id, epoch (int64), name (score/<judgement>), left, right (bin edges), share (of all
    counts, 0 to 1), top (the largest share of any bin of these runs in any epoch: the same for all
    rows). Empty before the first epoch.
    """
    return store.frame(
        f"""
        WITH scores AS (
            SELECT * FROM histograms
            WHERE {among(run_ids)} AND starts_with(name, $scores) AND {FINITE}
        ), chosen AS (
            SELECT * FROM scores WHERE epoch <= $epoch QUALIFY epoch = max(epoch) OVER (PARTITION
                BY run_id)
        ), bins AS (
            SELECT run_id, epoch, name, unnest(bin_left) AS "left",
                unnest(list_append(bin_left[2:], bin_right)) AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT run_id, epoch, name, "left", "right", count / total AS share,
               (SELECT max(list_max(count) / list_sum(count)) FROM scores) AS top
        FROM bins ORDER BY run_id, name, "left"
        """,
        {"epoch": epoch, "scores": histogram_name(SCORE, "")},
    )
