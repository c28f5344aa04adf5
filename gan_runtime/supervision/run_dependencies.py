"""When this ends, start that: what a waiting run waits for, whether it may be asked for, and what is said of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gan_runtime.base.errors import RunStateError
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Condition
from gan_runtime.records.reasons import Cause, Reason, cause
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.states import CUT_SHORT, ENDED

UNREADABLE = "unreadable"  # instead of the state of a run that was set aside


@dataclass(frozen=True)
class After:
    """`run_id`: the run before it. `condition`: whether it must have finished, or only ended: finished, stopped, failed, lost or deleted."""

    run_id: str
    condition: Condition = "ended"

    def cause(self, status: str | None) -> Cause | None:
        """Why the run still waits; None when it need not. `status`: of the run before it, None when it is deleted, UNREADABLE when nobody
        knows."""
        must_finish, is_over = self.condition == "finished", status in (*ENDED, None)
        if status == UNREADABLE:
            waits = (
                Reason.WAITS_FOR_FINISH_OF_UNREADABLE if must_finish else Reason.WAITS_FOR_END_OF_UNREADABLE
            )
        elif not is_over:
            waits = Reason.WAITS_FOR_FINISH if must_finish else Reason.WAITS_FOR_END
        elif not must_finish or status == "finished":
            return None
        elif status is None:
            waits = Reason.WAITS_FOR_FINISH_OF_DELETED
        else:
            return cause(Reason.WAITS_FOR_FINISH_OF_CUT_SHORT, run=self.run_id, status=status)
        return cause(waits, run=self.run_id)


def check(home: Home, waiting: Collection[str], after: After) -> None:
    """`waiting`: the runs that are to wait.

    Raises:
        UnknownRunError: there is no run to wait for.
        RunStateError: it could never start.
    """
    state = latest_status(home.run_dir(after.run_id))
    if after.condition == "finished" and state.status in CUT_SHORT:
        raise RunStateError(
            f"run {after.run_id} is {state.status} and does not finish as it is: resume it first, or start after it however it ends."
        )
    known, seen = after.run_id, set()
    while known not in waiting:
        seen.add(known)
        if state.status != "queued" or not state.after or state.after in seen:
            return
        known = state.after
        if not (home.runs / known).is_dir():
            return
        state = latest_status(home.run_dir(known))
    raise RunStateError(
        f"run {known} cannot wait for itself."
        if known == after.run_id
        else f"run {after.run_id} waits for run {known} already: neither of the two would ever start."
    )
