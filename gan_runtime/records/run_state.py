"""The state of a run, read from its journals without any store."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from gan_runtime.base.errors import JournalError, RunStateError
from gan_runtime.records import journal
from gan_runtime.records.journal import Standing, StatusChange
from gan_runtime.records.run_folder import RunDir


def latest_status(run: RunDir) -> StatusChange:
    """The newest state of a run.

    Raises:
        RunStateError: no line of them says in what state it is.
    """
    newest = max(_changes(run), key=lambda item: item[0], default=None)
    if newest is None:
        raise RunStateError(
            f"run {run.run_id} cannot be read: no line of its journals says in what state it is."
        )
    return newest[1]


def _changes(run: RunDir) -> Iterator[tuple[Standing, StatusChange]]:
    """Of a journal that cannot be read to its end, what is before that: a run that is set aside for it can be stopped all the same."""
    for path in run.journals():
        with contextlib.suppress(JournalError):
            for place, record in journal.naming(path, b'"status"'):
                if isinstance(record, StatusChange):
                    yield journal.standing(record, path.name, place), record


def steps_per_epoch(run: RunDir) -> int:
    """As the newest plan in its journal says; 1 where it has none."""
    path = run.trainer_journal()
    named = journal.naming(path, b'"plan"') if path.exists() else ()
    plans = [record for _, record in named if isinstance(record, journal.Plan)]
    return max(1, plans[-1].steps_per_epoch) if plans else 1
