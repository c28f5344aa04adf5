"""What a run has produced: sample grids, answers of evaluations, and loss surfaces."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.catalog import pairs
from gan_runtime.catalog.evaluations import defining_facts
from gan_runtime.store.queries.metrics import DEVICES, among, declared_of
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


# The only kind of images in the oldest runs, and its name today.
OLD_KIND, USUAL_KIND = "fixed_latents", pairs.GREY[0].name
MOST_KINDS = 12  # most kinds in a page's choice
_KIND = f"CASE kind WHEN '{OLD_KIND}' THEN '{USUAL_KIND}' ELSE kind END AS kind"
# `place`: an image is read by its place, as a search with images would read all of them.
_WHOLE = f"SELECT run_id, epoch, {_KIND}, rowid AS place FROM ingest.samples WHERE png IS NOT NULL"
_IN_ORDER = "coalesce(nullif(list_position($declared, kind), 0), 1000), kind"


@dataclass(frozen=True)
class SampleGrid:
    """A grid of sample images, as a PNG that was checked at ingest, with its epoch and step."""

    run_id: str
    epoch: int
    step: int
    png: bytes
    kind: str


def sample_kinds(store: Store, run_ids: list[str]) -> list[str]:
    """The kinds of images of these runs, in the catalog's order; unknown kinds come last."""
    rows = store.rows(
        f"""
        SELECT kind FROM (SELECT DISTINCT kind FROM ({_WHOLE}) WHERE {among(run_ids)})
        ORDER BY {_IN_ORDER} LIMIT {MOST_KINDS}
        """,
        {"declared": _declared()},
    )
    return [row[0] for row in rows]


def sample_epochs(store: Store, run_ids: list[str], kind: str = "") -> list[int]:
    """The epochs with an image of the kind, or of any, in at least one of the runs."""
    rows = store.rows(
        f"SELECT DISTINCT epoch FROM ({_WHOLE}) WHERE {among(run_ids)} AND $kind IN"
        " ('', kind) ORDER BY epoch",
        {"kind": kind},
    )
    return [row[0] for row in rows]


def sample(store: Store, run_id: str, epoch: int, kind: str = "") -> SampleGrid | None:
    """The newest image up to `epoch`, of the kind or of the run's first kind; None without one."""
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
    """Whether the images of these runs have the same latents, labels or frames, by their digest.

    Runs without images do not count. Old runs have the workload and seed in place of the digest;
    runs with neither, such as imported ones, differ from all others.
    """
    rows = store.rows(
        f"""
        SELECT count(DISTINCT coalesce(meta->>'inputs', workload || ' ' || nullif(concat_ws(' ',
            meta->>'latents', meta->>'seed'), ''), run_id))
        FROM samples JOIN runs USING (run_id) WHERE {among(run_ids)}
        """
    )
    return bool(rows[0][0] <= 1)


def _declared() -> list[str]:
    """The names of all images of the catalog."""
    return [picture.name for entry in catalog.WORKLOADS.values() for picture in entry.pictures]


@dataclass(frozen=True)
class EvaluationRow:
    """The newest answer with a key. `facts`: further facts by name; other fields as in
    records/answer.py.
    """

    run_id: str
    evaluation: str
    key: str
    measured_at: datetime
    epoch: int
    step: int
    checkpoint: str
    facts: dict[str, Any]

    @property
    def parameters(self) -> dict[str, str]:
        """The parameters of `_OF_ANSWER`."""
        return {"run": self.run_id, "evaluation": self.evaluation, "key": self.key}


@dataclass(frozen=True)
class CurveRow:
    """A curve of an answer.

    `number`: its position in the answer, from 0; `facts`: which bin or part it describes.
    """

    number: int
    name: str
    facts: dict[str, Any]


@dataclass(frozen=True)
class ArrayRow:
    """An array of an answer: the name of a `file` in the run's folder, or `values` at flat
    `places`.
    """

    number: int
    name: str
    file: str
    places: list[int]
    values: list[float]
    facts: dict[str, Any]


