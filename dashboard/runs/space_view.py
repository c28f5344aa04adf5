"""The space of the Runs page: of each run in the table, and of all else in a line below it."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import words
from gan_runtime.commands.runtime import Runtime
from gan_runtime.supervision.maintenance import Space


def with_space(table: pd.DataFrame, space: Space | None) -> pd.DataFrame:
    """The table with the bytes of each run; NaN where nobody has measured yet."""
    known = space.runs if space is not None else {}
    return table.assign(
        space=pd.array([known.get(run_id) for run_id in table["run_id"]], dtype="Float64").astype(float)
    )


def show(runtime: Runtime) -> None:
    """What takes space beside each other, the largest first; nothing until it was measured."""
    space = runtime.housekeeping.space
    if space is not None:
        st.caption(in_words(space))


def in_words(space: Space) -> str:
    """Runs 1.2 GB · database 90 MB · … · 41 GB free on the disk."""
    parts = {
        "runs": space.all_runs,
        "data sets": space.data,
        "jobs and uploads": space.jobs,
        "database": space.database,
        "put aside by queries": space.spill,
        "Keras' cache": space.keras_cache,
        "bin": space.bin,
    }
    largest = sorted(parts.items(), key=lambda part: -part[1])
    taken = " · ".join(f"{name} {words.size(size)}" for name, size in largest if size >= 1_000)
    left = f"{words.size(space.free)} free on the disk"
    if space.runs_disk is not None:
        left += f" · {words.size(space.runs_disk.free)} free on the disk of runs"
    return f"Space: {f'{taken} · ' if taken else ''}{left}"
