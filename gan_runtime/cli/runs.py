"""`runs`, `show`, `stop` and `queue`: the state of runs, and the order in which they train."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table

from gan_runtime import device_locks
from gan_runtime.base import disk, formats
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import caution_of
from gan_runtime.cli import (
    HomeOption,
    JsonOption,
    OnlyIfFinishedOption,
    RunArgument,
    commands,
    dependency,
    output,
)
from gan_runtime.commands.queue import Direction
from gan_runtime.device_locks import Occupancy
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import latest_status
from gan_runtime.spec.run_options import HERE
from gan_runtime.store import ingest, queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

NO_RUNS = (
    f"no runs yet: start one with `{command_line()} train --preset quick`, or on the Launch page."
)
MOST_EVENTS = 1_000  # more take minutes to lay out; JSON has all
DRIVER_SECONDS = 5.0  # timeout for the GPU driver


def runs(
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also list hidden runs. JSON always has them.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs: pinned ones first, then the newest."""
    folder = Home.choose(home)
    store = ingest.store_of(folder)
    for name, reason in queries.set_aside(store).items():
        output.notes().print(f"{name} cannot be read and is skipped: {reason}.")
    frame = queries.run_table(store)
    frame["bytes"] = [disk.used_bytes(folder.runs / run_id) for run_id in frame["run_id"]]
    best = queries.best_qualities(store)[["value", "metric", "warning", "evaluation"]]
    best.columns = ["quality", "quality_metric", "quality_warning", "quality_evaluation"]
    frame = frame.join(best, on="run_id")
    if as_json:
        frame = frame.drop(columns="spec")  # `show --json` has the options, not as text within JSON
        return output.print_json(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    if frame.empty:
        return output.say(NO_RUNS)
    if skipped := 0 if hidden else int(frame["hidden"].sum()):
        output.note(f"{formats.quantity(skipped, 'hidden run')} not listed: use --hidden.")
    return output.answers().print(_run_table(frame[~frame["hidden"]] if skipped else frame))


def _run_table(frame: pd.DataFrame) -> Table:
    """One row per run of `queries.run_table`, with its `bytes`, its best `quality`, and a column
    for each declared loss.
    """
    names = declarations.together(frame["workload"])
    losses = [names.loss_title(loss) for loss in names.losses]
    has_quality = frame["quality"].notna().any()
    table = output.table(
        *("run", "name", "status", "workload", "dataset", "on", "batch", "epochs", "images/s"),
        *(title[:1].lower() + title[1:] for title in losses),
        *(["best quality"] if has_quality else []),
        *("created (UTC)", "MB", "marks"),
    )
    for row in frame.to_dict("records"):
        rates = (row["images_per_s"], *(row[loss.name] for loss in names.losses))
        marks = [name for name in ("pinned", "hidden") if row[name]]
        table.add_row(
            row["run_id"],
            "" if row["name"] == row["run_id"] else row["name"],
            row["status"],
            row["workload"],
            row["dataset"],
            _devices(row),
            str(row["batch_size_global"]),
            f"{row['epochs_done']}/{row['epochs']}",
            *("" if pd.isna(value) else output.number(value) for value in rates),
            *([_quality(row)] if has_quality else []),
            output.cell(row["created_at"]),
            output.megabytes(row["bytes"]),
            ", ".join([*marks, *(f"#{tag}" for tag in row["tags"])]),
        )
    return table


def _devices(row: Mapping[Any, Any]) -> str:
    """How many devices a run has, and where: "4 × gpu on atlas"."""
    target = json.loads(row["spec"]).get("target", HERE)
    devices = f"{row['replicas'] * row['workers']} × {row['accelerator']}"
    return devices if target == HERE else f"{devices} on {target}"


def _quality(row: Mapping[Any, Any]) -> str:
    """The quality of a run, such as "Error 1.13", and whether its classifier is inaccurate; ""
    without one.
    """
    if pd.isna(row["quality"]):
        return ""
    metric = declarations.of(row["workload"]).table([row["quality_metric"]])[row["quality_metric"]]
    score = f"{metric.title} {metric.in_words(row['quality'])}"
    if not row["quality_warning"]:
        return score
    return f"{score}, {caution_of(row['quality_evaluation'])}"


def show(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one run: its state and reason, options, newest numbers, phases and events."""
    folder = Home.choose(home)
    record = record_of(ingest.store_of(folder, [folder.run_dir(run)]), run)
    if as_json:
        return output.print_json(record)
    return output.answers().print(*run_tables(record), sep="\n")


def record_of(store: Store, run_id: str) -> dict[str, Any]:
    """Keys: run with its verdict, spec, host (None before the first attempt), progress, phases
    (seconds), profile (largest share first), memory (None before the first epoch) and events,
    oldest first.

    Raises:
        UnknownRunError: no such run.
    """
    run = asdict(queries.run(store, run_id))
    spec, host = json.loads(run.pop("spec")), json.loads(run.pop("host") or "null")
    memory = queries.peak_memory(store, run_id)
    verdict = queries.verdicts(store, (run_id,))[run_id]
    return {
        "run": {**run, "finding": verdict.finding.value, "verdict": verdict.sentence},
        "spec": spec,
        "host": host,
        "progress": asdict(queries.progress(store, run_id)),
        "phases": queries.phases(store, run_id),
        "profile": queries.profile(store, run_id).to_dict("records"),
        "memory": asdict(memory) if memory else None,
        "events": queries.events(store, run_id).to_dict("records"),
    }


def run_tables(record: dict[str, Any]) -> list[Table]:
    """A record of `record_of` as tables, one for each part that is not empty."""
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
    tables = [output.pairs(rows, title=title) for title, rows in parts.items() if rows]
    if record["profile"]:
        tables.append(_profile_table(record["profile"]))
    skipped = max(0, len(record["events"]) - MOST_EVENTS)
    title = f"events ({skipped:,} earlier ones are not shown: use --json)" if skipped else "events"
    events = output.table("at (UTC)", "attempt", "level", "kind", "message", title=title)
    for event in record["events"][skipped:]:
        columns = ("logged_at", "attempt", "level", "kind", "message")
        events.add_row(*(output.cell(event[name]) for name in columns))
    return [*tables, events]


def _profile_table(rows: list[dict[str, Any]]) -> Table:
    """The time of a step by phase, network and category, the largest share first."""
    title = f"time of a step ({rows[0]['steps']} profiled)"
    columns = ("phase", "network", "category", "seconds per step", "share")
    table = output.table(*columns, title=title)
    for row in rows:
        names = (row["phase"], row["network"], row["category"])
        table.add_row(*names, output.number(row["seconds_per_step"]), f"{row['share']:.1%}")
    return table


def stop(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a waiting or training run to save and end. Returns at once."""
    folder = Home.choose(home)
    commands(folder).stop(run)
    status = latest_status(folder.run_dir(run)).status
    if as_json:
        return output.print_json({"run_id": run, "status": status, "stop_requested": True})
    return output.say(
        f"run {run} stops: it saves and ends after its current steps, or leaves the queue."
    )


# ---- queue ---------------------------------------------------------------------------------------

queue_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@queue_app.callback(invoke_without_command=True)
def queue(context: typer.Context, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the waiting runs in their order, and what uses each device; or change the order."""
    if context.invoked_subcommand is None:
        _show_queue(Home.choose(home), as_json)


@queue_app.command()
def up(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Move a waiting run one place up, together with the waiting runs of its study."""
    _move(Home.choose(home), run, "up", as_json)


@queue_app.command()
def down(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Move a waiting run one place down, together with the waiting runs of its study."""
    _move(Home.choose(home), run, "down", as_json)


@queue_app.command("next")
def next_(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Move a waiting run to the front, together with the waiting runs of its study."""
    _move(Home.choose(home), run, "next", as_json)


@queue_app.command()
def after(
    run: RunArgument,
    other: Annotated[
        str,
        typer.Argument(metavar="OTHER", help="The run to wait for. Default: wait for no run."),
    ] = "",
    only_if_finished: OnlyIfFinishedOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a waiting run start only after OTHER has ended.

    Ended means finished, stopped, failed, lost or deleted.
    """
    folder = Home.choose(home)
    commands(folder).start_after([run], dependency(other, only_if_finished))
    _show_queue(folder, as_json)


def _move(home: Home, run_id: str, direction: Direction, as_json: bool) -> None:
    order = [[row.run_id for row in rows] for rows in queries.queue_items(ingest.store_of(home))]
    commands(home).move_in_queue(run_id, direction, order)
    _show_queue(home, as_json)


def _show_queue(home: Home, as_json: bool) -> None:
    waiting = queries.queue(ingest.store_of(home))
    devices = device_locks.occupancies(DRIVER_SECONDS)
    if as_json:
        return output.print_json(
            {
                "queue": [_queued(row) for row in waiting],
                "devices": [_occupied(occupancy) for occupancy in devices],
            }
        )
    output.answers().print(_device_table(devices, home))
    if not waiting:
        return output.say("no run waits.")
    table = output.table("", "run", "name", "on", "why it waits")
    for place, row in enumerate(waiting, 1):
        name = "" if row.name == row.run_id else row.name
        table.add_row(str(place), row.run_id, name, row.accelerator, row.note)
    return output.answers().print(table)


def _device_table(devices: list[Occupancy], home: Home) -> Table:
    table = output.table("device", "used by", "for")
    for occupancy in devices:
        holder, seconds = occupancy.holder, _seconds(occupancy)
        table.add_row(
            occupancy.device.label,
            device_locks.holder_text(holder, home.path.resolve()) if holder else "free",
            "" if seconds is None else formats.duration(seconds),
        )
    return table


def _queued(row: RunRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "name": row.name,
        "accelerator": row.accelerator,
        "note": row.note,
    }


def _occupied(occupancy: Occupancy) -> dict[str, Any]:
    record: dict[str, Any] = {
        "device": occupancy.device.label,
        "kind": occupancy.device.kind,
        "taken": bool(occupancy.holder),
    }
    if occupancy.holder:
        record |= occupancy.holder.model_dump(mode="json") | {"seconds": _seconds(occupancy)}
    return record


def _seconds(occupancy: Occupancy) -> float | None:
    since = occupancy.holder.since if occupancy.holder else None
    return None if since is None else max(0.0, (datetime.now(UTC) - since).total_seconds())
