"""The states of a run, how far each one is, and whose journal counts where several wrote down
the same stage of an attempt.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from gan_runtime.records.earlier_kinds import JOURNALS

if TYPE_CHECKING:
    from gan_runtime.records.kinds import StatusChange


Status = Literal[
    "queued", "starting", "compiling", "running", "finished", "stopped", "failed", "lost"
]
ACTIVE: tuple[Status, ...] = ("starting", "compiling", "running")
CUT_SHORT: tuple[Status, ...] = (
    "stopped",
    "failed",
    "lost",
)  # ended before their time, and may be resumed
ENDED: tuple[Status, ...] = ("finished", *CUT_SHORT)
# How far an attempt is. Clocks of several processes may disagree, but an attempt only ever goes on
# to a later stage.
STAGES: dict[Status, int] = {
    "queued": 0,
    "starting": 1,
    "compiling": 2,
    "running": 3,
    **dict.fromkeys(ENDED, 4),
}


# The owner, who only sees that a process is gone, comes after every worker, those after the first
# one, and all after the launcher, which has heard them out.
_LAUNCHER, _SUPERVISOR = "journal-launcher.jsonl", "journal-supervisor.jsonl"
EVALUATIONS = "journal-evaluations.jsonl"
ANSWERS_AFTER = 10**15  # beyond every place in another journal
_FIRST_WORKER = 10_000_000
_NAME = re.compile(
    rf"journal-(supervisor|launcher|evaluations|{'|'.join(JOURNALS)}|[0-9]{{1,6}})\.jsonl"
)


def is_journal(name: str) -> bool:
    """Whether a file of this name is a journal of a run."""
    return _NAME.fullmatch(name) is not None


def is_of_evaluations(name: str) -> bool:
    """Whether a journal holds answers of evaluations, or what earlier versions had in their
    place.
    """
    return is_journal(name) and rank(name) is None and name not in (_LAUNCHER, _SUPERVISOR)


def rank(name: str) -> int | None:
    """The worker whose journal this is; None for the other journals."""
    number = name.removeprefix("journal-").removesuffix(".jsonl")
    return int(number) if number.isdecimal() else None


def source(name: str) -> int:
    """The weight of what a journal says of the run's state; more counts more."""
    if name == _LAUNCHER:
        return _FIRST_WORKER + 1
    worker = rank(name)
    return 0 if worker is None else _FIRST_WORKER - worker


def answer_place(name: str, place: int) -> int:
    """The order of a run's answers, in which no clock has a part.

    Since there is a journal of all evaluations, what it says is newer.
    """
    return place + (ANSWERS_AFTER if name == EVALUATIONS else 0)


Standing = tuple[int, int, int, int]


def standing(change: StatusChange, journal_name: str, place: int) -> Standing:
    """The order of a run's states, in which no clock has a part: attempt, stage, whose word,
    place in the journal.
    """
    return (change.attempt, STAGES[change.status], source(journal_name), place)
