"""`queue [up|down|next|after]`: what waits, what has the devices of this host, and another order.

`python -m gan_runtime queue --help`
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.table import Table

from gan_runtime import device_locks
from gan_runtime.cli import output
from gan_runtime.cli.arguments import (
    HomeOption,
    JsonOption,
    OnlyIfFinishedOption,
    RunArgument,
    commands,
)
from gan_runtime.cli.following import clock
from gan_runtime.cli.tables import table
from gan_runtime.commands.queue import Way
from gan_runtime.device_locks import Occupancy
from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.admission import Dependency

DRIVER_SECONDS = 5.0  # that the driver of GPUs is waited for

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.callback(invoke_without_command=True)
def queue(context: typer.Context, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what waits, in its order, and what has each device of this host, and for how long;
    or change the order.
    """
    if context.invoked_subcommand is None:
        _show(Home.choose(home), as_json)


@app.command()
def up(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let a waiting run go before the one before it. The waiting runs of a study stay together."""
    _move(Home.choose(home), run, "up", as_json)


@app.command()
def down(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let a waiting run go behind the one behind it."""
    _move(Home.choose(home), run, "down", as_json)


@app.command("next")
def next_(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Let a waiting run be the next one."""
    _move(Home.choose(home), run, "next", as_json)


@app.command()
def after(
    run: RunArgument,
    other: Annotated[
        str, typer.Argument(metavar="[OTHER]", help="The run to wait for; without it none.")
    ] = "",
    only_if_finished: OnlyIfFinishedOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a waiting run start in its turn, but not before OTHER has ended: finished, stopped,
    failed, lost or deleted.
    """
    chosen = Home.choose(home)
    commands(chosen).start_after([run], wish(other, only_if_finished))
    _show(chosen, as_json)


def wish(run_id: str, only_if_finished: bool) -> Dependency | None:
    """What --after and --only-if-finished ask for."""
    if not run_id:
        return None
    return Dependency(run_id, "finished" if only_if_finished else "ended")


def _move(home: Home, run_id: str, way: Way, as_json: bool) -> None:
    items = queries.queue_items(ingest.store_of(home))
    commands(home).move_in_queue(run_id, way, [[row.run_id for row in item] for item in items])
    _show(home, as_json)


def _show(home: Home, as_json: bool) -> None:
    waiting, found = queries.queue(ingest.store_of(home)), device_locks.occupancies(DRIVER_SECONDS)
    if as_json:
        return output.print_json(
            {
                "queue": [_waits(row) for row in waiting],
                "devices": [_has(look) for look in found],
            }
        )
    output.answers().print(_devices(found, home))
    if not waiting:
        return output.say("nothing waits.")
    made = table("", "run", "name", "on", "why it waits")
    for place, row in enumerate(waiting, 1):
        name = "" if row.name == row.run_id else row.name
        made.add_row(str(place), row.run_id, name, row.accelerator, row.note)
    return output.answers().print(made)


def _devices(found: list[Occupancy], home: Home) -> Table:
    made = table("device", "taken by", "for")
    for look in found:
        seconds = _seconds(look)
        made.add_row(
            look.device.label,
            device_locks.whose(look.holder, home.path.resolve()) if look.holder else "free",
            "" if seconds is None else clock(seconds),
        )
    return made


def _waits(row: RunRow) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "name": row.name,
        "accelerator": row.accelerator,
        "note": row.note,
    }


def _has(look: Occupancy) -> dict[str, Any]:
    record: dict[str, Any] = {
        "device": look.device.label,
        "kind": look.device.kind,
        "taken": bool(look.holder),
    }
    if look.holder:
        record |= look.holder.model_dump(mode="json") | {"seconds": _seconds(look)}
    return record


def _seconds(look: Occupancy) -> float | None:
    since = look.holder.since if look.holder else None
    return None if since is None else max(0.0, (datetime.now(UTC) - since).total_seconds())
