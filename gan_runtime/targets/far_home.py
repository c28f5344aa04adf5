"""A folder on another host for the runs of the home here: it gets their options and data sets, and
what their trainers write comes back.

Journals and logs arrive by their length, each journal after the samples that its lines name. At the
end of a job its checkpoints and weights of single epochs follow. The owner's journal and the
options never come from there. A connection that breaks changes nothing: the next call continues at
the bytes that have arrived.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from gan_runtime import __version__
from gan_runtime.records import processes, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.targets import there
from gan_runtime.targets.configuration import SlurmTarget, SshTarget
from gan_runtime.targets.target import NoAnswerError, Offer, Submitted, TargetJob, run_id_of
from gan_runtime.targets.transport import Done, Transport

MOST_LINE = 100_000  # bytes
PIECE_BYTES = 32_000_000  # of a file of an ended job in one look, so that no other run waits long
CALL_SECONDS, SET_UP_SECONDS = 60.0, 1_800.0
# Names of files in folders of a run. Others do not come from a host that may be another's.
_NAME = re.compile(rf"(?:{'|'.join(there.FOLDERS)})/[A-Za-z0-9][\w.,@+-]{{0,199}}")
Size = Annotated[int, Field(ge=0)]


class _Job(BaseModel):
    """A job in an answer. `state`, `job`: of a trainer that was started there, else "". `files`:
    bytes, time in seconds, and the content if it is short. `checkpoints`: all that are there, once
    the job has ended or they are fetched.
    """

    state: str
    job: str
    checkpoints: tuple[str, ...]
    files: dict[str, tuple[Size, Size, str | None]]
    chunks: dict[str, str]
    is_complete: bool


class _Answer(BaseModel):
    """`present`: bytes that have arrived of each file of a data set that must be sent first."""

    version: str
    host: str
    job: str = ""
    present: dict[str, Size] | None = None
    refusal: str = ""
    jobs: dict[str, _Job] = {}


@dataclass(frozen=True)
class Arrival:
    """A job after a look. `is_whole`: all that its run has written is here."""

    state: str
    job: str
    host: str
    is_whole: bool


@dataclass(frozen=True)
class FarHome:
    """`home`: the one here. All methods raise NoAnswerError."""

    options: SshTarget | SlurmTarget
    transport: Transport
    home: Home

    def offer(self) -> Offer:
        """The host, or why it cannot be used: no clone of the same version."""
        try:
            answer = self._ask("look", {"jobs": {}})
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        if answer.version != __version__:
            return Offer(refusal=other_version(answer.version, self.options.clone))
        return Offer((answer.host,))

    def set_up(self) -> Offer:
        """Runs `make setup` in the clone there."""
        words = ["make", "--directory", self.options.clone, "setup"]
        try:
            done = self.transport.run(words, seconds=SET_UP_SECONDS)
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        return Offer(refusal=f"`make setup` failed: {last_line(done)}" if done.code else "")

    def place(self, job: TargetJob, script: str, *, begin: bool) -> Submitted:
        """Puts a run in place, after its data set if the host lacks it; `begin`: and starts its
        trainer, once.
        """
        verb = "begin" if begin else "place"
        if job.content not in ("", there.content_of(self.home.data / job.dataset)):
            return Submitted(refusal=f"data set {job.dataset} has changed since: submit it again")
        sizes = self._sizes(job) if job.content else {}
        request = {
            "version": __version__,
            "token": job.token,
            "run": job.folder.name,
            "attempt": job.attempt,
            "spec": run_files.content(RunDir(job.folder).spec_path).decode(),
            "script": script,
            "dataset": job.dataset,
            "content": job.content,
            "sizes": sizes,
            "ends": _known(RunDir(job.folder))["ends"],
        }
        answer = self._ask(verb, request)
        if answer.present is not None:
            for name in sizes:
                self._send(job, name, answer.present.get(name, 0))
            answer = self._ask(verb, request)
        if answer.present is not None:
            return Submitted(refusal=f"data set {job.dataset} did not arrive")
        return Submitted(answer.job, answer.refusal)

    def look(self, ended: Mapping[str, bool | None]) -> dict[str, Arrival]:
        """Brings what the runs of these jobs have written. `ended`: whether the job of a token has;
        None for trainers that were started there.
        """
        runs = {token: RunDir(self.home.runs / run_id_of(token)) for token in ended}
        known = {token: {**_known(run), "has_ended": ended[token]} for token, run in runs.items()}
        answer = self._ask("look", {"jobs": known})
        arrivals, errors = {}, []
        for token, job in answer.jobs.items():
            if token in known:
                is_whole = False
                try:
                    is_live = job.state == "RUNNING" or ended[token] is False
                    is_whole = self._take(runs[token], job, known[token]["ends"], is_live)
                except NoAnswerError as error:  # one run must not hold up the others
                    errors.append(error)
                arrivals[token] = Arrival(job.state, job.job, answer.host, is_whole)
        if errors and len(errors) == len(arrivals):
            raise errors[0]
        return arrivals

    def cancel(self, token: str) -> None:
        """Kills the trainer, or prevents it."""
        self._ask("cancel", {"token": token})

    # ---- what a run has written ------------------------------------------------------------------

    def _take(self, run: RunDir, job: _Job, ends: Mapping[str, int], is_live: bool) -> bool:
        """Copies files, then continues the journals at `ends`. Returns whether all that the run has
        written is here; nothing of a deleted run is missed.

        Raises NoAnswerError: a file did not come, or the disk here is full.
        """
        if not run.path.is_dir():
            return True
        try:
            taken = [
                self._take_file(run, name, (size, time), content, size if is_live else PIECE_BYTES)
                for name, (size, time, content) in job.files.items()
                if _NAME.fullmatch(name)
            ]
            if not all(taken):  # one has changed meanwhile, and comes with the next answer
                return False
            names = [name for name in job.checkpoints if _NAME.fullmatch(name)]
            if names and all((run.path / name).exists() for name in names):
                _remove_earlier(run.checkpoints, names)
                run.fetch_file.unlink(missing_ok=True)
            for name, content in job.chunks.items():
                if there.is_growing(name):
                    _append(run.path / name, ends.get(name, 0), base64.b64decode(content))
        except (OSError, ValueError, OverflowError) as error:
            raise NoAnswerError(f"{run.run_id} cannot be copied: {error}") from None
        return job.is_complete

    def _take_file(
        self, run: RunDir, name: str, stamp: tuple[int, int], content: str | None, most: int
    ) -> bool:
        """Copies a file, or at most so many bytes more of it; returns whether it is here."""
        path = run.path / name
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(f".{path.name}.{stamp[0]}-{stamp[1]}{there.PART}")
        is_current = True
        if content is not None:
            part.write_bytes(base64.b64decode(content))
        else:
            with part.open("ab") as file:
                is_current = self._fetch(f"{run.run_id}/{name}", stamp, file, most)
        size = part.stat().st_size
        if size != stamp[0]:
            if content is not None or size > stamp[0] or not is_current:
                part.unlink()
            return False
        os.utime(part, (stamp[1], stamp[1]))
        part.replace(path)
        return True

    def _fetch(self, name: str, stamp: tuple[int, int], file: IO[bytes], most: int) -> bool:
        """Continues a file; returns whether it is still the one there. What arrives before a
        connection breaks counts.
        """
        words = self._there("file", name, *map(str, (*stamp, file.tell(), most)))
        with tempfile.TemporaryFile() as nothing, tempfile.TemporaryFile() as answer:
            try:
                done = self.transport.stream(words, nothing, answer)
            finally:
                answer.seek(0)
                while (line := answer.readline(MOST_LINE)) and line != there.MARK:
                    pass  # the start files of a shell there have printed it
                shutil.copyfileobj(answer, file)
        if done.code not in (0, there.CHANGED):
            raise NoAnswerError(f"{name} cannot be read there: {last_line(done)}")
        return done.code == 0

    def _sizes(self, job: TargetJob) -> dict[str, int]:
        """Bytes of each file of the job's data set."""
        folder = self.home.data / job.dataset
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        return {str(path.relative_to(folder)): path.stat().st_size for path in paths}

    def _send(self, job: TargetJob, name: str, offset: int) -> None:
        """Continues a file of the data set there."""
        path = self.home.data / job.dataset / name
        if offset == path.stat().st_size:
            return
        words = self._there("data", job.dataset, job.content, name, str(offset))
        with path.open("rb", buffering=0) as file, tempfile.TemporaryFile() as to:
            file.seek(offset)
            done = self.transport.stream(words, file, to)
        if done.code:
            raise NoAnswerError(f"data set {job.dataset} was not taken: {last_line(done)}")

    # ---- calls -----------------------------------------------------------------------------------

    def _ask(self, verb: str, request: dict[str, Any]) -> _Answer:
        done = self.transport.run(self._there(verb), json.dumps(request), CALL_SECONDS)
        answer = done.output.rpartition(there.MARK.decode())[2]
        try:
            return _Answer.model_validate_json(answer)
        except ValidationError:
            raise NoAnswerError(
                f"it did not answer as expected ({last_line(done)}): {self.options.clone} there"
                " must be a clone of this project, set up with `make setup`"
            ) from None

    def _there(self, *words: str) -> list[str]:
        return python(self.options, there.__name__, self.options.home, *words)


