"""Export of runs as files for other programs: tables, or event files of TensorBoard.

FOLDER/runs.parquet, scalars, epochs, …   the public views without samples, or .csv
FOLDER/samples/RUN/samples-00001.png      the images, named as in the run's folder
FOLDER/specs/RUN/spec.json                the options; `train --spec` takes this file

FOLDER/RUN/events.out.tfevents.…          every number by step, the epoch, the images, the options
"""

from __future__ import annotations

import io
import itertools
import json
import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from PIL import Image

from gan_runtime.base import disk
from gan_runtime.base.errors import ExportError
from gan_runtime.bundles import event_files
from gan_runtime.bundles.event_files import EventImage, StepEvent
from gan_runtime.bundles.tensorboard import EPOCH, OPTIONS
from gan_runtime.store import database_file, queries
from gan_runtime.store.queries.outputs import OLD_KIND
from gan_runtime.store.record_tables import TABLES
from gan_runtime.store.store import Store

# Views of several kinds of records.
OTHER_VIEWS = ("surfaces", *database_file.domain_views())
VIEWS = (*TABLES.exported, *OTHER_VIEWS)  # of the records of this program
Format = Literal["csv", "parquet"]
FileWriter = Callable[[Path], None]


def export(
    store: Store, run_ids: list[str], folder: Path, form: Format, overwrite: bool = False
) -> list[Path]:
    """Writes the files and returns their paths.

    Raises:
        UnknownRunError: a run is not stored, or cannot be read; nothing is written.
        TargetError: a file exists and `overwrite` is False, or it is not regular; nothing is
            written.
        ExportError: the folder cannot be created or written.
    """
    for run_id in run_ids:
        queries.run(store, run_id)
    writers = {
        **_views(store, run_ids, folder, form),
        **_samples(store, run_ids, folder),
        **_specs(store, run_ids, folder),
    }
    try:
        disk.check_targets(writers, overwrite)
        for path, write in writers.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with disk.whole_target(path, overwrite) as temporary:
                write(temporary)
        return list(writers)
    except OSError as error:
        reason = (error.strerror or str(error)).splitlines()[0]
        raise ExportError(
            f"{folder} cannot be written ({reason}): choose another folder with --to DIR."
        ) from None


def _views(store: Store, run_ids: list[str], folder: Path, form: Format) -> dict[Path, FileWriter]:
    return {
        folder / f"{view}.{form}": partial(store.copy_view, view, run_ids)
        for view in (*store.tables.exported, *OTHER_VIEWS)
    }


def _samples(store: Store, run_ids: list[str], folder: Path) -> dict[Path, FileWriter]:
    rows = store.rows(
        """
        SELECT run_id, kind, epoch FROM samples
        WHERE list_contains(?, run_id) AND png IS NOT NULL AND regexp_full_match(kind,
            '[a-z][a-z0-9_]*')
        ORDER BY run_id, epoch, kind
        """,
        [run_ids],
    )
    return {
        folder / "samples" / run_id / _file(kind, epoch): partial(
            _write_png, store, run_id, kind, epoch
        )
        for run_id, kind, epoch in rows
    }


def _file(kind: str, epoch: int) -> str:
    return f"{'epoch' if kind == OLD_KIND else kind}-{epoch:05d}.png"


def _write_png(store: Store, run_id: str, kind: str, epoch: int, path: Path) -> None:
    rows = store.rows(
        "SELECT png FROM samples WHERE run_id = ? AND kind = ? AND epoch = ? AND png IS NOT NULL",
        [run_id, kind, epoch],
    )
    path.write_bytes(rows[-1][0])


def _specs(store: Store, run_ids: list[str], folder: Path) -> dict[Path, FileWriter]:
    rows = store.rows("SELECT run_id, spec FROM runs WHERE list_contains(?, run_id)", [run_ids])
    return {
        folder / "specs" / run_id / "spec.json": partial(_write_spec, spec) for run_id, spec in rows
    }


def _write_spec(spec: str, path: Path) -> None:
    path.write_text(json.dumps(json.loads(spec), indent=2) + "\n", encoding="utf-8")


# ---- event files ---------------------------------------------------------------------------------


def export_event_files(
    store: Store, run_ids: list[str], folder: Path, overwrite: bool = False
) -> list[Path]:
    """Writes an event file for each run and returns their paths.

    Raises:
        UnknownRunError: a run is not stored; nothing is written.
        TargetError: a file exists and `overwrite` is False; nothing is written.
        ExportError: the folder cannot be written.
    """
    begins = {run_id: queries.run(store, run_id).created_at.timestamp() for run_id in run_ids}
    paths = {
        run_id: folder / run_id / f"events.out.tfevents.{int(begin)}.gan-dashboard"
        for run_id, begin in begins.items()
    }
    try:
        disk.check_targets(paths.values(), overwrite)
        for run_id, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with disk.whole_target(path, overwrite) as temporary, temporary.open("wb") as file:
                event_files.write(file, _events(store, run_id, begins[run_id]))
    except OSError as error:
        raise ExportError(
            f"{folder} cannot be written ({error.strerror}): choose another folder with --to DIR."
        ) from None
    return list(paths.values())


def _events(store: Store, run_id: str, begin: float) -> Iterator[StepEvent]:
    """The options, then the numbers and images of each step. `begin`: seconds since 1970."""
    options = json.dumps(json.loads(queries.run(store, run_id).spec), indent=2)
    # Four spaces: TensorBoard shows it as code.
    yield StepEvent(begin, texts={OPTIONS: re.sub("^", "    ", options, flags=re.MULTILINE)})
    rows = store.rows(
        "SELECT step, epoch, metric, value, wall_s FROM numbers WHERE run_id = ? ORDER BY step",
        [run_id],
    )
    grids = [
        (grid.step, kind, grid)
        for kind in queries.sample_kinds(store, [run_id])
        for epoch in queries.sample_epochs(store, [run_id], kind)
        if (grid := queries.sample(store, run_id, epoch, kind)) and grid.epoch == epoch
    ]
    numbers = {step: list(of_step) for step, of_step in itertools.groupby(rows, lambda row: row[0])}
    wall_s = 0.0
    for step in sorted({*numbers, *(grid_step for grid_step, *_ in grids)}):
        of_step = numbers.get(step, [])
        pictures = {kind: grid for grid_step, kind, grid in grids if grid_step == step}
        wall_s = max([wall_s, *(row[4] for row in of_step if math.isfinite(row[4]))])
        epoch = max([*(row[1] for row in of_step), *(grid.epoch for grid in pictures.values())])
        yield StepEvent(
            begin + wall_s,
            step,
            {EPOCH: float(epoch), **{row[2]: row[3] for row in of_step}},
            {kind: [EventImage(grid.png, *_size(grid.png))] for kind, grid in pictures.items()},
        )


def _size(png: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(png), formats=("PNG",)) as image:
        return image.size
