"""The state of a run, read from its journals without any store."""

from __future__ import annotations

from gan_runtime.errors import RunStateError
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.rundir import RunDir


def latest_status(run: RunDir) -> StatusChange:
    """The newest state of a run.

    Raises:
        RunStateError: no line of them says in what state it is.
    """
    changes = [
        (journal.standing(change, path.name, place), change)
        for path in run.journals()
        for place, change in journal.statuses(path)
    ]
    if not changes:
        raise RunStateError(
            f"run {run.run_id} cannot be read: no line of its journals says in what state it is."
        )
    return max(changes, key=lambda item: item[0])[1]


def steps_per_epoch(run: RunDir) -> int:
    """As the newest plan in its journal says; 1 where it has none."""
    plans = [record for record in journal.read_all(run.trainer_journal()) if isinstance(record, journal.Plan)]
    return max(1, plans[-1].steps_per_epoch) if plans else 1