def python(options: SshTarget | SlurmTarget, module: str, *words: str) -> list[str]:
    """The command for a module of the project there."""
    # A path without a slash first is of the user's folder, where ssh begins.
    return [
        *("env", f"PYTHONPATH={options.clone}", options.interpreter),
        *processes.command(module, *words)[1:],
    ]


def other_version(version: str, project: str) -> str:
    """The sentence about a host with another version of the project."""
    return (
        f"it has version {version} of this project, and this host {__version__}: update"
        f" {project or 'it'} there, and run `make setup`."
    )


def place_there(path: str) -> str:
    """A path for bash there."""
    return shlex.quote(path) if path.startswith("/") else f'"$HOME"/{shlex.quote(path)}'


def last_line(done: Done) -> str:
    """The last error of a command, for a sentence."""
    return done.last_error or f"exit code {done.code}, no message"


def _known(run: RunDir) -> dict[str, Any]:
    """What is here of a run: the ends of its journals and log, stamps of its files, its STOP."""
    ends, files = {}, {}
    with contextlib.suppress(FileNotFoundError):  # it is being deleted
        for path in run.path.iterdir():
            if there.is_growing(path.name):
                ends[path.name] = path.stat().st_size
        for folder in there.FOLDERS:
            for file in (run.path / folder).glob("*"):
                status = file.stat()
                files[f"{folder}/{file.name}"] = [status.st_size, int(status.st_mtime)]
    return {
        "run": run.run_id,
        "ends": ends,
        "files": files,
        "stop": run.stop_asker,
        "fetch": run.fetch_file.exists(),
    }


def _append(path: Path, begin: int, content: bytes) -> None:
    """Continues a file at byte `begin`, unless another process has continued it meanwhile, such as
    an owner that was frozen.
    """
    with os.fdopen(run_files.appending(path), "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_size == begin:
            file.write(content)


def _remove_earlier(folder: Path, present: Sequence[str]) -> None:
    """Removes checkpoints that are no longer there, as the trainer does, and parts of files."""
    for path in folder.glob("*.safetensors"):
        if f"{folder.name}/{path.name}" not in present:
            path.unlink()
    for part in folder.glob(f".*{there.PART}"):
        part.unlink()
