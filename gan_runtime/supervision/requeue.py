"""A run whose trainer never began waits again, in its old place: an owner was ended between its word that the trainer starts and the start."""

from __future__ import annotations

from gan_runtime.records import journal
from gan_runtime.records.actors import operator
from gan_runtime.records.reasons import Reason, cause
from gan_runtime.records.run_folder import RunDir

ASKER = operator("next owner")
MOST_TIMES = 3  # in a row: what ends each owner just there, such as too little memory, needs a person


def queue(run: RunDir, attempt: int) -> bool:
    """Notes it as the next attempt, since an attempt only goes on; False where it has come to that MOST_TIMES times in a row."""
    waits = [change for _, change in journal.statuses(run.supervisor_journal) if change.status == "queued"]
    newest = waits[-MOST_TIMES:]
    if not waits or (len(newest) == MOST_TIMES and all(wait.asker == ASKER.name for wait in newest)):
        return False
    again = waits[-1].because(cause(Reason.REQUEUED), asker=ASKER.name)
    journal.append(run.supervisor_journal, attempt + 1, again)
    return True
