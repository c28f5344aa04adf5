"""The home folder: results.duckdb, runs/, jobs/, data/, classifiers/, and the lock of their owner.

The home assigns the numbers of runs and jobs, such as 7 in quick-0007, and the ranks of the queue;
none is used twice.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from filelock import FileLock

from gan_runtime.base.errors import WITHOUT_LOCKS, HomeError, UnknownRunError, quoted
from gan_runtime.records import run_files
from gan_runtime.records.run_folder import RunDir, write_whole

# The folder of app.py: the project, or site-packages.
REPOSITORY = Path(__file__).resolve().parents[2]
IS_INSTALLED = not (REPOSITORY / "pyproject.toml").exists()
# Installed files other than modules: examples, results of benchmarks, settings of Streamlit.
SHARE = Path(sys.prefix) / "share" / "gan-dashboard" if IS_INSTALLED else REPOSITORY
HOME_VARIABLE = "GAN_RUNTIME_HOME"
DEFAULT_HOME = Path("~/gan-dashboard") if IS_INSTALLED else REPOSITORY
LAST_NUMBER = ".last-number"
BIN = ".bin"
# Names that `submit` gives, such as quick-0007: a prefix and a number. A bundle can contain no
# other names.
SUBMITTED_NAME = re.compile(r"(?=.{1,100}\Z)[a-z0-9]+(?:-[a-z0-9]+)*-[0-9]{4,8}")

_NOT_FOR_DUCKDB = ("?", "\\")
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NUMBER = re.compile(r"-([0-9]{4,9})$")  # [0-9], since \d also matches digits of other scripts


def is_run_name(name: str) -> bool:
    """Whether a folder of this name can be a run: 1 to 100 of A–Z, a–z, 0–9, dot, underscore and
    hyphen, a letter or digit first.
    """
    return _RUN_NAME.fullmatch(name) is not None


def run_number(name: str) -> int | None:
    """The number at the end of a run's name: 7 of quick-0007; None for other names."""
    number = _NUMBER.search(name) if is_run_name(name) else None
    return int(number[1]) if number else None


def command_line() -> str:
    """The command of this program: `gan-dashboard` where it is installed, else
    `.venv/bin/python -m gan_runtime` in the project's folder.
    """
    if IS_INSTALLED:
        return "gan-dashboard"
    python = Path(sys.executable)
    return (
        f"{python.relative_to(REPOSITORY) if python.is_relative_to(REPOSITORY) else python} -m"
        " gan_runtime"
    )


