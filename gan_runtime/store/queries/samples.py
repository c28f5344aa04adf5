"""Stored pictures and histograms of probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gan_runtime import catalog
from gan_runtime.base.metrics import SCORE
from gan_runtime.base.metrics import histogram as histogram_name
from gan_runtime.catalog import pairs
from gan_runtime.store.queries.distributions import FINITE
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd

# What runs from before there were kinds call their only picture, and what it is called today.
OLD_KIND, USUAL_KIND = "fixed_latents", pairs.GREY[0].name
MOST_KINDS = 12  # of a page's choice
_KIND = f"CASE kind WHEN '{OLD_KIND}' THEN '{USUAL_KIND}' ELSE kind END AS kind"
# `place`: a picture is read once it is known which one; a search that asks for pictures reads all
# of them.
_WHOLE = f"SELECT run_id, epoch, {_KIND}, rowid AS place FROM ingest.samples WHERE png IS NOT NULL"
_IN_ORDER = "coalesce(nullif(list_position($declared, kind), 0), 1000), kind"


@dataclass(frozen=True)
class SampleGrid:
    """One picture: a whole PNG within the limits of records/sample_files.py, and where in training
    it was made.

    Pictures are checked when they are taken in; one that fails is NULL in the store and in no
    answer of the queries below.
    """

    run_id: str
    epoch: int
    step: int
    png: bytes
    kind: str


def sample_kinds(store: Store, run_ids: list[str]) -> list[str]:
    """The kinds of pictures that at least one of the runs has, in the catalog's order; what
    it does not know comes last.
    """
    rows = store.rows(
        f"""
        SELECT kind FROM (SELECT DISTINCT kind FROM ({_WHOLE}) WHERE list_contains($runs, run_id))
        ORDER BY {_IN_ORDER} LIMIT {MOST_KINDS}
        """,
        {"runs": run_ids, "declared": _declared()},
    )
    return [row[0] for row in rows]


def sample_epochs(store: Store, run_ids: list[str], kind: str = "") -> list[int]:
    """The epochs for which at least one of the runs has a picture of the kind, or of any,
    first to last.
    """
    rows = store.rows(
        f"SELECT DISTINCT epoch FROM ({_WHOLE}) WHERE list_contains($runs, run_id) AND $kind IN"
        " ('', kind) ORDER BY epoch",
        {"runs": run_ids, "kind": kind},
    )
    return [row[0] for row in rows]


def sample(store: Store, run_id: str, epoch: int, kind: str = "") -> SampleGrid | None:
    """The newest picture at or before `epoch`: of the kind, or of the first one of the run.

    None when there is none yet.
    """
    places = store.rows(
        f"""
        SELECT place FROM ({_WHOLE})
        WHERE run_id = $run AND epoch <= $epoch AND $kind IN ('', kind) ORDER BY epoch DESC,
            {_IN_ORDER} LIMIT 1
        """,
        {"run": run_id, "epoch": epoch, "kind": kind, "declared": _declared()},
    )
    rows = store.rows(
        f"SELECT run_id, epoch, step, png, {_KIND} FROM ingest.samples WHERE rowid = ? AND"
        " run_id = ?",
        [places[0][0] if places else -1, run_id],
    )
    return SampleGrid(*rows[0]) if rows else None


def same_inputs(store: Store, run_ids: list[str]) -> bool:
    """Whether the same place in the pictures of these runs is the same latent, label or frame.

    Runs without pictures do not count.

    Pictures tell a digest of their inputs. Those of older runs know their workload only, and the
    oldest their seed; they are never the same as pictures with a digest.
    """
    rows = store.rows(
        """
        SELECT count(DISTINCT coalesce(meta->>'inputs', concat_ws(' ', workload, meta->>'latents',
            meta->>'seed')))
        FROM samples JOIN runs USING (run_id) WHERE list_contains(?, run_id)
        """,
        [run_ids],
    )
    return bool(rows[0][0] <= 1)


def _declared() -> list[str]:
    """The names of all pictures of the catalog."""
    return [picture.name for entry in catalog.WORKLOADS.values() for picture in entry.pictures]


def histogram(store: Store, run_id: str, names: tuple[str, ...], epoch: int) -> pd.DataFrame:
    """Some histograms of one epoch.

    Columns: name, left, right (bin edges), count, share (of all counts, 0 to 1).
    """
    return store.frame(
        f"""
        WITH chosen AS (SELECT * FROM histograms WHERE run_id = ? AND list_contains(?, name) AND
            epoch = ? AND {FINITE}),
        bins AS (
            SELECT name, unnest(bin_left) AS "left", unnest(list_append(bin_left[2:], bin_right))
                AS "right",
                   unnest(count) AS count, list_sum(count) AS total
            FROM chosen
        )
        SELECT name, "left", "right", count, count / total AS share FROM bins ORDER BY name, "left"
        """,
        [run_id, list(names), epoch],
    )


def score_histograms(store: Store, run_ids: list[str], epoch: int) -> pd.DataFrame:
    """What the judging networks of several runs made of the probed rows, each at its newest epoch
    up to `epoch`.

    Columns: run_id, epoch (int64), name (score/<judgement>), left, right (bin edges), share (of all
    counts, 0 to 1), top (the largest share of any bin of these runs in any epoch: the same for all
    rows). Empty before the first epoch.
    """
    return store.frame(
        f"""
        WITH scores AS (
            SELECT * FROM histograms WHERE list_contains($runs, run_id) AND starts_with(name,
                $scores) AND {FINITE}
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
        {"runs": run_ids, "epoch": epoch, "scores": histogram_name(SCORE, "")},
    )
