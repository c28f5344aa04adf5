"""When this ends, start that: what a waiting run waits for, whether it may be asked for, and what is said of it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from gan_runtime.base.errors import RunStateError
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Condition
from gan_runtime.records.run_state import latest_status
from gan_runtime.records.states import CUT_SHORT, ENDED

BEGINS = "starts when run "  # every sentence of a run that waits for another
WAITS = "waiting for the accelerator"  # of one that waits for it no more
UNREADABLE = "unreadable"  # instead of the state of a run that was set aside


@dataclass(frozen=True)
class After:
    """`run_id`: the run before it. `condition`: whether it must have finished, or only ended: finished, stopped, failed, lost or deleted."""

    run_id: str
    condition: Condition = "ended"

    def reason(self, status: str | None) -> str:
        """Why the run still waits; empty when it need not. `status`: of the run before it, None when it is deleted, UNREADABLE when nobody
        knows."""
        if status == UNREADABLE:
            end = "ends" if self.condition == "ended" else "has finished"
            return f"{BEGINS}{self.run_id} {end}, but that one cannot be read: mend it, or let this one start without it"
        is_over = status in (*ENDED, None)
        if self.condition == "ended":
            return "" if is_over else f"{BEGINS}{self.run_id} ends, however it does"
        if status == "finished":
            return ""
        waits = f"{BEGINS}{self.run_id} has finished"
        if not is_over:
            return waits
        return (
            f"{waits}, but that one is {status or 'deleted'}: "
            f"{'resume it' if status else 'restore it'}, or let this one start without it"
        )


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
