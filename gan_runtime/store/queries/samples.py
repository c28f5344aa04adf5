"""The pictures of each epoch, by their kind: the name of a picture in the catalog."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime import catalog
from gan_runtime.catalog import pairs
from gan_runtime.store.store import Store

# What runs from before there were kinds call their only picture, and what it is called today.
OLD_KIND, USUAL_KIND = "fixed_latents", pairs.GREY[0].name
MOST_KINDS = 12  # of a page's choice
_KIND = f"CASE kind WHEN '{OLD_KIND}' THEN '{USUAL_KIND}' ELSE kind END AS kind"
# `place`: a picture is read once it is known which one; a search that asks for pictures reads all of them.
_WHOLE = f"SELECT run_id, epoch, {_KIND}, rowid AS place FROM ingest.samples WHERE png IS NOT NULL"
_IN_ORDER = "coalesce(nullif(list_position($declared, kind), 0), 1000), kind"


@dataclass(frozen=True)
class SampleGrid:
    """One picture: a whole PNG within the limits of records/sample_files.py, and where in training it was made.

    Pictures are checked when they are taken in; one that fails is NULL in the store and in no answer of the queries below.
    """

    run_id: str
    epoch: int
    step: int
    png: bytes
    kind: str


def sample_kinds(store: Store, run_ids: list[str]) -> list[str]:
    """The kinds of pictures that at least one of the runs has, in the catalog's order; what it does not know comes last."""
    rows = store.rows(
        f"""
        SELECT kind FROM (SELECT DISTINCT kind FROM ({_WHOLE}) WHERE list_contains($runs, run_id))
        ORDER BY {_IN_ORDER} LIMIT {MOST_KINDS}
        """,
        {"runs": run_ids, "declared": _declared()},
    )
    return [row[0] for row in rows]


def sample_epochs(store: Store, run_ids: list[str], kind: str = "") -> list[int]:
    """The epochs for which at least one of the runs has a picture of the kind, or of any, first to last."""
    rows = store.rows(
        f"SELECT DISTINCT epoch FROM ({_WHOLE}) WHERE list_contains($runs, run_id) AND $kind IN ('', kind) ORDER BY epoch",
        {"runs": run_ids, "kind": kind},
    )
    return [row[0] for row in rows]


def sample(store: Store, run_id: str, epoch: int, kind: str = "") -> SampleGrid | None:
    """The newest picture at or before `epoch`: of the kind, or of the first one of the run. None when there is none yet."""
    places = store.rows(
        f"""
        SELECT place FROM ({_WHOLE})
        WHERE run_id = $run AND epoch <= $epoch AND $kind IN ('', kind) ORDER BY epoch DESC, {_IN_ORDER} LIMIT 1
        """,
        {"run": run_id, "epoch": epoch, "kind": kind, "declared": _declared()},
    )
    rows = store.rows(
        f"SELECT run_id, epoch, step, png, {_KIND} FROM ingest.samples WHERE rowid = ? AND run_id = ?",
        [places[0][0] if places else -1, run_id],
    )
    return SampleGrid(*rows[0]) if rows else None


def same_inputs(store: Store, run_ids: list[str]) -> bool:
    """Whether the same place in the pictures of these runs is the same latent, label or frame. Runs without pictures do not count.

    Pictures tell a digest of their inputs. Those of older runs know their workload only, and the oldest their seed; they are
    never the same as pictures with a digest.
    """
    rows = store.rows(
        """
        SELECT count(DISTINCT coalesce(meta->>'inputs', concat_ws(' ', workload, meta->>'latents', meta->>'seed')))
        FROM samples JOIN runs USING (run_id) WHERE list_contains(?, run_id)
        """,
        [run_ids],
    )
    return bool(rows[0][0] <= 1)


def _declared() -> list[str]:
    """The names of all pictures of the catalog."""
    return [picture.name for entry in catalog.WORKLOADS.values() for picture in entry.pictures]