# Of each run the first declared number that is measured; of each epoch, by the rule of the view
# `numbers`, the answer of highest precedence, then the newest. $runs: NULL for all runs;
# $defining: the facts on which scores depend.
_MEASURED_QUALITY = f"""
    WITH scores AS (
        SELECT a.run_id, evaluation, m.metric, better, a.epoch, a.step, value, low, high, floor,
            ceiling, precedence, a.place, coalesce(facts->>'warning', '') AS warning,
            [facts->>name FOR name IN $defining] AS definition
        FROM ingest.newest_evaluations a JOIN ingest.evaluation_scores s
            USING (run_id, evaluation, key, place)
        JOIN (SELECT run_id, spec->>'workload' AS workload FROM ingest.created) c USING (run_id)
        JOIN metrics m ON m.workload = c.workload AND m.role = 'measured_quality'
            AND m.metric = metric_prefix || score
        WHERE isfinite(value) AND ($runs IS NULL OR list_contains($runs, a.run_id))
        QUALIFY dense_rank() OVER (PARTITION BY a.run_id ORDER BY m.place) = 1
    ), answers AS (
        SELECT * FROM scores
        QUALIFY row_number() OVER (PARTITION BY run_id, epoch ORDER BY precedence DESC,
            place DESC) = 1
    ), times AS (
        SELECT run_id, step, sum(seconds) OVER (PARTITION BY run_id ORDER BY step) AS wall_s
        FROM ingest.epochs
    )
    SELECT a.run_id, evaluation, metric, better, epoch, a.step, value, low, high, floor, ceiling,
        coalesce(wall_s, 0.0) AS wall_s, coalesce(wall_s, 0.0) * devices AS device_s, warning,
        definition = last(definition ORDER BY a.place) OVER (PARTITION BY a.run_id) AS is_current
    FROM answers a ASOF LEFT JOIN times t ON a.run_id = t.run_id AND a.step >= t.step
    JOIN (SELECT run_id, {DEVICES} AS devices FROM ingest.created) c ON c.run_id = a.run_id
"""
_OF_ANSWER = "run_id = $run AND evaluation = $evaluation AND key = $key"
_SCORE_COLUMNS = "score, value, error, low, high, floor, floor_error, ceiling, baselines, samples"


def evaluated_runs(store: Store, evaluation: str) -> list[str]:
    """Ids of the runs with an answer of this evaluation, the newest run first."""
    rows = store.rows(
        """
        SELECT run_id FROM runs SEMI JOIN (SELECT run_id FROM evaluations WHERE evaluation = ?)
            USING (run_id)
        ORDER BY created_at DESC, run_id
        """,
        [evaluation],
    )
    return [run_id for (run_id,) in rows]


def evaluations(store: Store, run_ids: list[str], evaluation: str = "") -> list[EvaluationRow]:
    """The newest answer for each key, ordered by run, evaluation and step; without `evaluation`, of
    all evaluations.
    """
    rows = store.rows(
        """
        SELECT run_id, evaluation, key, measured_at, epoch, step, checkpoint, facts FROM evaluations
        WHERE list_contains($runs, run_id) AND $evaluation IN ('', evaluation) ORDER BY run_id,
            evaluation, step, measured_at, key
        """,
        {"runs": run_ids, "evaluation": evaluation},
    )
    return [EvaluationRow(*_with_facts(row)) for row in rows]


def evaluation_scores(store: Store, run_ids: list[str], evaluation: str) -> pd.DataFrame:
    """Every score of every newest answer, earliest step first.

    Columns: run_id, key, epoch, step, checkpoint, measured_at, score, value, error (one standard
    deviation), low, high (95%), floor (real rows against real rows), floor_error, ceiling (noise
    against real rows), baselines (dict of name and value), samples. NaN where there is no such
    number.
    """
    return store.frame(
        f"""
        SELECT run_id, key, epoch, step, e.checkpoint, e.measured_at, {_SCORE_COLUMNS}
        FROM evaluation_scores JOIN (SELECT run_id, evaluation, key, checkpoint, measured_at FROM
            evaluations) e
            USING (run_id, evaluation, key)
        WHERE list_contains($runs, run_id) AND evaluation = $evaluation ORDER BY run_id, step, key
        """,
        {"runs": run_ids, "evaluation": evaluation},
    )


def score_history(store: Store, run_id: str, evaluation: str) -> pd.DataFrame:
    """Each score over the epochs of a run, one row per epoch and score, earliest epoch first.

    Columns: epoch, step, checkpoint, score, value, error, low, high, floor, floor_error, ceiling,
    baselines, samples. If an epoch has several answers, the highest precedence counts, then the
    newest.
    """
    return store.frame(
        f"""
        SELECT epoch, step, e.checkpoint, {_SCORE_COLUMNS}
        FROM evaluation_scores JOIN evaluations e USING (run_id, evaluation, key, epoch, step)
        WHERE run_id = $run AND evaluation = $evaluation
        QUALIFY row_number() OVER (PARTITION BY epoch, score ORDER BY e.precedence DESC,
            e.measured_at DESC) = 1
        ORDER BY epoch, score
        """,
        {"run": run_id, "evaluation": evaluation},
    )


def qualities(store: Store, run_ids: list[str]) -> pd.DataFrame:
    """The measured quality of runs, one row per measured epoch, earliest first: the first declared
    metric with the role measured_quality that a run has.

    Columns: run_id, evaluation, metric, better, epoch, step, value, low, high (95%; NaN where
    unknown), floor, ceiling, wall_s (training seconds until then), device_s (those times devices),
    warning (about the score; "" without), is_current (comparable with the newest: the same network
    and protocol). Empty before the first.
    """
    return store.frame(f"{_MEASURED_QUALITY} ORDER BY run_id, epoch", _of_runs(run_ids))


def best_qualities(store: Store) -> pd.DataFrame:
    """The best epoch of each run of which any is measured, among those that are comparable with
    its newest; indexed by run_id, columns as `qualities`.
    """
    frame = store.frame(
        f"""
        SELECT * FROM ({_MEASURED_QUALITY}) WHERE is_current
        QUALIFY row_number() OVER (PARTITION BY run_id
            ORDER BY CASE better WHEN 'higher' THEN -value ELSE value END, epoch) = 1
        """,
        _of_runs(None),
    )
    return frame.set_index("run_id")


def _of_runs(run_ids: list[str] | None) -> dict[str, list[str] | None]:
    return {"runs": run_ids, "defining": list(defining_facts())}


def is_being_evaluated(store: Store, run_id: str, evaluation: str) -> bool:
    """Whether a job that evaluates this run waits or runs."""
    rows = store.rows(
        "SELECT count(*) FROM jobs WHERE run_id = ? AND kind = ? AND ended_at IS NULL",
        [run_id, evaluation],
    )
    return bool(rows[0][0])


def evaluation_curves(store: Store, row: EvaluationRow) -> list[CurveRow]:
    """The curves of an answer, in its order."""
    rows = store.rows(
        "SELECT DISTINCT number, curve, CAST(facts AS VARCHAR) FROM evaluation_curves"
        f" WHERE {_OF_ANSWER} ORDER BY number",
        row.parameters,
    )
    return [CurveRow(number, name, json.loads(facts)) for number, name, facts in rows]


def curve_points(store: Store, row: EvaluationRow, numbers: list[int]) -> pd.DataFrame:
    """The points of curves of an answer: number, curve, series, x, y (NaN except for maps), value,
    error (NaN if unknown).
    """
    return store.frame(
        f"""
        SELECT number, curve, series, unnest(x) AS x, unnest(y) AS y, unnest(value) AS value,
            unnest(error) AS error
        FROM (SELECT * FROM evaluation_curves WHERE {_OF_ANSWER} AND list_contains($numbers, number)
            ORDER BY number)
        """,
        {**row.parameters, "numbers": numbers},
    )


def evaluation_arrays(store: Store, row: EvaluationRow) -> list[ArrayRow]:
    """The arrays of an answer, in its order."""
    rows = store.rows(
        "SELECT number, name, file, places, value, facts FROM evaluation_arrays"
        f" WHERE {_OF_ANSWER} ORDER BY number",
        row.parameters,
    )
    return [ArrayRow(*_with_facts(row)) for row in rows]


def _with_facts(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The last column as an object."""
    return (*row[:-1], json.loads(row[-1]))


@dataclass(frozen=True)
class SurfaceRow:
    """A network's loss in nats on the plane of its path. `loss`: (len(y), len(x)); the path's lists
    have one entry per snapshot.

    `share_x`, `share_y`: share of all squared movement of the weights along each axis, 0 to 1.
    `images`: number of training images.
    """

    network: str
    x: list[float]
    y: list[float]
    loss: NDArray[np.float64]
    path_epoch: list[int]
    path_x: list[float]
    path_y: list[float]
    path_loss: list[float]
    share_x: float
    share_y: float
    images: int


def surfaces(store: Store, run_id: str) -> list[SurfaceRow]:
    """The newest surface of each network of a run, in the order of its workload; empty before the
    first computation.
    """
    rows = store.rows(
        """
        SELECT network, x, y, loss, path_epoch, path_x, path_y, path_loss, share_x, share_y, images
        FROM surfaces WHERE run_id = ? ORDER BY network
        """,
        [run_id],
    )
    order = [network.name for network in declared_of(store, [run_id]).networks]
    in_order = sorted(rows, key=lambda row: order.index(row[0]) if row[0] in order else len(order))
    return [
        SurfaceRow(network, x, y, np.reshape(loss, (len(y), len(x))), *path)
        for network, x, y, loss, *path in in_order
    ]


def runs_with_descent(store: Store) -> list[str]:
    """The ids of ended runs with a surface, then of ended runs with weight snapshots,
    newest first.
    """
    rows = store.rows("""
        SELECT run_id FROM runs LEFT JOIN (SELECT DISTINCT run_id, true AS drawn FROM surfaces)
            USING (run_id)
        WHERE drawn OR (spec->>'weight_snapshots' = 'yes' AND status IN ('finished', 'stopped',
            'failed', 'lost'))
        ORDER BY drawn NULLS LAST, created_at DESC
        """)
    return [run_id for (run_id,) in rows]
