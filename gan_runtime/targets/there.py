"""The half of a target that runs on another host: it puts runs in place and starts trainers there,
and answers with their states and with what they have written since.

    python -m gan_runtime.targets.there HOME place|begin|look|cancel <REQUEST >ANSWER
    python -m gan_runtime.targets.there HOME file NAME SIZE TIME OFFSET MOST >BYTES
    python -m gan_runtime.targets.there HOME data SET DIGEST FILE OFFSET <BYTES

Requests and answers are JSON. ANSWER and BYTES follow the line MARK, since start files of the shell
there may print something before. HOME is a folder for the runs of one dashboard: runs/ and data/ as
in every home, and jobs/ with a record of each started trainer by its token.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
from filelock import FileLock

from gan_runtime import __version__
from gan_runtime.records import run_files
from gan_runtime.records.identity import ProcessIdentity

MOST_BYTES = 8_000_000  # of files in one answer
MARK = b"----- gan_runtime.targets.there -----\n"
MANIFEST = "manifest.json"  # of a prepared set
SAMPLES, CHECKPOINTS = "samples", "checkpoints"
FOLDERS = (SAMPLES, CHECKPOINTS, "snapshots")  # that come to the home here
CANCELLED = ".cancelled"
PART = ".part"  # of files that are being written
PARTS = ".parts"  # a folder of sets that have not arrived whole: PARTS/SET/DIGEST/FILE
CHANGED = 73  # exit code: a file has been replaced or removed since it was listed
_LOG = re.compile(r"log(-[0-9]{1,6})?\.txt")
# The trainer in a new session, which begins once its record is written. Its exit code is written
# last; a signal adds 128.
_WRAPPER = """
read -r go || exit
bash "$1" </dev/null
code=$?
echo $code >"$2.part" && mv "$2.part" "$2"
"""
_SIGNALED = 128
_NOTHING = {  # of a run whose folder was removed there
    "state": "",
    "job": "",
    "checkpoints": [],
    "files": {},
    "chunks": {},
    "is_complete": True,
}


def main(words: list[str]) -> None:
    """Runs one command."""
    home, verb = Path(words[0]).expanduser().absolute(), words[1]
    if verb == "file":
        _send_file(home / "runs" / words[2], *map(int, words[3:]))
        return
    if verb == "data":
        name, digest, file_name, offset = words[2:]
        _take_data(home / "data" / PARTS / name / digest / file_name, int(offset))
        return
    request = json.load(sys.stdin)
    answer = {"place": _place, "begin": _begin, "look": _look, "cancel": _cancel}[verb](
        home, request
    )
    text = json.dumps({"version": __version__, "host": platform.node(), **answer})
    sys.stdout.buffer.write(MARK + text.encode())


def _send_file(path: Path, size: int, time: int, offset: int, most: int) -> None:
    """At most so many bytes of a file from `offset` on. Ends with CHANGED if it is not the one that
    was listed.
    """
    try:
        file = os.fdopen(run_files.plain(path), "rb")
    except FileNotFoundError:
        sys.exit(CHANGED)
    with file:
        status = os.fstat(file.fileno())
        if (status.st_size, int(status.st_mtime)) != (size, time):
            sys.exit(CHANGED)
        file.seek(offset)
        sys.stdout.buffer.write(MARK)
        while most and (piece := file.read(min(most, MOST_BYTES))):
            sys.stdout.buffer.write(piece)
            most -= len(piece)


# ---- trainers ------------------------------------------------------------------------------------


def _place(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Puts a run in its folder there, for a job that is submitted afterwards."""
    with _locked(home, request["token"]):
        return _placed(home, request)


