"""`delete`, `bin`, `restore`, `space`: runs that are deleted and brought back, and what takes how much space."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from gan_runtime.cli import output, tables
from gan_runtime.cli.arguments import HomeOption, JsonOption, commands
from gan_runtime.records.home import Home, command_line
from gan_runtime.supervision import bin as runs_bin
from gan_runtime.supervision.bin import BinnedRun
from gan_runtime.supervision.maintenance import DiskUsage


def delete(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move runs that do not train into the bin, from which they can be restored for 30 days."""
    chosen = Home.choose(home)
    run_ids = [chosen.run_dir(run_id).run_id for run_id in dict.fromkeys(run)]
    keys = [commands(chosen).delete(run_id) for run_id in run_ids]
    if as_json:
        return output.print_json({"deleted": keys, "days": runs_bin.DAYS})
    return output.say(
        f"{len(keys)} run(s) in the bin for {runs_bin.DAYS} days: `{command_line()} restore {keys[0]}{chosen.flag}` brings one back."
    )


def bin_(
    empty: Annotated[bool, typer.Option("--empty", help="Remove all that is in it for good, now.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List deleted runs and how long they stay, or with --empty remove them for good."""
    chosen = Home.choose(home)
    binned = runs_bin.listed(chosen)
    if empty:
        if binned and not yes:
            size = sum(run.size_bytes or 0 for run in binned)
            typer.confirm(
                f"Remove {len(binned)} run(s), {size / 1e6:,.0f} MB, for good?", abort=True, err=True
            )
        commands(chosen).remove_for_good([run.key for run in binned])
        if as_json:
            return output.print_json({"removed": [run.key for run in binned]})
        return output.say(f"{len(binned)} run(s) are removed for good.")
    if as_json:
        return output.print_json([asdict(run) for run in binned])
    if not binned:
        return output.say("the bin is empty.")
    return output.answers().print(_table(binned))


def _table(binned: list[BinnedRun]) -> Table:
    table = tables.table("key", "name", "status", "deleted (UTC)", "by", "MB", "days left")
    for run in binned:
        deleted = "" if run.deleted_at is None else run.deleted_at.strftime("%Y-%m-%d %H:%M:%S")
        size = "" if run.size_bytes is None else f"{run.size_bytes / 1e6:,.1f}"
        left = "" if run.days_left is None else f"{run.days_left:.1f}"
        name = "" if run.name == run.run_id else run.name
        table.add_row(run.key, name, run.status, deleted, run.asker, size, left)
    return table


def restore(
    key: Annotated[list[str], typer.Argument(metavar="RUN...", help="As `bin` lists them.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring deleted runs back, with all that they had."""
    chosen = Home.choose(home)
    runs = [commands(chosen).restore(one).run_id for one in dict.fromkeys(key)]
    if as_json:
        return output.print_json({"restored": runs})
    return output.say(f"{', '.join(runs)} {'is' if len(runs) == 1 else 'are'} back.")


def space(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show what takes how much space: each run, the largest first, data sets, jobs, the database, caches, the bin; and what is left."""
    chosen = Home.choose(home).prepare()
    found = DiskUsage(chosen).space()
    if as_json:
        return output.print_json(asdict(found))
    table = tables.table("what", "MB")
    parts = {
        "runs": found.all_runs,
        "data sets": found.data,
        "jobs and uploads": found.jobs,
        "database": found.database,
        "put aside by queries": found.spill,
        "Keras' cache": found.keras_cache,
        "bin": found.bin,
        "free on the disk": found.free,
    }
    if found.runs_disk is not None:
        parts["free on the disk of runs"] = found.runs_disk.free
    for name, size in parts.items():
        table.add_row(name, f"{size / 1e6:,.1f}")
    for run_id, size in sorted(found.runs.items(), key=lambda item: -item[1]):
        table.add_row(f"run {run_id}", f"{size / 1e6:,.1f}")
    return output.answers().print(table)
