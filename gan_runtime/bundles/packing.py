"""Packing: what ended runs measured and drew, in one file.

Not in it are checkpoints, the log, the host's name and folders, which would tell more of its owner
than of the run. Checkpoints missing, an imported run cannot be resumed.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path
from typing import Any

from gan_runtime import __version__
from gan_runtime.base import output_files
from gan_runtime.base.errors import BundleError, PictureError, RunStateError, quoted
from gan_runtime.bundles.layout import (
    FORMAT,
    MANIFEST,
    MAX_BYTES,
    MAX_FILM_BYTES,
    MAX_MEMBERS,
    is_bloated,
    is_whole,
    most_bytes,
)
from gan_runtime.bundles.privacy import Privacy, records_of
from gan_runtime.records import film_files
from gan_runtime.records import sample_files as pictures
from gan_runtime.records.home import SUBMITTED_NAME
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import latest_status


def pack(
    runs: list[RunDir], target: Path, prefix: str = "", overwrite: bool = False, films: bool = True
) -> int:
    """Writes a bundle of ended runs; returns its bytes.

    `prefix` comes before the ids of runs and studies. `films`: those of iterations too, some
    megabytes each.

    Raises:
        RunStateError: a run still waits or trains.
        BundleError: no home would take a run in under that name, a run is not whole, they are too
            large together, or the file cannot be
            written.
        TargetError: the file is there already and `overwrite` is not given, or it is no plain file.
    """
    for run in runs:
        _check(run, prefix)
    try:
        with output_files.whole_file(target, overwrite) as aside:
            with zipfile.ZipFile(aside, "x", zipfile.ZIP_DEFLATED, compresslevel=9) as bundle:
                bundle.writestr(MANIFEST, json.dumps({"format": FORMAT, "program": __version__}))
                film_bytes = 0
                for run in runs:
                    _pack_run(bundle, run, prefix)
                    film_bytes += _pack_films(bundle, run, prefix) if films else 0
                _check_size(bundle, film_bytes)
            size = aside.stat().st_size
    except OSError as error:
        raise BundleError(
            f"{target} cannot be written ({error.strerror}): choose another file with --to."
        ) from None
    return size


def _check(run: RunDir, prefix: str) -> None:
    if not SUBMITTED_NAME.fullmatch(f"{prefix}{run.run_id}"):
        raise BundleError(
            f"a run called {quoted(prefix + run.run_id)} would be imported nowhere: use a prefix"
            " and a name of small letters, digits and single '-', with the run's number of 4 to 8"
            " digits at its end, such as example-quick-0007."
        )
    status = latest_status(run).status
    if status not in ENDED:
        raise RunStateError(f"run {run.run_id} is {status}: only ended runs can be bundled.")
    for path in run.journals():
        size, most = path.stat().st_size, most_bytes(f"{prefix}{run.run_id}/{path.name}") or 0
        if size > most:
            raise BundleError(
                f"run {run.run_id} cannot be bundled: {path.name} has {size / 1e6:,.0f} MB, but a"
                f" bundle may have {most / 1e6:,.0f} MB there: leave that run out."
            )
    if not is_whole(run):
        raise BundleError(
            f"run {run.run_id} cannot be bundled: its options or its history cannot be read."
        )


def _pack_run(bundle: zipfile.ZipFile, run: RunDir, prefix: str) -> None:
    folder = f"{prefix}{run.run_id}"
    journals = run.journals()
    records = (record for path in journals for record in records_of(path))
    privacy = Privacy(run, (record for record in records if isinstance(record, dict)))
    bundle.writestr(
        f"{folder}/spec.json", json.dumps(privacy.spec(run.spec().model_dump()), indent=2)
    )
    for path in journals:
        with bundle.open(f"{folder}/{path.name}", "w") as member:
            for record in records_of(path):
                member.write(_line(privacy, record, prefix) + b"\n")
    for path in sorted(run.samples.glob("*.png")):
        if most_bytes(f"{folder}/samples/{path.name}"):
            with contextlib.suppress(
                PictureError
            ):  # a damaged grid: its event says so, and nobody could load the bundle
                bundle.writestr(
                    f"{folder}/samples/{path.name}",
                    pictures.read(run, f"{run.samples.name}/{path.name}"),
                )


def _pack_films(bundle: zipfile.ZipFile, run: RunDir, prefix: str) -> int:
    """Those that a record names; returns their bytes, unpacked.

    A damaged one stays: the page says that it is not here.
    """
    film_bytes = 0
    for path in film_files.named(run):
        file = f"{run.films.name}/{path.name}"
        with contextlib.suppress(PictureError):
            film_bytes += film_files.read(run, file).nbytes
            # Packed already, and once more is in vain.
            bundle.writestr(f"{prefix}{run.run_id}/{file}", path.read_bytes(), zipfile.ZIP_STORED)
    return film_bytes


def _check_size(bundle: zipfile.ZipFile, film_bytes: int) -> None:
    """Raises BundleError where no home would take it in."""
    members = bundle.infolist()
    if bloated := next(filter(is_bloated, members), None):
        raise BundleError(
            f"{bloated.filename} repeats itself too much to be measurements"
            f" ({bloated.file_size / 1e6:,.0f} MB packed into {bloated.compress_size / 1e3:,.0f}"
            " kB), so no home would take it in: leave that run out."
        )
    size = sum(member.file_size for member in members)
    if size > MAX_BYTES or film_bytes > MAX_FILM_BYTES or len(members) > MAX_MEMBERS:
        raise BundleError(
            f"these runs hold {size / 1e9:.1f} GB in {len(members):,} files and"
            f" {film_bytes / 1e9:.1f} GB of films, but a bundle has at most {MAX_BYTES / 1e9:.0f}"
            f" GB, {MAX_MEMBERS:,} files and {MAX_FILM_BYTES / 1e9:.0f} GB of films: bundle fewer"
            " runs, or give --no-films."
        )


def _line(privacy: Privacy, record: bytes | dict[str, Any], prefix: str) -> bytes:
    """A journal's line as others may read it, with the study's id as it will be called."""
    if isinstance(record, bytes):
        return record
    public = privacy.record(record)
    if isinstance(public.get("study"), dict):
        public["study"]["study_id"] = f"{prefix}{public['study']['study_id']}"
    return json.dumps(public, separators=(",", ":")).encode()
