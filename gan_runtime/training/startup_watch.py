"""Ends a trainer on a stop request before its first step: a stop need not wait for a compiler.

A compiler may hold the thread that would obey for minutes. Before the first step there is nothing
to save, so a thread of its own writes the last word and ends the process.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from gan_runtime.records import processes
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.records.states import Reason, cause

LOOK_SECONDS = 0.25


def end_process(code: int) -> NoReturn:
    """Ends this process at once: taking a framework down in order takes seconds, and its
    compiler cannot be interrupted.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    scratch = Path(tempfile.gettempdir())
    if scratch.name.startswith(processes.SCRATCH_PREFIX):
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(code)


class StartupWatch:
    """Looks from entering to `first_step`, or to the end of the training where that comes first.

    `end`: ends the process with a code.
    """

    def __init__(
        self,
        writer: JournalWriter,
        stop_requested: Callable[[], bool],
        end: Callable[[int], object] = end_process,
    ) -> None:
        self._writer, self._stop_requested, self._end = writer, stop_requested, end
        self._is_over, self._deciding = threading.Event(), threading.Lock()

    def __enter__(self) -> StartupWatch:
        threading.Thread(target=self._look, name="startup watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.first_step()

    def first_step(self) -> None:
        """From now on a stop saves what was trained.

        Does not return where the process is being ended.
        """
        with self._deciding:
            self._is_over.set()

    def _look(self) -> None:
        while not self._is_over.wait(LOOK_SECONDS):
            with self._deciding:
                if not self._is_over.is_set() and self._stop_requested():
                    last = StatusChange.of("stopped", cause(Reason.STOP_BEFORE_FIRST_STEP))
                    self._writer.write(last)
                    print(last.reason, flush=True)
                    self._end(0)
                    return
