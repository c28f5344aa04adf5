"""All errors that a user can cause, as one tree.

GanRuntimeError                 its message is a sentence; exit code 2 on the command line
├── SpecError                   an option is wrong; carries one message per field
├── DatasetError                data missing, unreadable or of the wrong shape
├── PackageError                a workload or data set of an installed package cannot be used
├── AcceleratorError            the host has no such device, or TensorFlow cannot use it
├── DeviceLockError             the locks of this host's devices cannot be used
├── HomeError                   the home folder cannot be used, or its disk is full
├── StoreError                  results.duckdb cannot be opened
│   ├── StoreLockedError        another process holds it
│   │   └── HomeInUseError      a dashboard or a training owns the home
│   ├── StoreDamagedError       not compatible with this version; its owner rebuilds it
│   ├── StoreNewerError         a newer version of this program wrote it
│   └── QueryError              the user's SQL does not run
├── ExportError                 the folder for an export cannot be written
├── BundleError                 a bundle of runs cannot be written or read
├── JournalError                a journal of a run cannot be read
├── PictureError                a sample grid must not or cannot be read
├── TargetError                 a file to be written would replace another
├── OutputError                 the standard output is closed or full
├── PortError                   the dashboard cannot listen on the port
├── UnknownRunError             no run of that name
├── RoleError                   a viewer asked for a change
├── SignInError                 a password is wrong or too short, or too many were tried
├── RunStateError               the run is in a state that does not allow this
├── JobError                    no such background job, a state that forbids it, or a failure
├── SurfaceError                a loss surface could not be computed
├── CheckpointError             no checkpoint can be read
├── NonFiniteError              a loss became NaN or infinite; names metric and step
└── AlarmError                  a training went wrong again after every roll-back

Messages say what was given, what is allowed and what to do. At the end: causes of the usual errors
of a TPU that does not start.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

QUOTED_CHARACTERS = 80
WITHOUT_LOCKS = (errno.ENOLCK, errno.ENOTSUP)  # of a file system, such as an NFS mount
MOST_ERRORS = 6  # most wrong options in one message; a file can have hundreds


def quoted(value: Any) -> str:
    """A value of the user, for a sentence: text in quotation marks, at most 80 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # thousands of digits; a list that contains itself
        text = f"a {type(value).__name__} without end"
    return text if len(text) <= QUOTED_CHARACTERS else f"{text[: QUOTED_CHARACTERS - 1]}…"


class GanRuntimeError(Exception):
    """Base of all errors that are shown as a sentence, not as a traceback."""


@dataclass(frozen=True)
class FieldError:
    """The error of one option of a spec; `field` is the name of the option."""

    field: str
    message: str


class SpecError(GanRuntimeError):
    """One or more options of a run are wrong."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        messages = [error.message for error in errors[:MOST_ERRORS]]
        if len(errors) > MOST_ERRORS:
            messages.append(f"{len(errors) - MOST_ERRORS} more options are wrong.")
        super().__init__(" ".join(messages))

    def by_field(self) -> dict[str, str]:
        """The first message of each field, shown at its input."""
        messages: dict[str, str] = {}
        for error in self.errors:
            messages.setdefault(error.field, error.message)
        return messages


class DatasetError(GanRuntimeError):
    """The training data is missing, unreadable, or of the wrong shape."""


class PackageError(GanRuntimeError):
    """A workload or data set of an installed package cannot be used."""


class AcceleratorError(GanRuntimeError):
    """The host lacks the device that a run asks for."""


class DeviceLockError(GanRuntimeError):
    """The locks of this host's devices cannot be used."""


