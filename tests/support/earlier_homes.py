"""Homes of earlier schema versions: a run trained by the program of that version, and the
results.duckdb that it built from the run's journals.

They are in tests/support/fixtures/schemas/N.tar.xz. Each released schema version gets one, created
with the program of that release:

    python -m gan_runtime train --home DIR --set workload=mlp_gan --set dataset=digits \
        --set epochs=2 --set batch_size_global=256 --set name=of-schema-N
    python -m tests.support.earlier_homes DIR
"""

from __future__ import annotations

import json
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.database_file import SCHEMA_VERSION
from gan_runtime.supervision.store_recovery import rebuild

FOLDER = Path(__file__).parent / "fixtures" / "schemas"
VERSIONS = sorted(int(path.name.partition(".")[0]) for path in FOLDER.glob("*.tar.xz"))
_NEUTRAL = {
    "cpu_model": "a processor",
    "cpu_flags": [],
    "hostname": "a-host",
    "platform": "Linux",
    "commit": "",
}


def unpacked(version: int, home: Home, with_database: bool = True) -> RunDir:
    """Unpacks the run of a version, called run-000N, and its database into a home."""
    with tarfile.open(FOLDER / f"{version}.tar.xz") as archive:
        members = [
            member for member in archive if with_database or member.name != home.database.name
        ]
        archive.extractall(home.path, members, filter="data")
    return home.run_dir(f"run-{version:04d}")


def store(run: RunDir) -> Path:
    """Creates the fixture of this version from a run, with small images and no machine details."""
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder)).prepare()
        copy = home.runs / f"run-{SCHEMA_VERSION:04d}"
        copy.mkdir()
        shutil.copy(run.spec_path, copy)
        for path in run.path.glob("journal-*.jsonl"):
            lines = [_neutral(line) for line in path.read_text(encoding="utf-8").splitlines()]
            (copy / path.name).write_text("\n".join(lines) + "\n", encoding="utf-8")
        (copy / "samples").mkdir()
        for path in run.samples.glob("*.png"):
            Image.fromarray(np.tile(np.arange(0, 256, 8, dtype=np.uint8), (32, 1))).save(
                copy / "samples" / path.name
            )
        rebuild(home)
        target = FOLDER / f"{SCHEMA_VERSION}.tar.xz"
        with tarfile.open(target, "w:xz") as archive:
            for path in [home.database, *sorted(copy.rglob("*.*"))]:
                archive.add(path, str(path.relative_to(home.path)), filter=_nobody)
    return target


def _neutral(line: str) -> str:
    record = json.loads(line)
    if record["kind"] != "host":
        return line
    record["facts"] |= {name: value for name, value in _NEUTRAL.items() if name in record["facts"]}
    return json.dumps(record, separators=(",", ":"))


def _nobody(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(uid=0, gid=0, uname="", gname="", mtime=0, mode=0o644, deep=False)


if __name__ == "__main__":
    (trained,) = Home(Path(sys.argv[1])).run_dirs()
    print(store(trained))
