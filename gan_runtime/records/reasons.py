"""Why a run is in its state: a code for decisions, details for the sentence, and the one place that
makes sentences of them.

Nothing reads a sentence to decide something. Journals of 0.2.0 hold sentences only: `cause_of`
reads the code from them, for
`StatusChange` alone.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Reason(StrEnum):
    """The codes, by the state that they explain."""

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
    # starting, compiling, running
    STARTING = "starting"
    STARTED_ON_CLUSTER = "started_on_cluster"
    BUILDING = "building"
    TRAINING = "training"
    # finished
    EPOCH_DONE = "epoch_done"
    EPOCHS_DONE = "epochs_done"
    EPOCHS_DONE_BEFORE = "epochs_done_before"
    # stopped
    TAKEN_FROM_QUEUE = "taken_from_queue"
    RESTORED_FROM_BIN = "restored_from_bin"
    STOP_BEFORE_FIRST_STEP = "stop_before_first_step"
    STOP_ON_REQUEST = "stop_on_request"
    STOP_WITH_OTHER_WORKER = "stop_with_other_worker"
    LOW_DISK = "low_disk"
    ALARM = "alarm"
    ENDED_UNSAVED = "ended_unsaved"
    STOP_TOOK_TOO_LONG = "stop_took_too_long"
    # failed
    DATA_NOT_PREPARED = "data_not_prepared"
    NOT_FINITE = "not_finite"
    ALARM_AFTER_ROLL_BACKS = "alarm_after_roll_backs"
    REFUSED = "refused"
    CRASHED = "crashed"
    WORKERS_DISCONNECTED = "workers_disconnected"
    WORKER_EXITED = "worker_exited"
    # lost
    NOT_STARTED = "not_started"
    STALLED = "stalled"
    TRAINER_EXITED = "trainer_exited"
    WORKER_KILLED = "worker_killed"


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
# In the queue for a device that other runs of the home have.
WAITS_IN_TURN = frozenset({Reason.WAITS_FOR_DEVICE, Reason.MOVED, Reason.RESUMED})

Detail = str | int | float

_RESUME = "resume goes on from its last checkpoint"
_ALONE = "or let this one start without it"
_DATA = "waits for data set {data_set} ({percent} %)"
# Measured: TensorFlow takes 7 to 9 s, JAX is given 10.
_SILENCE = "the about 10 s after which a silent worker is given up"
_SAVED = "after step {step} of {steps}; saved, can be resumed"
# Square brackets hold what is left out where its detail is empty. A sentence that is one detail
# alone comes from an error.
SENTENCES: dict[Reason, str] = {
    Reason.WAITS_FOR_DEVICE: "waiting for the accelerator",
    Reason.DEVICES_TAKEN: "waiting for {devices}",
    Reason.DEVICES_UNKNOWN: "{message}",
    Reason.MOVED: "moved in the queue",
    Reason.WAITS_FOR_DATA: _DATA,
    Reason.WAITS_FOR_END: "starts when run {run} ends, however it does",
    Reason.WAITS_FOR_END_OF_UNREADABLE: (
        f"starts when run {{run}} ends, but that one cannot be read: mend it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH: "starts when run {run} has finished",
    Reason.WAITS_FOR_FINISH_OF_CUT_SHORT: (
        f"starts when run {{run}} has finished, but that one is {{status}}: resume it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH_OF_DELETED: (
        f"starts when run {{run}} has finished, but that one is deleted: restore it, {_ALONE}"
    ),
    Reason.WAITS_FOR_FINISH_OF_UNREADABLE: (
        f"starts when run {{run}} has finished, but that one cannot be read: mend it, {_ALONE}"
    ),
    Reason.RESUMED: "resumed[ with {changes}]: waiting for the accelerator",
    Reason.RESUMED_WAITS_FOR_DATA: f"resumed[ with {{changes}}]: {_DATA}",
    Reason.REQUEUED: (
        "queued again: the owner ended before it had started the trainer, and nothing of it has run"
    ),
    Reason.STARTING: "starting a trainer on {devices}",
    Reason.STARTED_ON_CLUSTER: "started on a cluster of {workers} workers",
    Reason.BUILDING: "building the networks and tracing the training step",
    Reason.TRAINING: "training towards step {steps}",
    Reason.EPOCH_DONE: "its one epoch is done",
    Reason.EPOCHS_DONE: "all {epochs} epochs done",
    Reason.EPOCHS_DONE_BEFORE: "all {epochs} epochs were done already",
    Reason.TAKEN_FROM_QUEUE: "taken from the queue before it started",
    Reason.RESTORED_FROM_BIN: "taken from the queue when it was deleted; restored since",
    Reason.STOP_BEFORE_FIRST_STEP: "stopped on request before the first step of this attempt",
    Reason.STOP_ON_REQUEST: f"stopped on request {_SAVED}",
    Reason.STOP_WITH_OTHER_WORKER: f"stopped as another worker had to end {_SAVED}",
    Reason.LOW_DISK: (
        "stopped because the disk of {folder} has {free_mb:,} MB left, less than"
        f" {{least_mb:,}} MB, {_SAVED} once there is space on it"
    ),
    Reason.ALARM: "stopped by an alarm and saved, can be resumed. {message}",
    Reason.ENDED_UNSAVED: f"the trainer ended without saving[ ({{how}})]; {_RESUME}",
    Reason.STOP_TOOK_TOO_LONG: (
        "the trainer ended without saving (it did not end within {seconds} s and was killed[,"
        f" {{how}}]); {_RESUME}"
    ),
    Reason.DATA_NOT_PREPARED: "data set {data_set} was not prepared ({state}): {message}",
    Reason.NOT_FINITE: "{message}",
    Reason.ALARM_AFTER_ROLL_BACKS: "{message}",
    Reason.REFUSED: "{message}",
    Reason.CRASHED: "[{worker}: ]{error}: {message} (the log has the details)",
    Reason.WORKERS_DISCONNECTED: (
        "[{worker}: ]the exchange with {others} broke off ({error}): it has ended, cannot be"
        f" reached, or stood still for longer than {_SILENCE}; resume goes on from the last"
        " checkpoint"
    ),
    Reason.WORKER_EXITED: "{worker} exited unexpectedly with code {exit_code}; the log may say why",
    Reason.NOT_STARTED: (
        "its trainer could not be started ({message}): resume it once that is fixed"
    ),
    Reason.STALLED: f"the trainer was killed because it stalled[ ({{how}})]; {_RESUME}",
    Reason.TRAINER_EXITED: f"the trainer exited unexpectedly[ ({{how}})]; {_RESUME}",
    Reason.WORKER_KILLED: (
        "{worker} was killed by signal {signal} ({name}), and the others were ended with it;"
        f" {_RESUME}"
    ),
}

# As journals of earlier versions have it, where the words have changed since.
_EARLIER: tuple[tuple[Reason, str], ...] = (
    (
        Reason.REQUEUED,
        (
            "queued again: whoever was to start its trainer was ended before that, and nothing of"
            " it has run"
        ),
    ),
    (Reason.STALLED, f"the trainer was killed (it stood still[, {{how}}]); {_RESUME}"),
    (Reason.TRAINER_EXITED, f"the trainer process is gone without a word[ ({{how}})]; {_RESUME}"),
    (
        Reason.NOT_STARTED,
        "its trainer could not be started ({message}): resume it once that is mended",
    ),
)


@dataclass(frozen=True)
class Cause:
    """A code with what its sentence needs."""

    code: Reason
    details: Mapping[str, Detail] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """In words, as a part of a sentence: no capital at its beginning, no period at its end.

        Raises:
            ValueError: a detail is missing, or of another kind.
        """
        try:
            return _template(self).format_map(self.details)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"the details of {self.code.value} are not complete ({error})"
            ) from None


def cause(code: Reason, **details: Detail) -> Cause:
    """Such as `cause(Reason.TRAINING, steps=938)`."""
    return Cause(code, details)


def cause_of(sentence: str) -> Cause | None:
    """What a sentence of a journal without codes means; None for one that comes from an error."""
    for beginning, code, pattern in _patterns():
        if sentence.startswith(beginning) and (match := pattern.fullmatch(sentence)):
            return Cause(
                code, {name: _detail(text or "") for name, text in match.groupdict().items()}
            )
    return None


_OPTIONAL = re.compile(r"\[([^{\]]*\{(\w+)\}[^\]]*)\]")
_DETAIL = re.compile(r"\{(\w+)[^}]*\}")


def _template(of: Cause) -> str:
    return _OPTIONAL.sub(
        lambda part: part[1] if of.details.get(part[2]) else "", SENTENCES[of.code]
    )


def _detail(text: str) -> Detail:
    """Numbers as they were, with commas or without."""
    digits = text.replace(",", "")
    is_number = digits.isdecimal() and text in (f"{int(digits)}", f"{int(digits):,}")
    return int(digits) if is_number else text


@functools.cache
def _patterns() -> list[tuple[str, Reason, re.Pattern[str]]]:
    """Each template as a pattern, with the text that it begins with.

    Those with the most text of their own come first.
    """
    templates = [
        (code, text)
        for code, text in (*SENTENCES.items(), *_EARLIER)
        if not text.startswith(("{", "["))
    ]
    templates.sort(key=lambda entry: -len(_DETAIL.sub("", entry[1])))
    return [
        (re.split(r"[\[{]", text)[0], code, re.compile(_pattern(text), re.DOTALL))
        for code, text in templates
    ]


def _pattern(template: str) -> str:
    parts = re.split(r"(\[[^\]]*\]|\{[^}]*\})", template)
    return "".join(
        (
            f"(?:{_pattern(part[1:-1])})?"
            if part.startswith("[")
            else _DETAIL.sub(r"(?P<\1>.+)", part)
            if part.startswith("{")
            else re.escape(part)
        )
        for part in parts
    )
