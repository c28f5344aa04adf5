"""A host that ssh reaches as a target. Runs train in a home there, and each observation brings what
their trainers have written since into the home here.

Journals and the log arrive by their length, each journal after the samples that its lines name. At
the end of a job its checkpoints follow. The owner's journal and the options never come from there.
A connection that breaks changes nothing: the next answer continues at the bytes that are here.
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
import subprocess
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
from gan_runtime.targets.configuration import SshTarget
from gan_runtime.targets.target import (
    NoAnswerError,
    Offer,
    Seen,
    Submitted,
    TargetJob,
    run_id_of,
)
from gan_runtime.targets.transport import Done, Transport

MOST_LINE = 100_000  # bytes
CALL_SECONDS, SET_UP_SECONDS = 60.0, 1_800.0
# Names of files in folders of a run. Others do not come from a host that may be another's.
_NAME = re.compile(rf"(?:{'|'.join(there.FOLDERS)})/[A-Za-z0-9][\w.,@+-]{{0,199}}")
Size = Annotated[int, Field(ge=0)]


class _Job(BaseModel):
    """A job in an answer. `files`: bytes, time in seconds, and the content if it is short.
    `checkpoints`: all that are there, once the job has ended.
    """

    state: str
    job: str
    checkpoints: tuple[str, ...]
    files: dict[str, tuple[Size, Size, str | None]]
    chunks: dict[str, str]
    is_complete: bool


class _Answer(BaseModel):
    version: str
    host: str
    job: str = ""
    missing: str = ""
    refusal: str = ""
    jobs: dict[str, _Job] = {}


@dataclass(frozen=True)
class SshHost:
    """A host with the project in a folder. `home`: the one here, which gets copies."""

    options: SshTarget
    transport: Transport
    home: Home

    def offer(self) -> Offer:
        """Its processors, memory and accelerators, if it has the same version of the project."""
        try:
            answer = self._ask("look", {"jobs": {}})
            words = self._python("gan_runtime", "devices", "--json")
            done = self.transport.run(words, seconds=CALL_SECONDS)
            devices = json.loads(done.output[done.output.index("{") :])
            device = devices["devices"][self.options.accelerator]
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        except (ValueError, KeyError):
            return Offer(refusal=f"its devices cannot be read: {_last_line(done)}.")
        if answer.version != __version__:
            return Offer(
                refusal=f"it has version {answer.version} of this project, and this host"
                f" {__version__}: update {self.options.project} there, and run `make setup`."
            )
        if not device["available"]:
            return Offer(refusal=f"{self.options.accelerator}: {device['reason']}")
        name, count = device["name"], device["count"]
        return Offer(
            (
                f"host {answer.host}: {devices['cores']} cores, {devices['memory_bytes'] / 1e9:.0f}"
                " GB",
                f"{self.options.accelerator.upper()}: {count} × {name}",
                f"Python {devices['python']}, TensorFlow {devices['tensorflow']}",
            )
        )

    def set_up(self) -> Offer:
        """Runs `make setup` in the clone there."""
        words = ["make", "--directory", self.options.project, "setup"]
        try:
            done = self.transport.run(words, seconds=SET_UP_SECONDS)
        except NoAnswerError as error:
            return Offer(refusal=f"{error}.")
        return Offer(refusal=f"`make setup` failed: {_last_line(done)}" if done.code else "")

    def script(self, job: TargetJob) -> str:
        """Starts the trainer in the home there."""
        run = f"{self.options.home}/runs/{job.folder.name}"
        module = processes.command(processes.TRAINER)[1:]
        words = [_place(self.options.interpreter), *module, _place(run)]
        return "\n".join(
            [
                "#!/bin/bash",
                f"export PYTHONPATH={_place(self.options.project)}",
                "export PYTHONUNBUFFERED=1",
                *self.options.prelude,
                " ".join(["exec", *words, str(job.attempt), job.accelerator]),
                "",
            ]
        )

    def submit(self, job: TargetJob) -> Submitted:
        """Starts the trainer once, after it has sent the data set if the host lacks it."""
        request = {
            "version": __version__,
            "token": job.token,
            "run": job.folder.name,
            "attempt": job.attempt,
            "spec": run_files.content(RunDir(job.folder).spec_path).decode(),
            "script": self.script(job),
            "dataset": job.dataset,
            "content": job.content,
            "ends": _known(RunDir(job.folder))["ends"],
        }
        answer = self._ask("begin", request)
        if answer.missing:
            self._send_data(job)
            answer = self._ask("begin", request)
        if answer.missing:
            return Submitted(refusal=f"data set {answer.missing} did not arrive")
        return Submitted(answer.job, answer.refusal)

    def observe(self, tokens: Sequence[str]) -> Mapping[str, Seen]:
        """The states, once all that came before them is here."""
        if not tokens:
            return {}
        runs = {token: RunDir(self.home.runs / run_id_of(token)) for token in tokens}
        known = {token: _known(run) for token, run in runs.items()}
        answer = self._ask("look", {"jobs": known})
        states = {}
        for token, job in answer.jobs.items():
            if token in known:
                is_here = self._take(runs[token], job, known[token]["ends"])
                is_over = job.state != "RUNNING" and is_here
                states[token] = Seen(
                    stage="ended" if is_over else "running",
                    state=job.state if is_over else "RUNNING",
                    job=job.job,
                    nodes=answer.host,
                    is_complete=is_over,
                )
        return states

    def cancel(self, token: str) -> None:
        """Kills the trainer, or prevents it."""
        self._ask("cancel", {"token": token})

    # ---- what a run has written ------------------------------------------------------------------

    def _take(self, run: RunDir, job: _Job, ends: Mapping[str, int]) -> bool:
        """Copies files, then continues the journals at `ends`. Returns whether all that the run has
        written is here; nothing of a deleted run is missed.

        Raises NoAnswerError: a file did not come, or the disk here is full.
        """
        if not run.path.is_dir():
            return True
        try:
            taken = [
                self._take_file(run, name, (size, time), content)
                for name, (size, time, content) in job.files.items()
                if _NAME.fullmatch(name)
            ]
            if not all(taken):  # one has changed meanwhile, and comes with the next answer
                return False
            if job.checkpoints:
                _remove_earlier(run.checkpoints, job.checkpoints)
            for name, content in job.chunks.items():
                if there.is_growing(name):
                    _append(run.path / name, ends.get(name, 0), base64.b64decode(content))
        except (OSError, ValueError, OverflowError) as error:
            raise NoAnswerError(f"{run.run_id} cannot be copied: {error}") from None
        return job.is_complete

    def _take_file(
        self, run: RunDir, name: str, stamp: tuple[int, int], content: str | None
    ) -> bool:
        """Copies a file; returns whether it has the promised size."""
        path = run.path / name
        path.parent.mkdir(exist_ok=True)
        part = path.with_name(f".{path.name}.part")
        with part.open("wb") as file:
            if content is not None:
                file.write(base64.b64decode(content))
            else:
                self._fetch(f"{run.run_id}/{name}", file)
        if part.stat().st_size != stamp[0]:
            part.unlink()
            return False
        os.utime(part, (stamp[1], stamp[1]))
        part.replace(path)
        return True

    def _fetch(self, name: str, file: IO[bytes]) -> None:
        with tempfile.TemporaryFile() as nothing, tempfile.TemporaryFile() as answer:
            done = self.transport.stream(self._there("file", name), nothing, answer)
            answer.seek(0)
            while (line := answer.readline(MOST_LINE)) and line != there.MARK:
                pass  # the start files of a shell there have printed it
            shutil.copyfileobj(answer, file)
        if done.code:
            raise NoAnswerError(f"{name} cannot be read there: {_last_line(done)}")

    def _send_data(self, job: TargetJob) -> None:
        """Sends a prepared set, its manifest last, so that a part of it is no set."""
        folder = self.home.data / job.dataset
        files = sorted(
            (path for path in folder.rglob("*") if path.is_file()),
            key=lambda path: (path == folder / there.MANIFEST, path),
        )
        names = [str(path.relative_to(self.home.data)) for path in files]
        words = ["tar", "--directory", str(self.home.data), "--create", "--", *names]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as tar, tempfile.TemporaryFile() as to:
            assert tar.stdout is not None
            command = self._there("data", job.dataset, job.content)
            done = self.transport.stream(command, tar.stdout, to)
        if done.code or tar.returncode:
            raise NoAnswerError(f"data set {job.dataset} was not taken: {_last_line(done)}")

    # ---- calls -----------------------------------------------------------------------------------

    def _ask(self, verb: str, request: dict[str, Any]) -> _Answer:
        done = self.transport.run(self._there(verb), json.dumps(request), CALL_SECONDS)
        answer = done.output.rpartition(there.MARK.decode())[2]
        try:
            return _Answer.model_validate_json(answer)
        except ValidationError:
            raise NoAnswerError(
                f"it did not answer as expected ({_last_line(done)}): {self.options.project} there"
                " must be a clone of this project, set up with `make setup`"
            ) from None

    def _there(self, *words: str) -> list[str]:
        return self._python(there.__name__, self.options.home, *words)

    def _python(self, module: str, *words: str) -> list[str]:
        # A path without a slash first is of the user's folder, where ssh begins.
        return [
            *("env", f"PYTHONPATH={self.options.project}", self.options.interpreter),
            *processes.command(module, *words)[1:],
        ]


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
    return {"run": run.run_id, "ends": ends, "files": files, "stop": run.stop_asker}


def _append(path: Path, begin: int, content: bytes) -> None:
    """Continues a file at byte `begin`, unless another process has continued it meanwhile, such as
    an owner that was frozen.
    """
    with os.fdopen(run_files.appending(path), "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file.fileno()).st_size == begin:
            file.write(content)


def _remove_earlier(folder: Path, present: Sequence[str]) -> None:
    """Removes checkpoints that are no longer there, as the trainer does."""
    for path in folder.glob("*.safetensors"):
        if f"{folder.name}/{path.name}" not in present:
            path.unlink()


def _place(path: str) -> str:
    """A path for bash there."""
    return shlex.quote(path) if path.startswith("/") else f'"$HOME"/{shlex.quote(path)}'


def _last_line(done: Done) -> str:
    return done.last_error or f"exit code {done.code}, no message"
