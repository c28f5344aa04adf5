"""Where everything of one installation lies: results.duckdb, runs/, jobs/, data/, and the lock of
their owner.

Numbers of runs and jobs, such as 7 in quick-0007, and places in the queue are counted in the home,
each given once.
"""

from __future__ import annotations

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

from gan_runtime.base.errors import HomeError, UnknownRunError, quoted
from gan_runtime.records import run_files
from gan_runtime.records.run_folder import RunDir, write_whole

REPOSITORY = (
    Path(__file__).resolve().parents[2]
)  # where app.py lies: the project's folder, or site-packages
IS_INSTALLED = not (REPOSITORY / "pyproject.toml").exists()
# What comes along beside the modules: examples, results of benchmarks, settings of Streamlit.
SHARE = Path(sys.prefix) / "share" / "gan-dashboard" if IS_INSTALLED else REPOSITORY
HOME_VARIABLE = "GAN_RUNTIME_HOME"
DEFAULT_HOME = Path("~/gan-dashboard") if IS_INSTALLED else REPOSITORY
LAST_NUMBER = ".last-number"
BIN = ".bin"
# Names that `submit` gives, such as quick-0007: where they come from, then their number. A bundle
# may bring no others, and none whose number would use up those that are left for the home's own
# runs.
SUBMITTED_NAME = re.compile(r"(?=.{1,100}\Z)[a-z0-9]+(?:-[a-z0-9]+)*-[0-9]{4,8}")

_NOT_FOR_DUCKDB = ("?", "\\")
_RUN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_NUMBER = re.compile(r"-([0-9]{4,9})$")  # [0-9]: \d knows digits of other scripts too


def is_run_name(name: str) -> bool:
    """Whether a folder of this name can be a run's: 1 to 100 of A–Z, a–z, 0–9, dot,
    underscore, hyphen; a letter or digit first.
    """
    return _RUN_NAME.fullmatch(name) is not None


def run_number(name: str) -> int | None:
    """The number at the end of a run's name: 7 of quick-0007. None for other names, such as
    those of folders in the making.
    """
    number = _NUMBER.search(name) if is_run_name(name) else None
    return int(number[1]) if number else None


def command_line() -> str:
    """How a person calls this program: `gan-dashboard` where it is installed, else, in the
    project's folder, `.venv/bin/python -m gan_runtime`.
    """
    if IS_INSTALLED:
        return "gan-dashboard"
    python = Path(sys.executable)
    return (
        f"{python.relative_to(REPOSITORY) if python.is_relative_to(REPOSITORY) else python} -m"
        " gan_runtime"
    )


def is_text(given: str) -> bool:
    """Whether it can be written down as UTF-8.

    A path of a folder that was named in another encoding cannot.
    """
    return not any("\ud800" <= sign <= "\udfff" for sign in given)


def _refused(chosen: Path, reason: str) -> HomeError:
    return HomeError(
        f"home {quoted(str(chosen))} cannot be used ({reason}): choose another folder with --home"
        f" DIR or {HOME_VARIABLE}."
    )


