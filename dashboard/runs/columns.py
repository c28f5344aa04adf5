"""Columns of the table of Runs: losses, quality and disk space, and a line with the space of
everything.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from gan_runtime.base import formats
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.catalog.declarations import Declarations
from gan_runtime.catalog.evaluations import caution_of
from gan_runtime.commands.runtime import Runtime
from gan_runtime.supervision.maintenance import Space

LOSSES = "losses"
QUALITY, RANGE = "quality", "quality_range"
WARNED_WIDTH = 320  # pixels of the interval, where a warning precedes it
QUALITY_HELP = (
    "Best measured epoch. Lower is better. Scores of different data sets, or of different"
    " classifiers, are not comparable."
)


def loss_columns(declaration: Declarations, workloads: int) -> dict[str, Any]:
    """The loss columns by name.

    Losses of several workloads share one column: separate columns would be mostly empty.
    """
    if workloads > 1:
        return {
            LOSSES: st.column_config.TextColumn("Losses", width="medium", help="At the last step.")
        }
    return {
        loss.name: st.column_config.NumberColumn(
            declaration.loss_title(loss),
            help=f"At the last step, in {loss.unit}." if loss.unit else "At the last step.",
        )
        for loss in declaration.losses
    }


def losses_in_words(row: Mapping[Hashable, Any]) -> str:
    """G 0.942 · D 1.082; "–" before the first step. `row`: of the table of runs."""
    declaration = declarations.of(row["workload"])
    values = [(declaration.loss_name(loss), row[loss.name]) for loss in declaration.losses]
    return (
        " · ".join(f"{name} {formats.loss(value)}" for name, value in values if not pd.isna(value))
        or "–"
    )


def quality_column(table: pd.DataFrame) -> dict[str, Any]:
    """The column of the best values, which sort as numbers, by its name. `table`: as
    `with_quality`.
    """
    titles = _quality_titles(table)
    title = f"Quality ({titles[0]})" if len(titles) == 1 else "Quality"
    return {QUALITY: st.column_config.NumberColumn(title, help=QUALITY_HELP)}


def range_column(table: pd.DataFrame) -> dict[str, Any]:
    """The column with what belongs to the value of `quality_column`, in words, by its name."""
    is_mixed, is_warned = len(_quality_titles(table)) > 1, table["quality_warning"].any()
    return {
        RANGE: st.column_config.TextColumn(
            "Quality: score, 95%" if is_mixed else "Quality, 95%",
            width=WARNED_WIDTH if is_warned else None,
            help=f"{'The score, its' if is_mixed else 'Its'} 95% interval, and the epoch.",
        )
    }


def with_quality(table: pd.DataFrame, best: pd.DataFrame) -> pd.DataFrame:
    """The table with the best measured quality, its title, and its interval in words, which name
    the score if runs have different ones.

    `best`: as `queries.best_qualities`.
    """
    qualities = best.reindex(table["run_id"])
    scores = [
        None if pd.isna(name) else declarations.of(workload).table([name])[name]
        for workload, name in zip(table["workload"], qualities["metric"], strict=True)
    ]
    named = table.assign(
        quality=qualities["value"].to_numpy(float),
        quality_title=[score.title if score else "" for score in scores],
        quality_warning=qualities["warning"].fillna("").to_numpy(str) != "",
    )
    rows = qualities.to_dict("records")
    is_mixed = len(_quality_titles(named)) > 1
    ranges = [
        _range(score, row, is_mixed) if score else "–"
        for score, row in zip(scores, rows, strict=True)
    ]
    return named.assign(**{RANGE: ranges})


def _quality_titles(table: pd.DataFrame) -> list[str]:
    return sorted(filter(None, table["quality_title"].unique()))


def _range(metric: Metric, row: Mapping[Hashable, Any], is_mixed: bool) -> str:
    """0.012 to 0.016, epoch 9; with the score: Error, 0.012 to 0.016, epoch 9. A score with a
    warning begins with its cause.
    """
    has_interval = not (pd.isna(row["low"]) or pd.isna(row["high"]))
    between = (
        " to ".join(metric.in_words(row[end]) for end in ("low", "high")) if has_interval else ""
    )
    cause = caution_of(row["evaluation"]) if row["warning"] else ""
    score = metric.title if is_mixed else ""
    return ", ".join(filter(None, [cause, score, between, f"epoch {row['epoch']:.0f}"]))


def with_space(table: pd.DataFrame, space: Space | None) -> pd.DataFrame:
    """The table with the bytes of each run; NaN before they are measured."""
    bytes_by_run = space.runs if space is not None else {}
    return table.assign(
        space=pd.array(
            [bytes_by_run.get(run_id) for run_id in table["run_id"]], dtype="Float64"
        ).astype(float)
    )


def show_space(runtime: Runtime) -> None:
    """What takes space, largest first, in a line; nothing before it is measured."""
    space = runtime.maintenance.space
    if space is not None:
        st.caption(space_in_words(space))


def space_in_words(space: Space) -> str:
    """Runs 1.2 GB · database 90 MB · … · 41 GB free on the disk."""
    parts = {
        "runs": space.all_runs,
        "data sets": space.data,
        "jobs and uploads": space.jobs,
        "database": space.database,
        "temporary files of queries": space.spill,
        "Keras' cache": space.keras_cache,
        "trash": space.bin,
    }
    largest = sorted(parts.items(), key=lambda part: -part[1])
    usage = " · ".join(f"{name} {formats.size(size)}" for name, size in largest if size >= 1_000)
    free = f"{formats.size(space.free)} free on the disk"
    if space.runs_disk is not None:
        free += f" · {formats.size(space.runs_disk.free)} free on the disk of runs"
    return f"Space: {f'{usage} · ' if usage else ''}{free}"
