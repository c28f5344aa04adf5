"""The stored runs and their states."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gan_runtime.base.errors import UnknownRunError, quoted
from gan_runtime.catalog import declarations
from gan_runtime.records.answer import Score
from gan_runtime.records.journal import ACTIVE, ENDED
from gan_runtime.records.states import Reason, Status
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.queries.metrics import among, columns_of, declared_of, names_of
from gan_runtime.store.store import Store
from gan_runtime.training import verdict
from gan_runtime.training.verdict import (
    AGREEING,
    EpochNumbers,
    MeasuredAnswer,
    Verdict,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class RunRow:
    """One stored run.

    `color`: its index in the run palette; `note`: the reason of its state, as text; `reason_code`:
    the same as a code (records/states.py), None if this version does not know it.

    `study_id`, `variant` (in words) and `repeat` (from 1) are None outside a study. `tags`,
    `remark` (a note), `pinned` and `hidden` are set by users.
    """

    run_id: str
    name: str
    status: Status
    workload: str
    preset: str | None
    dataset: str
    accelerator: str
    replicas: int
    workers: int
    precision: str
    batch_size_global: int
    epochs: int
    attempt: int
    color: int
    note: str
    reason_code: str | None
    spec: str
    host: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    study_id: str | None
    variant: str | None
    repeat: int | None
    tags: list[str]
    remark: str
    pinned: bool
    hidden: bool

    @property
    def is_live(self) -> bool:
        """It waits or trains."""
        return self.status in ("queued", *ACTIVE)

    @property
    def sync_every_steps(self) -> int:
        """Steps between two exchanges: 1 exchanges gradients in each step, more is local SGD. Older
        runs are synchronous.
        """
        return int(json.loads(self.spec).get("sync_every_steps", 1))

    @property
    def target(self) -> str:
        """Where it trains: "here", or the name of a target."""
        return str(json.loads(self.spec).get("target", HERE))

    @property
    def loss(self) -> str:
        """The option of a pair of networks: cross_entropy, hinge, …; "" without it."""
        return str(json.loads(self.spec).get("loss", ""))

    @property
    def engine(self) -> str:
        """The engine: "tensorflow" or "jax"."""
        return str(json.loads(self.spec).get("engine", "tensorflow"))


@dataclass(frozen=True)
class RunState:
    """A state that a run came to; `note`: why, in words."""

    attempt: int
    status: Status
    note: str


_RUN_COLUMNS = ", ".join(RunRow.__dataclass_fields__)


def runs(store: Store, status: tuple[str, ...] = ()) -> list[RunRow]:
    """All stored runs, newest first; with `status`, only runs in one of these states."""
    condition = "WHERE list_contains(?, status)" if status else ""
    rows = store.rows(
        f"SELECT {_RUN_COLUMNS} FROM runs {condition} ORDER BY created_at DESC",
        [list(status)] if status else [],
    )
    return [RunRow(*row) for row in rows]


def queue(store: Store) -> list[RunRow]:
    """The waiting runs, next one first."""
    rows = store.rows(
        f"SELECT {_RUN_COLUMNS} FROM runs WHERE status = 'queued' ORDER BY queue_rank, run_id"
    )
    return [RunRow(*row) for row in rows]


def queue_items(store: Store) -> list[list[RunRow]]:
    """The waiting items in queue order: each single run, and all waiting runs of a study as one
    item.
    """
    items: dict[str, list[RunRow]] = {}
    for row in queue(store):
        items.setdefault(row.study_id or row.run_id, []).append(row)
    return list(items.values())


def run(store: Store, run_id: str) -> RunRow:
    """One run.

    Raises:
        UnknownRunError: there is no such run; the message lists the newest runs.
    """
    rows = store.rows(f"SELECT {_RUN_COLUMNS} FROM runs WHERE run_id = ?", [run_id])
    if not rows and run_id in (quarantined := set_aside(store)):
        raise UnknownRunError(f"run {run_id} cannot be read: {quarantined[run_id]}.")
    if not rows:
        newest = ", ".join(row.run_id for row in runs(store)[:8])
        there = f"the newest runs are {newest}" if newest else "there are no runs yet"
        raise UnknownRunError(f"run {quoted(run_id)} is not stored here: {there}.")
    return RunRow(*rows[0])


def states(store: Store, run_id: str) -> list[RunState]:
    """All states that a stored run has reached, in order; the last is the current state."""
    rows = store.rows(
        """
        SELECT attempt, arg_max(status, (source, place)), arg_max(reason, (source, place))
        FROM ingest.statuses WHERE run_id = ? GROUP BY attempt, stage ORDER BY attempt, stage
        """,
        [run_id],
    )
    return [RunState(*row) for row in rows]


def set_aside(store: Store) -> dict[str, str]:
    """Folders that cannot be read as runs, by name, and why, as the end of a sentence."""
    return dict(store.rows("SELECT run_id, reason FROM set_aside ORDER BY run_id"))  # type: ignore[arg-type]


def run_table(store: Store) -> pd.DataFrame:
    """One row per run with its last losses and its rate, for the Runs table; pinned runs first,
    then the newest.

    Columns: run_id, name, status, workload, dataset, accelerator, replicas, workers, precision,
    xla, batch_size_global, epochs, epochs_done, images_per_s (median of its epochs), one of each
    loss that the workloads of stored runs declare (its name; last finished step), seconds,
    created_at, note, color, preset (may be empty), spec (JSON text), tags (list of text), remark,
    pinned, hidden, sync_every_steps (1 for runs from before this option).
    """
    numbers = declared_of(store)
    return store.frame(f"""
        WITH ends AS (
            SELECT run_id, max(wall_s) AS seconds{columns_of(numbers.losses, "max(value)")} FROM
                ingest.last_scalars GROUP BY run_id
        ), rates AS (SELECT run_id, max(epoch) AS epochs_done, median(images_per_s) AS images_per_s
            FROM epochs GROUP BY run_id)
        SELECT r.run_id, r.name, r.status, r.workload, r.dataset, r.accelerator, r.replicas,
            r.workers, r.precision, r.xla,
               r.batch_size_global, r.epochs, coalesce(rates.epochs_done, 0) AS epochs_done,
                   rates.images_per_s{names_of(numbers.losses, "ends")},
               ends.seconds, r.created_at, r.note, r.color, r.preset, r.spec, r.tags, r.remark,
                   r.pinned, r.hidden,
               TRY_CAST(coalesce(r.spec->>'sync_every_steps', '1') AS INTEGER) AS sync_every_steps
        FROM runs r LEFT JOIN ends USING (run_id) LEFT JOIN rates USING (run_id)
        ORDER BY r.pinned DESC, r.created_at DESC
        """)


@dataclass(frozen=True)
class Ending:
    """An attempt that has ended, or trains. `news`: changes with each epoch and each answer."""

    run_id: str
    attempt: int
    status: Status
    changed_at: datetime
    news: int


def endings(store: Store) -> list[Ending]:
    """The newest attempts that train or have ended, latest first, without imported runs and runs
    removed from the queue.
    """
    rows = store.rows(
        """
        SELECT run_id, attempt, status, changed_at, coalesce(epochs, 0) + coalesce(answers, 0)
        FROM ingest.newest
        LEFT JOIN (SELECT run_id, max(epoch) AS epochs FROM ingest.epochs GROUP BY run_id)
            USING (run_id)
        LEFT JOIN (SELECT run_id, count(*) AS answers FROM ingest.evaluations GROUP BY run_id)
            USING (run_id)
        ANTI JOIN (SELECT run_id FROM ingest.hosts WHERE facts->>'hostname' IS NULL)
            USING (run_id)
        WHERE list_contains(?, status) AND code IS DISTINCT FROM ?
        ORDER BY changed_at DESC, run_id
        """,
        [["running", *ENDED], Reason.TAKEN_FROM_QUEUE.value],
    )
    return [Ending(*row) for row in rows]


@dataclass(frozen=True)
class StoredLimits:
    """The options of a stored run that alarms read."""

    workload: str
    collapse_share: float
    d_wins_score: float


def verdicts(store: Store, run_ids: tuple[str, ...]) -> dict[str, Verdict]:
    """run_id → verdict, of stored runs."""
    condition = among(run_ids)
    rows = store.rows(f"SELECT run_id, status, spec FROM runs WHERE {condition}")
    specs = {run_id: json.loads(spec) for run_id, _, spec in rows}
    workloads = {str(spec.get("workload", "")) for spec in specs.values()}
    epochs = _last_epochs(store, condition, workloads)
    answers = _last_answers(store, condition)
    return {
        run_id: verdict.verdict(
            _limits(specs[run_id]),
            epochs.get(run_id, []),
            answers.get(run_id, []),
            is_over=status in ENDED,
        )
        for run_id, status, _ in rows
    }


def _limits(spec: dict[str, object]) -> StoredLimits:
    """Options that an old run does not have are at their default."""
    usual = {name: option.default for name, option in RunSpec.options().items()}
    share, score = (spec.get(name, usual[name]) for name in ("collapse_share", "d_wins_score"))
    return StoredLimits(str(spec.get("workload", "")), float(str(share)), float(str(score)))


def _last_epochs(
    store: Store, condition: str, workloads: set[str]
) -> dict[str, list[EpochNumbers]]:
    """run_id → the metrics with a role in its last epochs, and in the epoch before them."""
    numbers = declarations.together(sorted(workloads)).metrics
    names = sorted(metric.name for metric in numbers if metric.role and metric.per_epoch)
    rows = store.rows(
        f"""
        SELECT run_id, epoch, map(list(metric), list(value)) FROM (
            SELECT run_id, epoch, metric, avg(value) AS value
            FROM ingest.scalars JOIN (SELECT run_id, max(epoch) AS last FROM ingest.last_scalars
                WHERE {condition} GROUP BY run_id) USING (run_id)
            WHERE {condition} AND list_contains($metrics, metric) AND isfinite(value)
                AND epoch >= last - $epochs GROUP BY run_id, epoch, metric
        ) GROUP BY run_id, epoch ORDER BY run_id, epoch
        """,
        {"metrics": names, "epochs": AGREEING + 1},
    )
    epochs: dict[str, list[EpochNumbers]] = {}
    for run_id, epoch, scores in rows:
        epochs.setdefault(run_id, []).append(EpochNumbers(epoch, scores))
    return epochs


def _last_answers(store: Store, condition: str) -> dict[str, list[MeasuredAnswer]]:
    """run_id → the answers of its last epochs that an evaluation measured, earliest first. Of
    several answers of an epoch, the one of highest precedence counts, then the newest. Only of
    evaluations whose scores are numbers of runs.
    """
    rows = store.rows(
        f"""
        SELECT run_id, evaluation, epoch, score, value, error, low, high, floor, floor_error,
            ceiling, baselines
        FROM ingest.newest_evaluations JOIN ingest.evaluation_scores
            USING (run_id, evaluation, key, place)
        WHERE {condition} AND metric_prefix <> ''
        QUALIFY dense_rank() OVER (PARTITION BY run_id, evaluation, epoch
                ORDER BY precedence DESC, place DESC) = 1
            AND epoch > max(epoch) OVER (PARTITION BY run_id, evaluation) - $epochs
        ORDER BY run_id, epoch, evaluation, score
        """,
        {"epochs": AGREEING},
    )
    names = ("value", "error", "low", "high", "floor", "floor_error", "ceiling")
    scores: dict[tuple[str, str, int], dict[str, Score]] = {}
    for run_id, evaluation, epoch, name, *values, baselines in rows:
        numbers = dict(zip(names, values, strict=True))
        known = {key: value for key, value in (baselines or {}).items() if value is not None}
        score = Score(name=name, **numbers, baselines=known)
        scores.setdefault((run_id, evaluation, epoch), {})[name] = score
    answers: dict[str, list[MeasuredAnswer]] = {}
    for (run_id, evaluation, epoch), of_answer in scores.items():
        answers.setdefault(run_id, []).append(MeasuredAnswer(evaluation, epoch, of_answer))
    return answers
