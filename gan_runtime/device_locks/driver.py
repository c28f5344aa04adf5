"""What the driver says of the GPUs of this host. It is asked in the background: one that hangs keeps nobody waiting, least of all an owner
between two ticks."""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

PROGRAM = "nvidia-smi"
LOOK_SECONDS = 20.0  # a driver that wakes up takes some
AGAIN_SECONDS = 10.0  # from an answer that was none to the next question
SILENT_SECONDS = 3.0  # from then on it is told that it does not answer


@dataclass(frozen=True)
class Said:
    """`gpus`: a line for each, such as "0, GPU-5a6e…, NVIDIA H200"; `listed`: the same list with the MIG parts of each one below it."""

    gpus: str
    listed: str


NOTHING = Said("", "")  # there is no driver, or it cannot say


class Driver:
    """Of one process. Every method may be called from any thread. An answer is kept for good, a failure for a while."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._changed = clock, threading.Condition()
        self._said: Said | None = None  # None: it has never ended
        self._asked_s: float | None = None  # since when it is being asked
        self._failed_s = float("-inf")

    def said(self, patience_s: float = 0.0) -> Said | None:
        """None as long as it has neither answered nor failed. A question that is under way is waited for at most `patience_s` seconds."""
        if shutil.which(PROGRAM) is None:
            return NOTHING
        with self._changed:
            if (
                self._said in (None, NOTHING)
                and self._asked_s is None
                and self._clock() - self._failed_s >= AGAIN_SECONDS
            ):
                self._asked_s = self._clock()
                # A daemon, as a driver that hangs must not keep a process from ending.
                threading.Thread(target=self._ask, name="gpu-driver", daemon=True).start()
            self._changed.wait_for(lambda: self._asked_s is None, patience_s)
            return self._said

    @property
    def is_silent(self) -> bool:
        """Whether the first answer takes longer than is usual."""
        with self._changed:
            begin = self._asked_s
            return self._said is None and begin is not None and self._clock() - begin >= SILENT_SECONDS

    def _ask(self) -> None:
        try:
            said = _answer()
        except (OSError, subprocess.SubprocessError):
            said = NOTHING
        with self._changed:
            self._said, self._asked_s = said, None
            if said == NOTHING:
                self._failed_s = self._clock()
            self._changed.notify_all()


def _answer() -> Said:
    """Raises OSError, subprocess.SubprocessError."""
    gpus = _told("--query-gpu=index,uuid,name", "--format=csv,noheader")
    return Said(gpus, _told("--list-gpus")) if gpus else NOTHING


def _told(*words: str) -> str:
    command = [PROGRAM, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=LOOK_SECONDS, check=True).stdout


DRIVER = Driver()
