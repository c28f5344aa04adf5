"""Answers of the command line as tables for people, and all that is said of one run.

Times are UTC.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from datetime import datetime
from typing import Any

import pandas as pd
from rich.table import Table

from gan_runtime.catalog import declared
from gan_runtime.hardware.hosts import Host
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.store.user_sql import Answer

# In a cell, and in a table: more takes minutes to lay out; JSON has all.
MOST_LETTERS, MOST_EVENTS = 5_000, 1_000


def devices(host: Host) -> Table:
    """One row per kind of accelerator; what is missing with its reason."""
    made = table("accelerator", "usable", "devices", "engines", "name")
    for name, device in host.devices.items():
        engines = ", ".join(device.engines) if device.available else ""
        made.add_row(
            name,
            "yes" if device.available else "no",
            str(device.count),
            engines,
            device.name or device.reason,
        )
    return made


def runs(frame: pd.DataFrame) -> Table:
    """One row a run of `queries.run_table` and its `bytes`, with a column for each loss that
    its workloads declare.
    """
    known = declared.together(frame["workload"])
    made = table(
        "run",
        "name",
        "status",
        "workload",
        "dataset",
        "on",
        "batch",
        "epochs",
        "images/s",
        *(_begin_small(known.loss_title(loss)) for loss in known.losses),
        "created (UTC)",
        "MB",
        "marks",
    )
    for row in frame.to_dict("records"):
        rates = (row["images_per_s"], *(row[loss.name] for loss in known.losses))
        made.add_row(
            row["run_id"],
            "" if row["name"] == row["run_id"] else row["name"],
            row["status"],
            row["workload"],
            row["dataset"],
            f"{row['replicas'] * row['workers']} × {row['accelerator']}",
            str(row["batch_size_global"]),
            f"{row['epochs_done']}/{row['epochs']}",
            *("" if pd.isna(value) else _number(value) for value in rates),
            _time(row["created_at"]),
            f"{row['bytes'] / 1e6:,.1f}",
            ", ".join(
                [
                    *(name for name in ("pinned", "hidden") if row[name]),
                    *(f"#{tag}" for tag in row["tags"]),
                ]
            ),
        )
    return made


def run_tables(record: dict[str, Any]) -> list[Table]:
    """A run's record (`record.of_run`) as tables, one per part that has something in it."""
    progress = {name: value for name, value in record["progress"].items() if name != "newest"}
    parts = {
        "run": {name: value for name, value in record["run"].items() if name != "color"},
        "spec": record["spec"],
        "progress": {**progress, **record["progress"]["newest"]},
        "seconds per phase": record["phases"],
        "peak memory": {
            name: size for name, size in (record["memory"] or {}).items() if size is not None
        },
    }
    tables = [_pairs(title, pairs) for title, pairs in parts.items() if pairs]
    if record["profile"]:
        tables.append(_profile(record["profile"]))
    left_out = max(0, len(record["events"]) - MOST_EVENTS)
    title = (
        f"events ({left_out:,} earlier ones are left out: --json has all)" if left_out else "events"
    )
    events = table("at (UTC)", "attempt", "level", "kind", "message", title=title)
    for event in record["events"][left_out:]:
        events.add_row(
            *(_cell(event[name]) for name in ("logged_at", "attempt", "level", "kind", "message"))
        )
    return [*tables, events]


def _profile(rows: list[dict[str, Any]]) -> Table:
    """Where a step's time goes, largest share first."""
    made = table(
        "phase",
        "network",
        "category",
        "seconds per step",
        "share",
        title=f"time of a step ({rows[0]['steps']} profiled)",
    )
    for row in rows:
        names = (row["phase"], row["network"], row["category"])
        made.add_row(*names, _number(row["seconds_per_step"]), f"{row['share']:.1%}")
    return made


def answer(found: Answer) -> Table:
    """What a person's SQL gave."""
    made = table(*found.columns)
    for row in found.rows:
        made.add_row(*(_cell(value) for value in row))
    return made


def counts(rows: dict[str, int]) -> str:
    """runs: 3, scalars: 1,234, …"""
    return ", ".join(f"{name}: {count:,}" for name, count in rows.items())


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table with these columns."""
    made = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made


def _pairs(title: str, pairs: dict[str, Any]) -> Table:
    made = table("", "", title=title)
    made.show_header = False
    for name, value in pairs.items():
        made.add_row(name, _cell(value))
    return made


def _cell(value: Any) -> str:
    match value:
        case None:
            return ""
        case float():
            return _number(value)
        case datetime():
            return _time(value)
        case bytes():
            return f"({len(value):,} bytes)"
        case _:
            return (
                words
                if len(words := str(value)) <= MOST_LETTERS
                else f"{words[: MOST_LETTERS - 1]}…"
            )


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < math.inf else f"{value:.4g}"


def _begin_small(text: str) -> str:
    return text[:1].lower() + text[1:]


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def of_run(store: Store, run_id: str) -> dict[str, Any]:
    """Keys: run, spec, host (None before the first attempt), progress, phases (seconds), profile
    (largest share first), memory (None before the first epoch) and events, oldest first.

    Raises:
        UnknownRunError: no such run.
    """
    run = asdict(queries.run(store, run_id))
    spec, host = json.loads(run.pop("spec")), json.loads(run.pop("host") or "null")
    memory = queries.peak_memory(store, run_id)
    return {
        "run": run,
        "spec": spec,
        "host": host,
        "progress": asdict(queries.progress(store, run_id)),
        "phases": queries.phases(store, run_id),
        "profile": queries.profile(store, run_id).to_dict("records"),
        "memory": asdict(memory) if memory else None,
        "events": queries.events(store, run_id).to_dict("records"),
    }