class HomeError(GanRuntimeError):
    """The folder of results.duckdb and runs/ cannot be used, or its disk is full."""

    @classmethod
    def not_written(cls, path: Path, error: OSError) -> HomeError:
        """The sentence for a file that the system refused to write."""
        if error.errno in WITHOUT_LOCKS:
            return cls.without_locks(path, error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls(f"the disk of {path} is full: free space on it; unsaved data was lost.")
        return cls(
            f"{path} cannot be written ({error.strerror or error}): check the disk; unsaved data"
            " was lost."
        )

    @classmethod
    def without_locks(cls, path: Path, error: OSError) -> HomeError:
        """The sentence for a home on a file system on which no file can be locked."""
        return cls(
            f"{path} cannot be locked ({error.strerror or error}), as its file system has no locks:"
            " mount it with them (NFS: version 4, or with rpc.statd and without nolock), or choose"
            " another folder with --home DIR."
        )

    @classmethod
    def refused(cls, error: OSError) -> HomeError:
        """The sentence for any refusal of the system, such as in the home of another user."""
        named = (
            error.filename if isinstance(error.filename, str | bytes) else "the home"
        )  # some errors have the number of an open file as name
        path = Path(os.fsdecode(named))
        if error.errno not in (errno.EROFS, errno.EACCES, errno.EPERM):
            return cls.not_written(path, error)
        return cls(
            f"{path} cannot be used ({error.strerror}): change its permissions, or choose another"
            " folder with --home DIR."
        )


class StoreError(GanRuntimeError):
    """results.duckdb cannot be opened or written."""


class StoreLockedError(StoreError):
    """Another process holds results.duckdb."""


class HomeInUseError(StoreLockedError):
    """A dashboard or a training owns the home."""


class StoreKind(StrEnum):
    """Why results.duckdb cannot be used; part of the file's name once it is quarantined."""

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
    """The user's SQL statement does not run."""


class ExportError(GanRuntimeError):
    """The folder for an export cannot be written."""


class BundleError(GanRuntimeError):
    """A bundle of runs cannot be written or read."""


class JournalError(GanRuntimeError):
    """A file with the name of a journal is not a journal."""


class PictureError(GanRuntimeError):
    """A file is not a sample grid or film of its run; the message is the end of a sentence, such
    as "it is no PNG image".
    """


class TargetError(GanRuntimeError):
    """A file to be written would replace another file, a folder or a device."""


class TargetSettingError(GanRuntimeError):
    """A place where runs train is unknown, or one of its settings is wrong."""


class OutputError(GanRuntimeError):
    """The output of a command cannot be written."""


class PortError(GanRuntimeError):
    """The dashboard cannot listen on its address and port."""


class UnknownRunError(GanRuntimeError):
    """No run of that name exists."""


class RoleError(GanRuntimeError):
    """A viewer asked for a change."""


class SignInError(GanRuntimeError):
    """The sign-in as operator failed."""


class NotifyError(GanRuntimeError):
    """The settings of notices are wrong, or a notice was not accepted. The message has
    no secret.
    """


class RunStateError(GanRuntimeError):
    """The state of the run does not allow the command."""


class JobError(GanRuntimeError):
    """There is no such background job, its state does not allow the command, or it failed."""


class SurfaceError(GanRuntimeError):
    """A loss surface could not be computed."""


class CheckpointError(GanRuntimeError):
    """No checkpoint of the run can be read."""


class NonFiniteError(GanRuntimeError):
    """A training number became NaN or infinite."""


class AlarmError(GanRuntimeError):
    """A training went wrong again after every roll-back."""


# ---- of TPUs -------------------------------------------------------------------------------------

# The texts are those of libtpu 0.0.42.1, JAX 0.10 and TensorFlow 2.20, and of reports on GitHub;
# docs/tpu.md has the table.


@dataclass(frozen=True)
class Advice:
    """`marks`: parts of a message in lower case; any of them identifies it. `sentence`: the cause,
    and what to do.
    """

    marks: tuple[str, ...]
    sentence: str


ADVICE = (  # the first match wins, so specific entries come first
    Advice(
        ("multi-process lockfile",),
        "libtpu's lock file is left over from a process that was killed: end other TPU processes,"
        " then `sudo rm /tmp/libtpu_lockfile`",
    ),
    Advice(
        ("already in use by", "libtpu.so already in use", "device or resource busy"),
        "another process uses the TPU, and only one can: find it with `sudo lsof -w /dev/accel0"
        " /dev/vfio/0`, end it, and try again",
    ),
    Advice(
        (
            "failed to open libtpu.so",
            "libtpu.so: cannot open",
            "could not find libtpu",
            "libtpu is not installed",
        ),
        "libtpu is not installed in this environment: run `make clean setup` on the TPU host",
    ),
    Advice(
        ("configuredistributedtpu", "no opkernel"),
        "this TensorFlow was built without TPU support: run `make clean setup` on the TPU host, or"
        " use engine=jax",
    ),
    Advice(
        ("permission denied", "operation not permitted"),
        "this user cannot open the TPU: run as the user who owns /dev/accel0 or /dev/vfio, or"
        " start the container with --privileged",
    ),
    Advice(
        (
            "failed to get tpu metadata",
            "failed to fetch url",
            "agent-worker-number",
            "could not determine tpu accelerator type",
        ),
        "libtpu gets no answer from the cloud's metadata server. Inside a container use the host's"
        " network; without a metadata server, set"
        " TPU_SKIP_MDS_QUERY=1, TPU_ACCELERATOR_TYPE (such as v3-8) and"
        " TPU_WORKER_HOSTNAMES=localhost",
    ),
    Advice(
        ("struct size", "pjrt api version", "pjrt plugin pjrt"),
        "libtpu does not match this framework: install the versions that requirements-tpu.txt pins"
        " (`make clean setup`)",
    ),
    Advice(
        (
            "no tpu platform",
            "no tpu devices found",
            "no tpu cores available",
            "failed to get global tpu topology",
        ),
        "libtpu finds no TPU: check that no other process uses it, and that libtpu matches the"
        " framework (docs/tpu.md)",
    ),
    Advice(
        (
            "not in the list of known backends",
            "unknown backend",
            "unable to initialize backend 'tpu'",
            "libtpu",
        ),
        "the framework cannot start the TPU: run `make clean setup` on the TPU host, and check that"
        " no other process uses it",
    ),
)


def advice(message: str) -> str:
    """The likely cause of a TPU error and what to do; "" for an unrecognized message."""
    text = message.lower()
    rows = (row.sentence for row in ADVICE if any(mark in text for mark in row.marks))
    return next(rows, "")


def cause(message: str) -> str:
    """The advice, or the first line of an unusual message; "no message" when it is empty."""
    return advice(message) or next(
        (line.strip()[:160] for line in message.splitlines() if line.strip()), "no message"
    )
