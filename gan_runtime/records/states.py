"""The states of a run: their causes, as a code for decisions, details and a sentence, and the time
that a state has lasted.
"""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

Status = Literal[
    "queued", "starting", "compiling", "running", "finished", "stopped", "failed", "lost"
]
ACTIVE: tuple[Status, ...] = ("starting", "compiling", "running")
CUT_SHORT: tuple[Status, ...] = ("stopped", "failed", "lost")  # can be resumed
ENDED: tuple[Status, ...] = ("finished", *CUT_SHORT)
# Clocks of several processes can disagree, but an attempt only advances to a later stage.
STAGES: dict[Status, int] = {
    "queued": 0,
    "starting": 1,
    "compiling": 2,
    "running": 3,
    **dict.fromkeys(ENDED, 4),
}
Standing = tuple[int, int, int, int]


class Reason(StrEnum):
    """The codes, grouped by the state that they explain."""

    # queued
    WAITS_FOR_DEVICE = "waits_for_device"
    DEVICES_TAKEN = "devices_taken"
    DEVICES_UNKNOWN = "devices_unknown"
    MOVED = "moved"
    WAITS_FOR_DATA = "waits_for_data"
    WAITS_FOR_END = "waits_for_end"
    WAITS_FOR_END_OF_UNREADABLE = "waits_for_end_of_unreadable"
    WAITS_FOR_FINISH = "waits_for_finish"
    WAITS_FOR_FINISH_OF_CUT_SHORT = "waits_for_finish_of_cut_short"
    WAITS_FOR_FINISH_OF_DELETED = "waits_for_finish_of_deleted"
    WAITS_FOR_FINISH_OF_UNREADABLE = "waits_for_finish_of_unreadable"
    RESUMED = "resumed"
    RESUMED_WAITS_FOR_DATA = "resumed_waits_for_data"
    REQUEUED = "requeued"
    SUBMITTING = "submitting"
    SUBMITTED = "submitted"
    TARGET_FULL = "target_full"
    WAITS_ON_TARGET = "waits_on_target"
    STARTED_AGAIN = "started_again"
    # starting, compiling, running
    STARTING = "starting"
    STARTED_ON_CLUSTER = "started_on_cluster"
    BUILDING = "building"
    TRAINING = "training"
    # finished
    EPOCH_DONE = "epoch_done"
    EPOCHS_DONE = "epochs_done"
    EPOCHS_DONE_BEFORE = "epochs_done_before"
    IMPORTED = "imported"
    # stopped
    TAKEN_FROM_QUEUE = "taken_from_queue"
    RESTORED_FROM_BIN = "restored_from_bin"
    STOP_BEFORE_FIRST_STEP = "stop_before_first_step"
    STOP_ON_REQUEST = "stop_on_request"
    STOP_WITH_OTHER_WORKER = "stop_with_other_worker"
    STOP_AT_TIME_LIMIT = "stop_at_time_limit"
    LOW_DISK = "low_disk"
    ALARM = "alarm"
    ENDED_UNSAVED = "ended_unsaved"
    JOB_CANCELLED = "job_cancelled"
    STOP_TOOK_TOO_LONG = "stop_took_too_long"
    # failed
    DATA_NOT_PREPARED = "data_not_prepared"
    NOT_FINITE = "not_finite"
    ALARM_AFTER_ROLL_BACKS = "alarm_after_roll_backs"
    REFUSED = "refused"
    CRASHED = "crashed"
    WORKERS_DISCONNECTED = "workers_disconnected"
    WORKER_EXITED = "worker_exited"
    TARGET_REFUSED = "target_refused"
    JOB_OUT_OF_MEMORY = "job_out_of_memory"
    JOB_FAILED = "job_failed"
    # lost
    NOT_STARTED = "not_started"
    STALLED = "stalled"
    TRAINER_EXITED = "trainer_exited"
    WORKER_KILLED = "worker_killed"
    TIME_LIMIT = "time_limit"
    JOB_ENDED = "job_ended"
    JOB_ABSENT = "job_absent"


WAITS_FOR_A_RUN = frozenset(
    {
        Reason.WAITS_FOR_END,
        Reason.WAITS_FOR_END_OF_UNREADABLE,
        Reason.WAITS_FOR_FINISH,
        Reason.WAITS_FOR_FINISH_OF_CUT_SHORT,
        Reason.WAITS_FOR_FINISH_OF_DELETED,
        Reason.WAITS_FOR_FINISH_OF_UNREADABLE,
    }
)
# Reasons of a queued run that waits for a device used by other runs of the home.
WAITS_IN_TURN = frozenset({Reason.WAITS_FOR_DEVICE, Reason.MOVED, Reason.RESUMED})

