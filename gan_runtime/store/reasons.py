"""Why a run is set aside, in words."""

from __future__ import annotations

import os

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.store.store import may_be_of_one_run


def unreadable(run: RunDir, stamps: dict[str, Stamp]) -> str | None:
    """Why nothing of the run can be stored; empty when it can. None: it has no whole line yet."""
    supervisor = run.supervisor_journal
    if not stamps:
        return None
    if supervisor.name not in stamps:
        return f"{supervisor.name} is missing"
    match journal.first(supervisor):
        case None:
            return None
        case journal.Created():
            return ""
        case journal.Skipped(reason=reason):
            return f"the first line of {supervisor.name} must say what was submitted, but cannot be read" + (
                f" ({reason.rstrip('.')})" if reason else ""
            )
        case _:
            return f"the first line of {supervisor.name} must say what was submitted, but says something else"


def printable(name: str) -> str:
    """A folder's name as text for lists and terminals: bytes that are no UTF-8, and control characters, as \\xff."""
    text = os.fsencode(name).decode("utf-8", errors="backslashreplace")
    return "".join(sign if sign.isprintable() else f"\\x{ord(sign):02x}" for sign in text)


def in_words(error: Exception) -> str:
    """An unforeseen error with one run, as the end of a sentence."""
    if isinstance(error, GanRuntimeError):
        return str(error).rstrip(".")
    if isinstance(error, OSError):
        return f"it cannot be read ({error.strerror or type(error).__name__})"
    first = (str(error).splitlines() or [""])[0][:200]
    if may_be_of_one_run(error):
        return f"it cannot be stored ({type(error).__name__}: {first}): it is tried again each minute, so end what needs memory, or delete it"
    return f"it cannot be stored ({type(error).__name__}: {first})"
