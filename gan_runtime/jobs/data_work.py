"""The work of the jobs about data sets: preparing one, and looking through pictures before that."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from gan_runtime.data import loading, preparing
from gan_runtime.data.preparing import Asked
from gan_runtime.jobs import uploads
from gan_runtime.jobs.task import Task

GRID_FILE = "grid.npy"  # uint8 (up to 64, pixels, pixels, channels), in the results of a look


def as_options(asked: Asked) -> dict[str, Any]:
    """A request as the options of a job."""
    return {**vars(asked), "source": str(asked.source or ""), "options": dict(asked.options)}


def prepare(task: Task) -> dict[str, Any]:
    """Gets one data set ready; what was dropped into the browser for it is then removed. Raises DatasetError, SpecError, HomeError."""
    asked = _asked(task.options)
    preparing.prepare(task.home, asked, task.progress, task.work, task.past_cancelling)
    if asked.source is not None:
        uploads.done_with(task.home, asked.source)
    name = asked.set_name
    return {
        "name": name,
        "rows": loading.availability(name, task.home).images,
        "fields": list(loading.fields_of(name, task.home)),
    }


def look_through(task: Task) -> dict[str, Any]:
    """Tells what a preparation would make of its pictures. Raises as `prepare`."""
    look = preparing.survey(_asked(task.options), task.progress)
    np.save(task.results / GRID_FILE, look.grid)
    return {
        **look.summary.model_dump(mode="json"),
        "rows": look.rows,
        "fields": list(look.fields),
        "grid_labels": list(look.grid_labels),
        "bytes_on_disk": look.bytes_on_disk,
    }


def _asked(options: dict[str, Any]) -> Asked:
    source = Path(options["source"]) if options["source"] else None
    return Asked(options["preparation"], options["name"], source, options["options"])
