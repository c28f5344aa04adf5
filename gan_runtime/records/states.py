"""The states of a run, and how far each one is."""

from __future__ import annotations

from typing import Literal

Status = Literal["queued", "starting", "compiling", "running", "finished", "stopped", "failed", "lost"]
ACTIVE: tuple[Status, ...] = ("starting", "compiling", "running")
CUT_SHORT: tuple[Status, ...] = ("stopped", "failed", "lost")  # ended before their time, and may be resumed
ENDED: tuple[Status, ...] = ("finished", *CUT_SHORT)
# How far an attempt is. Clocks of several processes may disagree, but an attempt only ever goes on to a later stage.
STAGES: dict[Status, int] = {
    "queued": 0,
    "starting": 1,
    "compiling": 2,
    "running": 3,
    **dict.fromkeys(ENDED, 4),
}
