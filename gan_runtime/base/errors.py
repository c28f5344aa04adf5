"""Every error that a person can cause, as one tree.

GanRuntimeError                 one clear sentence; exit code 2 on the command line
├── SpecError                   an option is wrong; carries one message per field
├── DatasetError                data missing, unreadable or of the wrong shape
├── PackageError                a workload or data set of an installed package cannot be used
├── AcceleratorError            the host has no such device, or TensorFlow cannot use it
├── DeviceLockError             the locks of this host's devices cannot be kept
├── HomeError                   the home folder cannot be used, or its disk is full
├── StoreError                  results.duckdb cannot be opened
│   ├── StoreLockedError        another process holds it
│   │   └── HomeInUseError      a dashboard or a training owns the home
│   ├── StoreDamagedError       it is none that this version can use; its owner makes it anew
│   ├── StoreNewerError         a newer version of this program wrote it
│   └── QueryError              a person's SQL does not run
├── ExportError                 the folder for an export cannot be written
├── BundleError                 a bundle of runs cannot be written or read
├── JournalError                a journal of a run is none
├── PictureError                a sample grid may not or cannot be read
├── TargetError                 what was to be written would take the place of something else
├── OutputError                 the standard output takes no more
├── PortError                   the dashboard cannot listen on the port
├── UnknownRunError             no run of that name
├── RoleError                   a viewer asked for a change
├── SignInError                 a password is wrong, too short, or was tried too often
├── RunStateError               the run is in a state that does not allow this
├── JobError                    no such background job, a state that forbids it, or a failure
├── SurfaceError                a loss surface could not be computed
├── CheckpointError             no checkpoint can be read
├── NonFiniteError              a loss became NaN or infinite; names metric and step
└── AlarmError                  a training went wrong again after every roll-back

Messages say what was given, what is allowed and what to do.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

QUOTED_CHARACTERS = 80
MOST_TOLD = 6  # wrong options in one message; a file may hold hundreds


def quoted(given: Any) -> str:
    """What a person gave, as it stands in a sentence: text in quotation marks, nothing longer
    than a line.
    """
    try:
        text = repr(given)
    except (
        ValueError,
        RecursionError,
    ):  # a number of thousands of digits; lists within lists without end
        text = f"a {type(given).__name__} without end"
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[: QUOTED_CHARACTERS - 1]}…"


class GanRuntimeError(Exception):
    """Base of all errors that are explained to a person instead of shown as a traceback."""


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one option of a spec; `field` is the option's name."""

    field: str
    message: str


class SpecError(GanRuntimeError):
    """One or more options of a run are wrong."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        told = [error.message for error in errors[:MOST_TOLD]]
        if len(errors) > MOST_TOLD:
            told.append(f"{len(errors) - MOST_TOLD} more are wrong.")
        super().__init__(" ".join(told))

    def by_field(self) -> dict[str, str]:
        """The first message of each field, for showing it beside its input."""
        messages: dict[str, str] = {}
        for error in self.errors:
            messages.setdefault(error.field, error.message)
        return messages


class DatasetError(GanRuntimeError):
    """The training data cannot be had or is not what its name says."""


class PackageError(GanRuntimeError):
    """A workload or data set of an installed package cannot be used."""


class AcceleratorError(GanRuntimeError):
    """The host lacks the device that a run asks for."""


class DeviceLockError(GanRuntimeError):
    """The locks of this host's devices cannot be kept."""


class HomeError(GanRuntimeError):
    """The folder for results.duckdb and runs/ cannot be used, or its disk takes no more."""

    @classmethod
    def not_written(cls, path: Path, error: OSError) -> HomeError:
        """The sentence for a file that the system refused to write."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls(
                f"the disk of {path} is full: make space on it; what was to be written there is"
                " lost."
            )
        return cls(
            f"{path} cannot be written ({error.strerror or error}): look after its disk; what was"
            " to be written there is lost."
        )

    @classmethod
    def refused(cls, error: OSError) -> HomeError:
        """The sentence for whatever the system has refused, such as in a home of somebody else."""
        named = (
            error.filename if isinstance(error.filename, str | bytes) else "the home"
        )  # some name the number of an open file
        path = Path(os.fsdecode(named))
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            return cls.not_written(path, error)
        return cls(
            f"{path} cannot be used ({error.strerror}): change its rights, or choose another folder"
            " with --home DIR."
        )


class StoreError(GanRuntimeError):
    """results.duckdb cannot be opened or written."""


class StoreLockedError(StoreError):
    """Another process holds results.duckdb."""


class HomeInUseError(StoreLockedError):
    """A dashboard or a training owns the home."""


class StoreKind(StrEnum):
    """What lies in the place of results.duckdb that cannot be used; a part of its name once
    it is set aside.
    """

    DAMAGED = "damaged"
    OLDER = "older"
    NEWER = "newer"
    FOREIGN = "foreign"


class StoreDamagedError(StoreError):
    """This version cannot use results.duckdb. `problem`: such as "has schema version 3, …"."""

    def __init__(
        self, message: str, problem: str = "", kind: StoreKind = StoreKind.DAMAGED
    ) -> None:
        super().__init__(message)
        self.problem, self.kind = problem, kind


class StoreNewerError(StoreError):
    """A newer version of this program wrote results.duckdb."""


class QueryError(StoreError):
    """A person's SQL statement does not run."""


class ExportError(GanRuntimeError):
    """The folder for an export cannot be written."""


class BundleError(GanRuntimeError):
    """A bundle of runs cannot be written, or is none."""


class JournalError(GanRuntimeError):
    """A file in the place of a journal is none."""


class PictureError(GanRuntimeError):
    """A file holds no pictures of its run; of a sample grid the message is the end of a
    sentence: "it is no PNG picture".
    """


class TargetError(GanRuntimeError):
    """What was to be written would take the place of another file, or of something that is no
    file.
    """


class OutputError(GanRuntimeError):
    """What a command answers cannot be written to where its output goes."""


class PortError(GanRuntimeError):
    """The dashboard cannot listen where it was told to."""


class UnknownRunError(GanRuntimeError):
    """No run of that name is stored."""


class RoleError(GanRuntimeError):
    """Somebody who may only look asked for a change."""


class SignInError(GanRuntimeError):
    """Somebody cannot become an operator that way."""


class RunStateError(GanRuntimeError):
    """The run's state does not allow what was asked."""


class JobError(GanRuntimeError):
    """There is no such background job, its state does not allow what was asked, or it has
    ended without what was awaited.
    """


class SurfaceError(GanRuntimeError):
    """A loss surface could not be computed."""


class CheckpointError(GanRuntimeError):
    """No checkpoint of the run can be read."""


class NonFiniteError(GanRuntimeError):
    """A training number became NaN or infinite."""


class AlarmError(GanRuntimeError):
    """A training went wrong again after every roll-back."""
