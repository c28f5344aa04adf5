"""The half of an ssh target that runs on the other host: it starts trainers there, and answers with
their states and with what they have written since.

    python -m gan_runtime.targets.there HOME begin|look|cancel <REQUEST >ANSWER
    python -m gan_runtime.targets.there HOME file NAME >BYTES
    python -m gan_runtime.targets.there HOME data NAME DIGEST <TAR

Requests and answers are JSON. HOME is a folder for the runs of one dashboard: runs/ and data/ as in
every home, and jobs/ with a record of each started trainer by its token.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock
from pydantic import ValidationError

from gan_runtime import __version__
from gan_runtime.records import run_files
from gan_runtime.records.identity import ProcessIdentity

MOST_BYTES = 8_000_000  # of files in one answer
CHECKPOINTS, SNAPSHOTS = "checkpoints", "snapshots"
PART = ".part"  # of files that are being written
# The trainer in a new session. Its exit code is written last; a signal adds 128.
_WRAPPER = 'bash "$1"; code=$?; echo $code >"$2.part"; mv "$2.part" "$2"'
_SIGNALED = 128


def main(words: list[str]) -> None:
    """Runs one command."""
    home, verb = Path(words[0]).expanduser().absolute(), words[1]
    if verb == "file":
        with os.fdopen(run_files.plain(home / "runs" / words[2]), "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        return
    if verb == "data":
        _take_data(home, words[2], words[3])
        return
    request = json.load(sys.stdin)
    answer = {"begin": _begin, "look": _look, "cancel": _cancel}[verb](home, request)
    json.dump({"version": __version__, "host": platform.node(), **answer}, sys.stdout)


# ---- trainers ------------------------------------------------------------------------------------


def _begin(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Starts the trainer of a token once; another call only repeats the answer."""
    record = _record(home, request["token"])
    record.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(record.with_suffix(".lock")):
        if not record.exists():
            if missing := _missing(home, request):
                return {"missing": missing}
            trainer = _started(home, request)
            part = record.with_suffix(".part")
            part.write_text(trainer.model_dump_json(), encoding="utf-8")
            part.replace(record)
    return {"job": str(_identity(record).pid)}


def _missing(home: Path, request: dict[str, Any]) -> str:
    """The data set that must be sent first, or ""."""
    present = _content(home / "data" / request["dataset"])
    if request["content"] in ("", present):
        return ""
    return str(request["dataset"])


def _started(home: Path, request: dict[str, Any]) -> ProcessIdentity:
    run = home / "runs" / request["run"]
    run.mkdir(parents=True, exist_ok=True)
    (run / "spec.json").write_text(request["spec"], encoding="utf-8")
    (run / "STOP").unlink(missing_ok=True)  # of the attempt before
    script = run / f"job-{request['attempt']}.sh"
    script.write_text(request["script"], encoding="utf-8")
    code = _record(home, request["token"]).with_suffix(".code")
    with (run / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", _WRAPPER, "trainer", str(script), str(code)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives the connection
        )
    return ProcessIdentity.of(process.pid)