def is_text(text: str) -> bool:
    """Whether a text can be encoded as UTF-8, unlike a path in another encoding."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _refused(path: Path, reason: str) -> HomeError:
    return HomeError(
        f"home {quoted(str(path))} cannot be used ({reason}): choose another folder with --home"
        f" DIR or {HOME_VARIABLE}."
    )


@dataclass(frozen=True)
class Home:
    """One home folder; `prepare` creates it."""

    path: Path

    @classmethod
    def choose(cls, folder: Path | None = None) -> Home:
        """`folder`, else $GAN_RUNTIME_HOME, else the project's folder or, of an installed program,
        ~/gan-dashboard.

        Raises HomeError if no folder can have that name.
        """
        folder_name = folder or Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
        try:
            path = folder_name.expanduser().resolve()
            path.is_dir()
        except (
            OSError,
            RuntimeError,
            ValueError,
        ) as error:  # the name is too long or of an unknown user, or links form a circle
            raise _refused(
                folder_name, getattr(error, "strerror", None) or str(error).rstrip(".")
            ) from None
        if bad := next((character for character in _NOT_FOR_DUCKDB if character in str(path)), ""):
            raise _refused(path, f"DuckDB does not accept '{bad}' in a path")
        if not is_text(str(path)):
            raise _refused(path, "its path is not UTF-8")
        return cls(path)

    @property
    def flag(self) -> str:
        """The option that selects this home in a command: ` --home DIR`, or "" for the default
        home.
        """
        return "" if self == Home.choose() else f" --home {shlex.quote(str(self.path))}"

    @property
    def database(self) -> Path:
        """The path of the database."""
        return self.path / "results.duckdb"

    @property
    def runs(self) -> Path:
        """One folder per run."""
        return self.path / "runs"

    @property
    def bin(self) -> Path:
        """The trash: deleted runs, until they are removed permanently; missing before the first
        deletion.

        The trash is in runs/, which can be a separate disk, so that deleting and restoring are one
        rename.
        """
        return self.runs / BIN

    @property
    def data(self) -> Path:
        """One folder per prepared data set; missing before the first set."""
        return self.path / "data"

    @property
    def jobs(self) -> Path:
        """One folder per background job; missing before the first job."""
        return self.path / "jobs"

    @property
    def owner_lock(self) -> Path:
        """Locked by the process that writes the database and supervises the runs."""
        return self.path / "runs" / ".owner.lock"

    @property
    def targets(self) -> Path:
        """Settings of other places where runs train."""
        return self.path / "targets.toml"

    @property
    def last_number_file(self) -> Path:
        """The highest number of a run so far, so that no number is used twice."""
        return self.runs / LAST_NUMBER

    def prepare(self) -> Home:
        """Creates the folders and checks that files in them can be written and locked.

        Raises HomeError if it cannot, and then leaves no files.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.runs) as file:
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno in WITHOUT_LOCKS:
                raise HomeError.without_locks(self.path, error) from None
            if error.errno == errno.ENOSYS:  # `filelock` then creates files instead
                return self
            raise HomeError(
                f"home {self.path} cannot be written ({error.strerror}): "
                f"choose another folder with --home DIR or {HOME_VARIABLE}, or change its rights."
            ) from None
        return self

    def check_is_there(self) -> None:
        """Raises HomeError if the folder is missing, which an empty list of runs would hide."""
        if not self.path.is_dir():
            raise HomeError(
                f"{self.path} was moved or deleted: restore it, or give its new place with --home"
                " DIR."
            )

    def run_dirs(self) -> list[RunDir]:
        """The folders of all runs by name, without folders whose names no run can have."""
        if not self.runs.is_dir():
            return []
        return [
            RunDir(path)
            for path in sorted(self.runs.iterdir())
            if is_run_name(path.name) and path.is_dir()
        ]

    def run_dir(self, run_id: str) -> RunDir:
        """The folder of one run.

        Raises UnknownRunError if there is no such run; the message lists the newest runs.
        """
        # Each refresh of a page calls this, so a thousand other folders are not listed.
        if is_run_name(run_id) and (self.runs / run_id).is_dir():
            return RunDir(self.runs / run_id)
        if is_run_name(run_id) and (self.bin / run_id).is_dir():
            raise UnknownRunError(
                f"run {run_id} is in the trash: restore it on the Runs page, or with"
                f" `{command_line()} restore {run_id}{self.flag}`."
            )
        names = [run.run_id for run in self.run_dirs()]
        empty = "there are no runs yet" if self.path.is_dir() else "there is no such folder"
        newest = f"the newest runs are {', '.join(names[-8:])}" if names else empty
        raise UnknownRunError(f"run {quoted(run_id)} is not in {self.path}: {newest}.")


LAST_RANK = ".last-rank"
# New numbers stay below MOST, so that each run can be bundled. Imported runs have up to 8 digits;
# counting never continues from a number above MOST_COUNTED.
MOST, MOST_COUNTED = 10_000_000, 1_000_000
MOST_DIGITS = 15  # of a stored number; ranks start at the seconds since 1970 and have ten digits


def next_number(folder: Path) -> int:
    """A number that was never used, not even by a deleted run, whose rows can still be in use."""
    stored = folder / LAST_NUMBER
    with FileLock(stored.with_suffix(".lock")):
        used = _used(folder)
        number = next(free for free in count(_last(used, stored) + 1) if free not in used)
        write_whole(stored, f"{number}\n")
        return number


def next_rank(home: Home, clock: Callable[[], float] = time.time) -> float:
    """A queue rank behind all earlier ranks of this home, independent of clock changes.

    The first rank is the time in seconds, as earlier versions ranked waiting runs.
    """
    stored = home.runs / LAST_RANK
    with FileLock(stored.with_suffix(".lock")):
        last = _number_in(stored)
        rank = last + 1 if last else int(clock()) + 1
        write_whole(stored, f"{rank}\n")
        return float(rank)


def keep_count(folder: Path) -> None:
    """Stores the last number before an import, so that counting does not continue from imported
    runs.
    """
    stored = folder / LAST_NUMBER
    with FileLock(stored.with_suffix(".lock")):
        write_whole(stored, f"{_last(_used(folder), stored)}\n")


def _last(used: set[int], stored: Path) -> int:
    """The last number that this home assigned; if its file is missing, the highest number of the
    folders.
    """
    last = _number_in(stored)
    if last is not None and last < MOST:
        return last
    return max([0, *(number for number in used if number < MOST_COUNTED)])


def _used(folder: Path) -> set[int]:
    """The numbers in the names of folders, including the trash."""
    paths = [*folder.iterdir(), *(folder / BIN).glob("*")]
    return {number for path in paths if (number := run_number(path.name)) is not None}


def _number_in(file: Path) -> int | None:
    """The number in a file; None if the file is missing or has other content."""
    try:
        text = run_files.content(file).decode("utf-8", errors="replace").strip()
    except (FileNotFoundError, run_files.NotPlainError):
        return None
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
