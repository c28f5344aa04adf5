"""Bundles: ended runs in one zip file, to be given away and loaded into another home.

A bundle holds what a run measured: options, journals, sample grids. Not in it are checkpoints, the log, the host's name and
folders, which would tell more of its owner than of the run. Checkpoints missing, an imported run cannot be resumed.
"""

from __future__ import annotations

import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from gan_runtime import commands, journal
from gan_runtime.errors import BundleError, RunStateError, SpecError
from gan_runtime.home import REPOSITORY, Home
from gan_runtime.journal import ENDED
from gan_runtime.rundir import RunDir

EXAMPLES = REPOSITORY / "examples" / "paper.zip"
MAX_BYTES = 2_000_000_000  # unpacked, so that a wrong file cannot fill the disk
# The files of a bundle; anything else in it, such as a path that leads out of the folder, is refused.
_MEMBER = re.compile(r"[A-Za-z0-9._-]+/(spec\.json|journal-[a-z0-9]+\.jsonl|samples/epoch-\d+\.png)")
_FOLDERS = re.compile(r"(?<![\w:/])(/[\w.+-]+)+/")
_PRIVATE_FACTS = ("hostname",)


def pack(runs: list[RunDir], target: Path, prefix: str = "") -> int:
    """Writes a bundle of ended runs; returns its bytes. `prefix` comes before the ids of runs and studies.

    Raises:
        RunStateError: a run still waits or trains.
        BundleError: the file cannot be written.
    """
    for run in runs:
        status = commands.latest_status(run).status
        if status not in ENDED:
            raise RunStateError(f"run {run.run_id} is {status}: only ended runs can be bundled.")
    aside = target.with_name(f".{target.name}.part")
    try:
        with zipfile.ZipFile(aside, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
            for run in runs:
                _pack_run(bundle, run, prefix)
        aside.replace(target)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise BundleError(f"{target} cannot be written ({error.strerror}): choose another file with --to.") from None
    return target.stat().st_size


def _pack_run(bundle: zipfile.ZipFile, run: RunDir, prefix: str) -> None:
    folder = f"{prefix}{run.run_id}"
    bundle.write(run.spec_path, f"{folder}/spec.json")
    for path in run.journals():
        lines = [_public(line, prefix) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        bundle.writestr(f"{folder}/{path.name}", "".join(f"{line}\n" for line in lines))
    for path in sorted(run.samples.glob("epoch-*.png")):
        bundle.write(path, f"{folder}/samples/{path.name}")


def _public(line: str, prefix: str) -> str:
    """A journal line without the host's name and folders, and with the study's id as it will be called."""
    if '"kind":"scalars"' in line or '"kind":"histogram"' in line:
        return line  # numbers only, and most of the bytes
    record: dict[str, Any] = json.loads(line)
    facts = record.get("facts")
    if facts:
        record["facts"] = {name: value for name, value in facts.items() if name not in _PRIVATE_FACTS}
    study = record.get("study")
    if study:
        study["study_id"] = f"{prefix}{study['study_id']}"
    return json.dumps(_without_folders(record), separators=(",", ":"))


def _without_folders(value: Any) -> Any:
    if isinstance(value, str):
        return _FOLDERS.sub("", value)
    if isinstance(value, list):
        return [_without_folders(one) for one in value]
    return {key: _without_folders(one) for key, one in value.items()} if isinstance(value, dict) else value


def unpack(source: Path, home: Home) -> list[str]:
    """Loads the runs of a bundle into a home; those whose ids are taken there already are left alone. Returns the new ids.

    Raises:
        BundleError: no bundle, damaged, or with files that do not belong into one; nothing is loaded.
        HomeError: the home cannot be written.
    """
    home.prepare()
    try:
        with zipfile.ZipFile(source) as bundle, tempfile.TemporaryDirectory(dir=home.runs, prefix=".import-") as aside:
            _check(bundle, source)
            bundle.extractall(aside)
            folders = sorted(path for path in Path(aside).iterdir() if path.is_dir())
            for folder in folders:
                _check_run(RunDir(folder), source)
            taken = {run.run_id for run in home.run_dirs()}
            new = [folder for folder in folders if folder.name not in taken]
            for folder in new:
                folder.rename(home.runs / folder.name)
            return [folder.name for folder in new]
    except (OSError, zipfile.BadZipFile) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no zip file, or damaged"
        raise BundleError(f"{source} cannot be read ({reason}): give a file made by `bundle`.") from None


def _check(bundle: zipfile.ZipFile, source: Path) -> None:
    foreign = [name for name in bundle.namelist() if not _MEMBER.fullmatch(name) or ".." in name]
    if foreign:
        raise BundleError(f"{source} holds {foreign[0]!r}, which belongs into no bundle: give a file made by `bundle`.")
    if sum(member.file_size for member in bundle.infolist()) > MAX_BYTES:
        raise BundleError(f"{source} holds more than {MAX_BYTES / 1e9:.0f} GB: give a smaller bundle.")
    if bundle.testzip() is not None:
        raise zipfile.BadZipFile


def _check_run(run: RunDir, source: Path) -> None:
    """A run whose options or history nobody can read must not get into the store."""
    try:
        run.spec()
        history = list(journal.read_all(run.supervisor_journal))
        ended = commands.latest_status(run).status in ENDED
    except (SpecError, OSError, ValueError):
        history, ended = [], False
    if not ended or not isinstance(history[0], journal.Created):
        raise BundleError(f"run {run.run_id} in {source} is not whole: make the bundle anew.")