def _cancel(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Kills the session of a job."""
    for record in (home / "jobs").glob("*.json"):
        trainer = _identity(record)
        if str(trainer.pid) == request["job"] and trainer.process() is not None:
            record.with_suffix(".cancelled").touch()
            for process in _session(trainer.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
    return {}


def _session(leader: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) == leader:
                yield process


def _state(record: Path) -> str:
    """The state of a trainer, in Slurm's words."""
    trainer, code = _identity(record), record.with_suffix(".code")
    if trainer.process() is not None:
        return "RUNNING"
    if record.with_suffix(".cancelled").exists():
        return "CANCELLED"
    if not code.exists():
        return "KILLED" if trainer.is_of_this_boot else "NODE_FAIL"
    number = int(code.read_text(encoding="ascii"))
    if number > _SIGNALED:
        return "KILLED"
    return "FAILED" if number else "COMPLETED"


def _record(home: Path, token: str) -> Path:
    return home / "jobs" / f"{token}.json"


def _identity(record: Path) -> ProcessIdentity:
    return ProcessIdentity.model_validate_json(run_files.content(record))


# ---- what trainers have written ------------------------------------------------------------------


def _look(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The states of trainers, and new bytes of their runs."""
    return {
        "jobs": {
            token: _job(home, token, each)
            for token, each in request["jobs"].items()
            if _record(home, token).exists()
        }
    }


def _job(home: Path, token: str, known: dict[str, Any]) -> dict[str, Any]:
    """The state is read before the files, so those of an ended trainer are complete; the ends of
    journals before the list of files, so files that a journal names are in the list.
    """
    record, run = _record(home, token), home / "runs" / known["run"]
    state = _state(record)
    if known["stop"] and state == "RUNNING" and not (run / "STOP").exists():
        (run / "STOP").write_text(known["stop"], encoding="utf-8")
    ends = {path.name: path.stat().st_size for path in run.iterdir() if is_growing(path.name)}
    files: dict[str, list[Any]] = {}
    left = MOST_BYTES
    present = _files(run, state != "RUNNING")
    for name, stamp in present.items():
        if stamp == known["files"].get(name):
            continue
        files[name] = [*stamp, None]
        if stamp[0] <= left:
            left -= stamp[0]
            with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
                files[name] = [*stamp, _text(run / name, 0, stamp[0])]
    chunks, is_complete = {}, True
    for name, end in ends.items():
        begin = known["ends"].get(name, 0)
        length = min(end - begin, max(0, left))
        is_complete &= begin + length >= end
        if length > 0:
            chunks[name] = _text(run / name, begin, length)
            left -= length
    return {
        "state": state,
        "job": str(_identity(record).pid),
        "checkpoints": [name for name in present if name.startswith(f"{CHECKPOINTS}/")],
        "files": files,
        "chunks": chunks,
        "is_complete": is_complete,
    }


def is_growing(name: str) -> bool:
    """Whether a file of a run only grows, and only its trainer writes it."""
    is_of_trainer = run_files.is_journal(name) and (
        run_files.rank(name) is not None or name == run_files.LAUNCHER
    )
    return is_of_trainer or name == "log.txt"


def _files(run: Path, has_ended: bool) -> dict[str, list[int]]:
    """Bytes and time of the files in the folders of a run, such as samples; those with checkpoints
    only once it has ended.
    """
    found = {}
    for folder in run.iterdir():
        is_left_out = folder.name == SNAPSHOTS or (folder.name == CHECKPOINTS and not has_ended)
        if not folder.is_dir() or folder.is_symlink() or is_left_out:
            continue
        for path in folder.iterdir():
            is_whole = not path.name.startswith(".") and path.suffix != PART
            if is_whole and path.is_file() and not path.is_symlink():
                status = path.stat()
                found[f"{folder.name}/{path.name}"] = [status.st_size, int(status.st_mtime)]
    return found


def _text(path: Path, begin: int, length: int) -> str:
    with os.fdopen(run_files.plain(path), "rb") as file:
        file.seek(begin)
        return base64.b64encode(file.read(length)).decode("ascii")


# ---- data sets -----------------------------------------------------------------------------------


def _content(folder: Path) -> str:
    """The digest of a prepared set in its folder; "" without it."""
    with contextlib.suppress(OSError, ValueError, ValidationError):
        manifest = json.loads(run_files.content(folder / "manifest.json"))
        return str(manifest.get("content", ""))
    return ""


def _take_data(home: Path, name: str, digest: str) -> None:
    """Puts a prepared set in the place of an earlier one."""
    data = home / "data"
    data.mkdir(parents=True, exist_ok=True)
    with FileLock(data / f".{name}.lock"):
        part = data / f".{name}.part"
        shutil.rmtree(part, ignore_errors=True)
        with tarfile.open(fileobj=sys.stdin.buffer, mode="r|") as bundle:
            bundle.extractall(part, filter="data")
        if _content(part / name) != digest:
            sys.exit(f"data set {name} did not arrive as it was sent")
        shutil.rmtree(data / name, ignore_errors=True)
        (part / name).rename(data / name)
        part.rmdir()


if __name__ == "__main__":
    main(sys.argv[1:])