def _begin(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Starts the trainer of a token once; another call only repeats the answer."""
    record = _record(home, request["token"])
    with _locked(home, request["token"]):
        if not record.exists():
            if obstacle := _placed(home, request):
                return obstacle
            _start(home, request, record)
    return {"job": str(_identity(record).pid)}


def _placed(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Writes the options and the script of an attempt; returns what prevents it, or {}."""
    if refusal := _refusal(home, request):
        return {"refusal": refusal}
    present = _present(home / "data", request)
    if present is not None:
        return {"present": present}
    run = home / "runs" / request["run"]
    run.mkdir(parents=True, exist_ok=True)
    (run / "spec.json").write_text(request["spec"], encoding="utf-8")
    (run / "STOP").unlink(missing_ok=True)  # of the attempt before
    _script(home, request).write_text(request["script"], encoding="utf-8")
    return {}


def _script(home: Path, request: dict[str, Any]) -> Path:
    return home / "runs" / str(request["run"]) / f"job-{request['attempt']}.sh"


@contextlib.contextmanager
def _locked(home: Path, token: str) -> Iterator[None]:
    lock = _record(home, token).with_suffix(".lock")
    lock.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(lock):
        yield


def _refusal(home: Path, request: dict[str, Any]) -> str:
    """Why the trainer must not begin; "" if it may."""
    if request["version"] != __version__:
        return (
            f"{platform.node()} has version {__version__} of this project, and the dashboard"
            f" {request['version']}: update it there"
        )
    if _cancelled(home, request["token"]).exists():
        return "it was canceled before it began"
    run = home / "runs" / request["run"]
    for name, end in request["ends"].items():
        if _bytes(run / name) < end:
            return (
                f"the files of {request['run']} are not on {platform.node()}, so it cannot continue"
                " there: start a new run"
            )
    return ""


def _bytes(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _start(home: Path, request: dict[str, Any], record: Path) -> None:
    """Starts the wrapper, writes its record, and lets it begin: no trainer is without a record."""
    script = _script(home, request)
    with (script.parent / "log.txt").open("ab") as log:
        process = subprocess.Popen(
            ["bash", "-c", _WRAPPER, "trainer", str(script), str(record.with_suffix(".code"))],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # it outlives the connection
        )
    assert process.stdin is not None
    with process.stdin as begin:
        part = record.with_suffix(PART)
        part.write_text(ProcessIdentity.of(process.pid).model_dump_json(), encoding="utf-8")
        part.replace(record)
        begin.write(b"go\n")


def _cancel(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """Kills the session of a token, which also never begins later."""
    record = _record(home, request["token"])
    with _locked(home, request["token"]):
        _cancelled(home, request["token"]).touch()
        if record.exists() and (leader := _identity(record)).process() is not None:
            for process in _session(leader.pid):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
    return {}


def _session(leader: int) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        with contextlib.suppress(ProcessLookupError):
            if os.getsid(process.pid) == leader:
                yield process


def _state(record: Path, trainer: ProcessIdentity) -> str:
    """The state of a trainer, in Slurm's words."""
    code = record.with_suffix(".code")
    if trainer.process() is not None:
        return "RUNNING"
    if record.with_suffix(CANCELLED).exists():
        return "CANCELLED"
    if not code.exists():
        return "KILLED" if trainer.is_of_this_boot else "NODE_FAIL"
    text = code.read_text(encoding="ascii", errors="replace").strip()
    number = int(text) if text.isdecimal() else 1
    if number > _SIGNALED:
        return "KILLED"
    return "FAILED" if number else "COMPLETED"


def _record(home: Path, token: str) -> Path:
    return home / "jobs" / f"{token}.json"


def _cancelled(home: Path, token: str) -> Path:
    return _record(home, token).with_suffix(CANCELLED)


def _identity(record: Path) -> ProcessIdentity:
    return ProcessIdentity.model_validate_json(run_files.content(record))


# ---- what trainers have written ------------------------------------------------------------------


def _look(home: Path, request: dict[str, Any]) -> dict[str, Any]:
    """The states of trainers, and new bytes of their runs."""
    jobs = {}
    for token, known in request["jobs"].items():
        # One run whose files were removed must not silence the others.
        with contextlib.suppress(OSError, ValueError):
            if known["has_ended"] is not None and not (home / "runs" / known["run"]).is_dir():
                jobs[token] = _NOTHING
            elif known["has_ended"] is not None or _record(home, token).exists():
                jobs[token] = _job(home, token, known)
    return {"jobs": jobs}


def _job(home: Path, token: str, known: dict[str, Any]) -> dict[str, Any]:
    """The state is read before the files, so those of an ended trainer are complete; the ends of
    journals before the list of files, so files that a journal names are in the list. Without room
    for all new files the journals wait for the next answer.

    `has_ended` of `known`: of the job of a scheduler; None for a trainer with a record.
    """
    run, has_ended, state, job = home / "runs" / known["run"], known["has_ended"], "", ""
    if has_ended is None:
        record = _record(home, token)
        trainer = _identity(record)
        state, job = _state(record, trainer), str(trainer.pid)
        has_ended = state != "RUNNING"
    if known["stop"] and not has_ended and not (run / "STOP").exists():
        (run / "STOP").write_text(known["stop"], encoding="utf-8")
    ends = {path.name: path.stat().st_size for path in run.iterdir() if is_growing(path.name)}
    fetched = (SAMPLES, CHECKPOINTS) if known["fetch"] else (SAMPLES,)
    present = _files(run, FOLDERS if has_ended else fetched)
    files, left, is_complete = _new_files(run, present, known["files"])
    chunks = {}
    for name, end in ends.items():
        begin = known["ends"].get(name, 0)
        length = min(max(0, end - begin), left if is_complete else 0)
        if length:
            chunks[name] = _text(run / name, begin, length)
            left -= length
        is_complete &= begin + length >= end
    return {
        "state": state,
        "job": job,
        "checkpoints": [name for name in present if name.startswith(f"{CHECKPOINTS}/")],
        "files": files,
        "chunks": chunks,
        "is_complete": is_complete,
    }


def _new_files(
    run: Path, present: dict[str, list[int]], known: dict[str, list[int]]
) -> tuple[dict[str, list[Any]], int, bool]:
    """The files that are not known yet, with their content unless one alone fills an answer; the
    bytes left in the answer; whether it has all of them.
    """
    files: dict[str, list[Any]] = {}
    left, is_complete = MOST_BYTES, True
    for name, stamp in present.items():
        if stamp == known.get(name):
            continue
        if stamp[0] > MOST_BYTES:
            files[name] = [*stamp, None]
        elif stamp[0] <= left:
            left -= stamp[0]
            with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
                files[name] = [*stamp, _text(run / name, 0, stamp[0])]
        else:
            is_complete = False
    return files, left, is_complete


def is_growing(name: str) -> bool:
    """Whether a file of a run only grows, and only its trainer writes it."""
    is_of_trainer = run_files.is_journal(name) and (
        run_files.rank(name) is not None or name == run_files.LAUNCHER
    )
    return is_of_trainer or _LOG.fullmatch(name) is not None


def _files(run: Path, folders: Sequence[str]) -> dict[str, list[int]]:
    """Bytes and time of the files in these folders of a run."""
    found = {}
    for folder in folders:
        if (run / folder).is_symlink() or not (run / folder).is_dir():
            continue
        for path in (run / folder).iterdir():
            is_whole = not path.name.startswith(".") and path.suffix != PART
            if is_whole and path.is_file() and not path.is_symlink():
                status = path.stat()
                found[f"{folder}/{path.name}"] = [status.st_size, int(status.st_mtime)]
    return found


def _text(path: Path, begin: int, length: int) -> str:
    with os.fdopen(run_files.plain(path), "rb") as file:
        file.seek(begin)
        return base64.b64encode(file.read(length)).decode("ascii")


# ---- data sets -----------------------------------------------------------------------------------


def content_of(folder: Path) -> str:
    """The digest of a prepared set in its folder; "" without it."""
    with contextlib.suppress(OSError, ValueError):
        manifest = json.loads(run_files.content(folder / MANIFEST))
        return str(manifest.get("content", ""))
    return ""


def _present(data: Path, request: dict[str, Any]) -> dict[str, int] | None:
    """How many bytes of each file of the run's data set have arrived; None if it is in place."""
    name, digest, sizes = request["dataset"], request["content"], request["sizes"]
    if digest in ("", content_of(data / name)):
        return None
    arrived = data / PARTS / name / digest
    present = {file: _bytes(arrived / file) for file in sizes}
    if present != sizes:
        return present
    if content_of(arrived) != digest:  # it was prepared again while it was sent
        shutil.rmtree(arrived)
        return dict.fromkeys(sizes, 0)
    earlier = arrived.with_suffix(".earlier")
    with FileLock(data / f".{name}.lock"):
        if (data / name).exists():  # a trainer that reads it keeps its open files
            (data / name).rename(earlier)
        arrived.rename(data / name)
    shutil.rmtree(arrived.parent)
    return None


def _take_data(path: Path, offset: int) -> None:
    """Continues a file of a set. A call whose connection is cut may still write: the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    with path.open("r+b") as file:
        file.seek(offset)
        shutil.copyfileobj(sys.stdin.buffer, file)


if __name__ == "__main__":
    main(sys.argv[1:])
