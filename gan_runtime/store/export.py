"""Some runs as plain files, for use without this project.

FOLDER/runs.parquet, scalars, epochs, …   the public views (docs/schema.md) but samples, or the same as .csv
FOLDER/samples/RUN/epoch-00001.png        the sample grids
FOLDER/specs/RUN/spec.json                the options; `train --spec` takes this file
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import duckdb

from gan_runtime.errors import ExportError
from gan_runtime.store.store import Store

VIEWS = ("runs", "scalars", "epochs", "histograms", "profiles", "memory", "phases", "kernels", "surfaces", "events")
Format = Literal["csv", "parquet"]


def export(store: Store, run_ids: list[str], folder: Path, form: Format) -> list[Path]:
    """Writes the files, over older ones of the same name, and returns their paths.

    Raises:
        ExportError: the folder cannot be made or written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [*_views(store, run_ids, folder, form), *_samples(store, run_ids, folder), *_specs(store, run_ids, folder)]
    except (OSError, duckdb.IOException) as error:
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise ExportError(f"{folder} cannot be written ({reason}): choose another folder with --to DIR.") from None


def _views(store: Store, run_ids: list[str], folder: Path, form: Format) -> list[Path]:
    paths = [folder / f"{view}.{form}" for view in VIEWS]
    for view, path in zip(VIEWS, paths, strict=True):
        store.copy_view(view, run_ids, path)
    return paths


def _samples(store: Store, run_ids: list[str], folder: Path) -> list[Path]:
    paths: list[Path] = []
    for run_id in run_ids:
        rows = store.rows("SELECT epoch, png FROM samples WHERE run_id = ? AND png IS NOT NULL ORDER BY epoch", [run_id])
        for epoch, png in rows:
            paths.append(_made(folder / "samples" / run_id) / f"epoch-{epoch:05d}.png")
            paths[-1].write_bytes(png)
    return paths


def _specs(store: Store, run_ids: list[str], folder: Path) -> list[Path]:
    paths: list[Path] = []
    for run_id, spec in store.rows("SELECT run_id, spec FROM runs WHERE list_contains(?, run_id)", [run_ids]):
        paths.append(_made(folder / "specs" / run_id) / "spec.json")
        paths[-1].write_text(json.dumps(json.loads(spec), indent=2) + "\n", encoding="utf-8")
    return paths


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder
