"""Lost runs that go on by themselves, where their options ask for it: at most three times, after growing pauses.

What kills a run once, such as a restart of the machine, is no reason to wait for a person; what kills it again and again is.
"""

from __future__ import annotations

import time

from gan_runtime.base.deadlines import Patience
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records import journal
from gan_runtime.records.actors import operator
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Event, StatusChange
from gan_runtime.records.reasons import Reason
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.store import Store
from gan_runtime.supervision import next_attempt, requeue

PAUSES_SECONDS = (10.0, 60.0, 300.0)  # before the first, second and third time
ASKER = operator("automatic resume")
TOPIC = "automatic_resume"


class Revival:
    """Called by the supervisor. What was resumed before stands in the runs' journals, so the next owner goes on counting."""

    def __init__(self, home: Home, store: Store, clock: Clock = time.monotonic) -> None:
        self._home, self._store, self._patience = home, store, Patience(clock)
        self._lost: list[tuple[RunDir, int]] = []
        self._given_up: set[tuple[str, int]] = set()  # run and attempt that do not go on by themselves

    def look(self) -> None:
        """Which lost runs wait for it; to be asked again after news."""
        rows = self._store.rows(
            """
            SELECT run_id, attempt FROM ingest.newest JOIN ingest.created USING (run_id)
            WHERE status = 'lost' AND (spec->>'resume_lost' = 'yes' OR (spec->>'still_action' = 'restart' AND code = ?))
            """,
            [Reason.STALLED.value],
        )
        self._lost = [(RunDir(self._home.runs / run_id), attempt) for run_id, attempt in rows]

    def will_resume(self, run_id: str) -> bool:
        """Whether a lost run waits for its pause to be over."""
        return any(
            run.run_id == run_id and (run_id, attempt) not in self._given_up for run, attempt in self._lost
        )

    def tick(self) -> bool:
        """Resumes those whose pause is over; returns whether a journal has news."""
        acted = False
        for run, attempt in list(self._lost):
            times = resumed(run)
            waited = self._patience.seconds("lost", run.run_id, attempt)
            if times == len(PAUSES_SECONDS) or waited >= PAUSES_SECONDS[times]:
                self._lost.remove((run, attempt))
                acted |= self._resume(run, attempt, times)
        return acted

    def _resume(self, run: RunDir, attempt: int, times: int) -> bool:
        """Or says, once, why it does not."""
        refusal = (
            f"It was resumed {times} times by itself and is lost again: look at its log before you resume it."
        )
        if times < len(PAUSES_SECONDS):
            try:
                next_attempt.queue(self._home, run, {}, ASKER.name)
            except GanRuntimeError as error:
                refusal = f"It cannot go on by itself: {error}"
            else:
                return True
        is_news = (run.run_id, attempt) not in self._given_up
        self._given_up.add((run.run_id, attempt))
        return _tell(run, attempt, refusal) or is_news


def resumed(run: RunDir) -> int:
    """How often it went on by itself since a person last asked for it."""
    times = 0
    for record in journal.read_all(run.supervisor_journal):
        if (
            isinstance(record, StatusChange)
            and record.status == "queued"
            and record.asker != requeue.ASKER.name
        ):
            times = times + 1 if record.asker == ASKER.name else 0
    return times


def _tell(run: RunDir, attempt: int, message: str) -> bool:
    known = journal.read_all(run.supervisor_journal)
    if any(
        isinstance(record, Event) and (record.attempt, record.topic) == (attempt, TOPIC) for record in known
    ):
        return False
    journal.append(run.supervisor_journal, attempt, Event(level="warning", topic=TOPIC, message=message))
    return True