@dataclass(frozen=True)
class Home:
    """One home folder. Building it touches nothing; `prepare` makes what is missing."""

    path: Path

    @classmethod
    def choose(cls, given: Path | None = None) -> Home:
        """`given`, else $GAN_RUNTIME_HOME, else the project's folder; of an installed program
        ~/gan-dashboard.

        Raises:
            HomeError: no folder can have that name.
        """
        chosen = given or Path(os.environ.get(HOME_VARIABLE) or DEFAULT_HOME)
        try:
            path = chosen.expanduser().resolve()
            path.is_dir()
        except (
            OSError,
            RuntimeError,
            ValueError,
        ) as error:  # a name too long, of an unknown user, links in a circle
            raise _refused(
                chosen, getattr(error, "strerror", None) or str(error).rstrip(".")
            ) from None
        if odd := next((sign for sign in _NOT_FOR_DUCKDB if sign in str(path)), ""):
            raise _refused(path, f"DuckDB takes '{odd}' in a path for something else")
        if not is_text(str(path)):
            raise _refused(path, "its path is no UTF-8 text")
        return cls(path)

    @property
    def flag(self) -> str:
        """What a command for this home ends with: ` --home DIR`, or nothing where the program
        would choose it by itself.
        """
        return "" if self == Home.choose() else f" --home {shlex.quote(str(self.path))}"

    @property
    def database(self) -> Path:
        """The results store."""
        return self.path / "results.duckdb"

    @property
    def runs(self) -> Path:
        """One folder per run."""
        return self.path / "runs"

    @property
    def bin(self) -> Path:
        """Deleted runs, until they are removed for good; missing before the first.

        Below runs/, which may be a disk of its own: so that a run comes here, and back, by one
        change of its name.
        """
        return self.runs / BIN

    @property
    def data(self) -> Path:
        """One folder per prepared data set; missing before the first."""
        return self.path / "data"

    @property
    def jobs(self) -> Path:
        """One folder per background job; missing before the first."""
        return self.path / "jobs"

    @property
    def owner_lock(self) -> Path:
        """Held by the process that owns the store and supervises the runs."""
        return self.path / "runs" / ".owner.lock"

    @property
    def last_number_file(self) -> Path:
        """The highest number that a run was ever given here, so that no number is given twice."""
        return self.runs / LAST_NUMBER

    def prepare(self) -> Home:
        """Makes the folders and proves that they can be written.

        Raises:
            HomeError: the folder cannot be made or written; nothing is left behind.
        """
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.runs):
                pass
        except OSError as error:
            raise HomeError(
                f"home {self.path} cannot be written ({error.strerror}): "
                f"choose another folder with --home DIR or {HOME_VARIABLE}, or change its rights."
            ) from None
        return self

    def check_is_there(self) -> None:
        """Raises HomeError when its folder is gone, of which an empty list of runs would say
        nothing.
        """
        if not self.path.is_dir():
            raise HomeError(
                f"{self.path} is gone: it was moved or deleted. Put it back, or use it where it is"
                " now with --home DIR."
            )

    def run_dirs(self) -> list[RunDir]:
        """Every run's folder, by name.

        Folders of other names are left out; `runs` and the Runs page tell of them.
        """
        if not self.runs.is_dir():
            return []
        return [
            RunDir(path)
            for path in sorted(self.runs.iterdir())
            if is_run_name(path.name) and path.is_dir()
        ]

    def run_dir(self, run_id: str) -> RunDir:
        """The folder of one run.

        Raises:
            UnknownRunError: no such run; the message lists the newest runs that exist.
        """
        # A page asks for it in each refresh: no look at a thousand others.
        if is_run_name(run_id) and (self.runs / run_id).is_dir():
            return RunDir(self.runs / run_id)
        if is_run_name(run_id) and (self.bin / run_id).is_dir():
            raise UnknownRunError(
                f"run {run_id} is in the bin: bring it back on the Runs page, or with"
                f" `{command_line()} restore {run_id}{self.flag}`."
            )
        names = [run.run_id for run in self.run_dirs()]
        there = "there are no runs yet" if self.path.is_dir() else "there is no such folder"
        known = f"there are {', '.join(names[-8:])}" if names else there
        raise UnknownRunError(f"run {quoted(run_id)} is not stored in {self.path}: {known}.")


LAST_RANK = ".last-rank"
# Numbers of our own stay below MOST, so that each run can be bundled. Imported runs have up to 8
# digits; the count never goes on from those of more than 6.
MOST, MOST_COUNTED = 10_000_000, 1_000_000
MOST_DIGITS = (
    15  # of a remembered number: a rank, which counts on from the seconds since 1970, has ten
)


def next_number(folder: Path) -> int:
    """No number is given twice, also when what it named is deleted: whoever still holds rows
    of the old run would mix up the two.
    """
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        given = _given(folder)
        number = next(free for free in count(_last(given, remembered) + 1) if free not in given)
        write_whole(remembered, f"{number}\n")
        return number


def next_rank(home: Home, clock: Callable[[], float] = time.time) -> float:
    """A place in the queue behind all that were given before in this home, whatever the clocks say.

    The first one is the time of day, in seconds: runs that wait since before ranks were counted
    have theirs from there.
    """
    remembered = home.runs / LAST_RANK
    with FileLock(remembered.with_suffix(".lock")):
        last = _number_in(remembered)
        rank = last + 1 if last else int(clock()) + 1
        write_whole(remembered, f"{rank}\n")
        return float(rank)


def keep_count(folder: Path) -> None:
    """Before runs of others are placed: what is numbered here goes on from its own last
    number, not from theirs.
    """
    remembered = folder / LAST_NUMBER
    with FileLock(remembered.with_suffix(".lock")):
        write_whole(remembered, f"{_last(_given(folder), remembered)}\n")


def _last(given: set[int], remembered: Path) -> int:
    """The last number of our own; that of the folders where its file is missing, as in a home
    that was copied or written by hand.
    """
    last = _number_in(remembered)
    if last is not None and last < MOST:
        return last
    return max([0, *(number for number in given if number < MOST_COUNTED)])


def _given(folder: Path) -> set[int]:
    """Those of folders, also in the bin."""
    paths = [*folder.iterdir(), *(folder / BIN).glob("*")]
    return {number for path in paths if (number := run_number(path.name)) is not None}


def _number_in(file: Path) -> int | None:
    """None where the file is missing or holds anything else."""
    try:
        text = run_files.content(file).decode("utf-8", errors="replace").strip()
    except (FileNotFoundError, run_files.NotPlainError):
        return None
    return int(text) if text.isdecimal() and len(text) <= MOST_DIGITS else None
