"""Studies: how far they are, and what their runs have measured."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from gan_runtime.records.states import ENDED
from gan_runtime.store.queries.metrics import columns_of, declared_of, names_of
from gan_runtime.store.queries.run_rows import RunRow, runs
from gan_runtime.store.queries.speed import progress
from gan_runtime.store.store import Store

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class StudyRow:
    """One study.

    `question`: a key of studies/questions.py; `runs` of which so many are finished, waiting and
    training.
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
        """Some of its runs wait or train."""
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
    """Every study that has a run, newest first."""
    return [
        StudyRow(*row)
        for row in store.rows(f"SELECT {_STUDY_COLUMNS} FROM studies ORDER BY created_at DESC")
    ]


def study_runs(store: Store, study_id: str) -> list[RunRow]:
    """Its runs in the order in which they are to train: all variants of the first repeat,
    then of the second.
    """
    return sorted(
        (row for row in runs(store) if row.study_id == study_id), key=lambda row: row.created_at
    )


def study_progress(store: Store, study_id: str) -> StudyProgress:
    """How far a study is.

    What is left of a run is its own estimate while it trains. A waiting run is thought to take as
    long as the finished ones of its variant did, or else per image as long as all finished ones
    did.
    """
    rows = study_runs(store, study_id)
    taken = {row.run_id: _seconds(row) for row in rows if row.status == "finished"}
    rates = [seconds / row.epochs for row in rows if (seconds := taken.get(row.run_id))]
    done, left, known = 0.0, 0.0, True
    for row in rows:
        if row.status in ENDED:
            done += 1.0
            continue
        now = progress(store, row.run_id)
        done += now.step / now.last_step if now.last_step else 0.0
        alike = [
            taken[other.run_id]
            for other in rows
            if other.variant == row.variant and other.run_id in taken
        ]
        guess = alike[-1] if alike else sum(rates) / len(rates) * row.epochs if rates else None
        own = now.seconds_left if now.seconds_left is not None else guess
        known, left = known and own is not None, left + (own or 0.0)
    return StudyProgress(done / len(rows) if rows else 0.0, left if known else None)


def _seconds(row: RunRow) -> float:
    """From the start of a finished run's first trainer to its end."""
    return (
        (row.finished_at - row.started_at).total_seconds()
        if row.finished_at and row.started_at
        else 0.0
    )


def study_results(store: Store, study_id: str) -> pd.DataFrame:
    """One row a run of a study, in the order of variants and repeats.

    Columns: run_id, workload, variant, variant_index, repeat, status, color, epochs (as planned),
    seconds (of training), epoch_seconds (median of the epochs after the first of each attempt,
    which holds the compiling), speed_up (epoch_seconds of the first variant in the same repeat,
    over its own), images_per_s (as epoch_seconds), steady_step, trace, compile, first_call
    (seconds, newest attempt), memory_bytes (highest), one of each loss, and of each number with a
    better way, that the runs' workloads declare (its name; mean over the last epoch that has it),
    spread_ratio (spread of generated images over that of real ones after the last epoch,
    docs/metrics.md). What was not measured is NULL.
    """
    members = store.rows(
        "SELECT run_id FROM ingest.created WHERE study->>'study_id' = ?", [study_id]
    )
    known = declared_of(store, [run_id for (run_id,) in members])
    return store.frame(
        f"""
        WITH chosen AS (
            SELECT run_id, study->>'variant' AS variant, CAST(study->>'variant_index' AS INTEGER)
                AS variant_index,
                   CAST(study->>'repeat' AS INTEGER) AS repeat
            FROM ingest.created WHERE study->>'study_id' = $study
        ), later AS (
            SELECT * FROM epochs SEMI JOIN chosen USING (run_id) QUALIFY epoch > min(epoch) OVER
                (PARTITION BY run_id, attempt)
        ), speed AS (
            SELECT run_id, median(seconds) AS epoch_seconds, median(images_per_s) AS images_per_s
                FROM later GROUP BY run_id
        ), last AS (
            SELECT run_id, max(epoch) AS epoch, max(wall_s) AS seconds FROM ingest.last_scalars
                SEMI JOIN chosen USING (run_id) GROUP BY run_id
        ), newest AS (
            SELECT run_id, metric, max(epoch) AS epoch FROM numbers SEMI JOIN chosen USING (run_id)
                GROUP BY ALL
        ), ends AS (
            SELECT run_id{columns_of(known.compared, "avg(value)")}
            FROM numbers JOIN newest USING (run_id, metric, epoch) GROUP BY run_id
        ), spreads AS (
            SELECT run_id, avg(value) FILTER (role = 'spread_of_generated')
                           / nullif(avg(value) FILTER (role = 'spread_of_real'), 0) AS spread_ratio
            FROM scalars JOIN last USING (run_id, epoch) JOIN ingest.roles USING (run_id, metric)
                GROUP BY run_id
        ), times AS (
            SELECT run_id, arg_max(seconds, attempt) FILTER (phase = 'steady_step') AS steady_step,
                   arg_max(seconds, attempt) FILTER (phase = 'trace') AS trace,
                   arg_max(seconds, attempt) FILTER (phase = 'compile') AS compile,
                   arg_max(seconds, attempt) FILTER (phase = 'first_call') AS first_call
            FROM phases SEMI JOIN chosen USING (run_id) GROUP BY run_id
        ), peaks AS (SELECT run_id, max(process_peak_bytes) AS memory_bytes FROM memory SEMI JOIN
            chosen USING (run_id) GROUP BY run_id)
        SELECT run_id, r.workload, chosen.variant, variant_index, chosen.repeat, r.status, r.color,
            r.epochs, last.seconds, epoch_seconds,
               max(epoch_seconds) FILTER (variant_index = 0) OVER (PARTITION BY chosen.repeat) /
                   epoch_seconds AS speed_up, images_per_s,
               steady_step, trace, compile, first_call,
                   memory_bytes{names_of(known.compared, "ends")}, spread_ratio
        FROM chosen JOIN runs r USING (run_id) LEFT JOIN speed USING (run_id) LEFT JOIN last USING
            (run_id) LEFT JOIN ends USING (run_id) LEFT JOIN spreads USING (run_id)
             LEFT JOIN times USING (run_id) LEFT JOIN peaks USING (run_id)
        ORDER BY variant_index, chosen.repeat
        """,
        {"study": study_id},
    )