Detail = str | int | float

_RESUME = "resume continues from the last checkpoint"
_CONTINUES = "it continues from the last checkpoint"
_ALONE = "or start this run without waiting"
_DATA = "waiting for data set {data_set} ({percent}%)"
# TensorFlow drops a silent worker after 7 to 9 s (measured); JAX is set to 10 s.
_SILENCE = "about 10 s"
_SAVED = "after step {step:,} of {steps:,}; saved, can be resumed"
# A part in square brackets is left out if its detail is empty. A sentence that is one detail comes
# from an error.
SENTENCES: dict[Reason, str] = {
    Reason.WAITS_FOR_DEVICE: "waiting for the accelerator",
    Reason.DEVICES_TAKEN: "waiting for {devices}",
    Reason.DEVICES_UNKNOWN: "{message}",
    Reason.MOVED: "moved in the queue",
    Reason.WAITS_FOR_DATA: _DATA,
    Reason.WAITS_FOR_END: "starts when run {run} ends, in any state",
    Reason.WAITS_FOR_END_OF_UNREADABLE: (
        f"starts when run {{run}} ends, but that run cannot be read: repair it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH: "starts when run {run} finishes",
    Reason.WAITS_FOR_FINISH_OF_CUT_SHORT: (
        f"starts when run {{run}} finishes, but that run is {{status}}: resume it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH_OF_DELETED: (
        f"starts when run {{run}} finishes, but that run is deleted: restore it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH_OF_UNREADABLE: (
        f"starts when run {{run}} finishes, but that run cannot be read: repair it, {_ALONE}"
    ),
    Reason.RESUMED: "resumed[ with {changes}]: waiting for the accelerator",
    Reason.RESUMED_WAITS_FOR_DATA: f"resumed[ with {{changes}}]: {_DATA}",
    Reason.REQUEUED: (
        "queued again: the owner exited before it started the trainer, so nothing has run"
    ),
    Reason.SUBMITTING: "submitting a job to {target}",
    Reason.SUBMITTED: "submitted to {target}[ as job {job}]",
    Reason.TARGET_FULL: "waiting: {target} has as many jobs of this home as allowed ({jobs})",
    Reason.WAITS_ON_TARGET: "job {job} on {target} {why}",
    Reason.STARTED_AGAIN: f"{{target}} starts its job again; {_CONTINUES}",
    Reason.STARTING: "starting a trainer on {devices}",
    Reason.STARTED_ON_CLUSTER: "started on a cluster[ of {workers} workers]",
    Reason.BUILDING: "building the networks and tracing the training step",
    Reason.TRAINING: "training up to step {steps:,}",
    Reason.EPOCH_DONE: "the only epoch is done",
    Reason.EPOCHS_DONE: "all {epochs} epochs done",
    Reason.EPOCHS_DONE_BEFORE: "all {epochs} epochs were already done",
    Reason.IMPORTED: "imported from event files of TensorBoard",
    Reason.TAKEN_FROM_QUEUE: "removed from the queue before it started",
    Reason.RESTORED_FROM_BIN: "removed from the queue by its deletion; restored since",
    Reason.STOP_BEFORE_FIRST_STEP: "stopped on request before the first step of this attempt",
    Reason.STOP_ON_REQUEST: f"stopped on request {_SAVED}",
    Reason.STOP_WITH_OTHER_WORKER: f"stopped because another worker ended {_SAVED}",
    Reason.STOP_AT_TIME_LIMIT: f"stopped shortly before the time limit of its job {_SAVED}",
    Reason.LOW_DISK: (
        f"stopped because the disk is nearly full {_SAVED}. The disk of {{folder}} has"
        " {free_mb:,} MB left of the {least_mb:,} MB that it needs: free some space first"
    ),
    Reason.ALARM: "stopped by an alarm and saved, can be resumed. {message}",
    Reason.ENDED_UNSAVED: f"the trainer exited without saving[ ({{how}})]; {_RESUME}",
    Reason.STOP_TOOK_TOO_LONG: (
        "the trainer did not stop within {seconds} s and was killed without saving[ ({how})];"
        f" {_RESUME}"
    ),
    Reason.JOB_CANCELLED: f"job {{job}} was cancelled on {{target}} without saving; {_RESUME}",
    Reason.TARGET_REFUSED: "{target} refused the job: {message}",
    Reason.JOB_OUT_OF_MEMORY: (
        "job {job} on {target} ran out of memory: ask for more, or use a smaller batch"
    ),
    Reason.JOB_FAILED: "job {job} on {target} ended as {state}; check the log",
    Reason.TIME_LIMIT: (
        f"job {{job}} on {{target}} reached its time limit before it saved; {_RESUME}"
    ),
    Reason.JOB_ABSENT: f"job {{job}} is no longer listed on {{target}}; {_RESUME}",
    Reason.JOB_ENDED: f"job {{job}} on {{target}} ended as {{state}}; {_RESUME}",
    Reason.DATA_NOT_PREPARED: "data set {data_set} was not prepared ({state}): {message}",
    Reason.NOT_FINITE: "{message}",
    Reason.ALARM_AFTER_ROLL_BACKS: "{message}",
    Reason.REFUSED: "{message}",
    Reason.CRASHED: "[{worker}: ]{error}: {message} (the log has the details)",
    Reason.WORKERS_DISCONNECTED: (
        "[{worker}: ]lost the connection to {others} ({error}), which exited, is unreachable, or"
        f" stalled for {_SILENCE}; {_RESUME}"
    ),
    Reason.WORKER_EXITED: "{worker} exited unexpectedly with code {exit_code}; check the log",
    Reason.NOT_STARTED: "the trainer could not start ({message}): fix this, then resume the run",
    Reason.STALLED: f"the trainer was killed because it stalled[ ({{how}})]; {_RESUME}",
    Reason.TRAINER_EXITED: f"the trainer exited unexpectedly[ ({{how}})]; {_RESUME}",
    Reason.WORKER_KILLED: (
        "{worker} was killed by signal {signal} ({name}), so the other workers were ended;"
        f" {_RESUME}"
    ),
}

# Sentences of version 0.2.0 that have changed since; old journals contain them.
_GOES_ON = "resume goes on from its last checkpoint"
_WITHOUT = "or let this one start without it"
_EARLIER: tuple[tuple[Reason, str], ...] = (
    (Reason.WAITS_FOR_DATA, "waits for data set {data_set} ({percent} %)"),
    (Reason.WAITS_FOR_END, "starts when run {run} ends, however it does"),
    (
        Reason.WAITS_FOR_END_OF_UNREADABLE,
        f"starts when run {{run}} ends, but that one cannot be read: mend it, {_WITHOUT}",
    ),
    (Reason.WAITS_FOR_FINISH, "starts when run {run} has finished"),
    (
        Reason.WAITS_FOR_FINISH_OF_CUT_SHORT,
        f"starts when run {{run}} has finished, but that one is {{status}}: resume it, {_WITHOUT}",
    ),
    (
        Reason.WAITS_FOR_FINISH_OF_DELETED,
        f"starts when run {{run}} has finished, but that one is deleted: restore it, {_WITHOUT}",
    ),
    (
        Reason.WAITS_FOR_FINISH_OF_UNREADABLE,
        f"starts when run {{run}} has finished, but that one cannot be read: mend it, {_WITHOUT}",
    ),
    (
        Reason.RESUMED_WAITS_FOR_DATA,
        "resumed[ with {changes}]: waits for data set {data_set} ({percent} %)",
    ),
    (
        Reason.REQUEUED,
        "queued again: whoever was to start its trainer was ended before that, and nothing of it"
        " has run",
    ),
    (Reason.TRAINING, "training towards step {steps}"),
    (Reason.EPOCH_DONE, "its one epoch is done"),
    (Reason.EPOCHS_DONE_BEFORE, "all {epochs} epochs were done already"),
    (Reason.TAKEN_FROM_QUEUE, "taken from the queue before it started"),
    (
        Reason.RESTORED_FROM_BIN,
        "taken from the queue when it was deleted; restored since",
    ),
    (Reason.STOP_WITH_OTHER_WORKER, f"stopped as another worker had to end {_SAVED}"),
    (
        Reason.LOW_DISK,
        "stopped because the disk of {folder} has {free_mb:,} MB left, less than"
        f" {{least_mb:,}} MB, {_SAVED} once there is space on it",
    ),
    (Reason.ENDED_UNSAVED, f"the trainer ended without saving[ ({{how}})]; {_GOES_ON}"),
    (
        Reason.STOP_TOOK_TOO_LONG,
        "the trainer ended without saving (it did not end within {seconds} s and was killed[,"
        f" {{how}}]); {_GOES_ON}",
    ),
    (Reason.STALLED, f"the trainer was killed (it stood still[, {{how}}]); {_GOES_ON}"),
    (Reason.TRAINER_EXITED, f"the trainer process is gone without a word[ ({{how}})]; {_GOES_ON}"),
    (
        Reason.NOT_STARTED,
        "its trainer could not be started ({message}): resume it once that is mended",
    ),
)


@dataclass(frozen=True)
class Cause:
    """Why a run is in a state: a code, and the details for its sentence."""

    code: Reason
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The sentence, without a capital letter at the start and a period at the end.

        Raises ValueError if a detail is missing or has another type.
        """
        try:
            return _template(self).format_map(self.details)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the details of {self.code.value} are not complete ({error})"
            ) from None


def cause(code: Reason, **details: Detail) -> Cause:
    """`cause(Reason.TRAINING, steps=938)`."""
    return Cause(code, details)


def cause_of(sentence: str) -> Cause | None:
    """The code and details of a sentence in a journal of version 0.2.0, which wrote no codes.

    None for the message of an error.
    """
    for beginning, code, pattern in _patterns():
        if sentence.startswith(beginning) and (match := pattern.fullmatch(sentence)):
            return Cause(
                code, {name: _detail(text or "") for name, text in match.groupdict().items()}
            )
    return None


# Later than version 0.2.0, so journals have these sentences with their codes.
WITH_CODE = frozenset(
    {
        *(Reason.SUBMITTING, Reason.SUBMITTED, Reason.TARGET_FULL, Reason.WAITS_ON_TARGET),
        *(Reason.STARTED_AGAIN, Reason.STOP_AT_TIME_LIMIT, Reason.JOB_CANCELLED, Reason.TIME_LIMIT),
        *(Reason.TARGET_REFUSED, Reason.JOB_OUT_OF_MEMORY, Reason.JOB_FAILED, Reason.JOB_ENDED),
        Reason.JOB_ABSENT,
    }
)
_OPTIONAL = re.compile(r"\[([^{\]]*\{(\w+)\}[^\]]*)\]")
_DETAIL = re.compile(r"\{(\w+)[^}]*\}")
MOST_DIGITS = 20  # of a number; Python refuses to read thousands
_NUMBERS = frozenset(
    ("epochs", "free_mb", "least_mb", "percent", "seconds", "step", "steps", "workers")
)


def _template(of: Cause) -> str:
    return _OPTIONAL.sub(
        lambda part: part[1] if of.details.get(part[2]) else "", SENTENCES[of.code]
    )


def _detail(text: str) -> Detail:
    """The number in a text, with or without commas; other texts unchanged."""
    digits = text.replace(",", "")
    if len(digits) > MOST_DIGITS:
        return text
    is_number = digits.isdecimal() and text in (f"{int(digits)}", f"{int(digits):,}")
    return int(digits) if is_number else text


@functools.cache
def _patterns() -> list[tuple[str, Reason, re.Pattern[str]]]:
    """The literal prefix, code and pattern of each template, the longest literal text first."""
    templates = [
        (code, text)
        for code, text in (*SENTENCES.items(), *_EARLIER)
        if not text.startswith(("{", "[")) and code not in WITH_CODE
    ]
    templates.sort(key=lambda entry: -len(_DETAIL.sub("", entry[1])))
    return [
        (re.split(r"[\[{]", text)[0], code, re.compile(_pattern(text), re.DOTALL))
        for code, text in templates
    ]


def _detail_pattern(of: re.Match[str]) -> str:
    """Several details of any text would take a power of the length of a forged sentence."""
    return rf"(?P<{of[1]}>[\d,]+)" if of[1] in _NUMBERS else rf"(?P<{of[1]}>.+)"


def _pattern(template: str) -> str:
    parts = re.split(r"(\[[^\]]*\]|\{[^}]*\})", template)
    return "".join(
        (
            f"(?:{_pattern(part[1:-1])})?"
            if part.startswith("[")
            else _DETAIL.sub(_detail_pattern, part)
            if part.startswith("{")
            else re.escape(part)
        )
        for part in parts
    )


# ---- duration of a state -------------------------------------------------------------------------


class StateTimer:
    """Measures by a monotonic clock how long states of runs have lasted. Times of files and records
    come from other clocks, which can be an hour off.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[tuple[str, str], tuple[Any, float]] = {}

    def seconds(self, state: str, run_id: str, value: Any) -> float:
        """Seconds since the first of the latest calls with this `value`; 0 if the value has
        changed.
        """
        now = self._clock()
        previous, since = self._since.setdefault((state, run_id), (value, now))
        if previous != value:
            self._since[(state, run_id)] = (value, now)
            return 0.0
        return now - since
