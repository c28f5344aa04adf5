"""`delete`, `bin`, `restore`, `space`, `mark`, `best`: what is kept of runs, under which
marks, and what takes how much space.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.cli import output, tables
from gan_runtime.cli.arguments import HomeOption, JsonOption, RunArgument, commands
from gan_runtime.records import run_folder
from gan_runtime.records.home import Home, command_line
from gan_runtime.store import ingest, queries
from gan_runtime.supervision import trash
from gan_runtime.supervision.maintenance import DiskUsage
from gan_runtime.supervision.trash import DeletedRun
from gan_runtime.training import trained


def delete(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")
    ],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move runs that do not train into the bin, from which they can be restored for 30 days."""
    chosen = Home.choose(home)
    run_ids = [chosen.run_dir(run_id).run_id for run_id in dict.fromkeys(run)]
    keys = [commands(chosen).delete(run_id) for run_id in run_ids]
    if as_json:
        return output.print_json({"deleted": keys, "days": trash.DAYS})
    return output.say(
        f"{len(keys)} run(s) in the bin for {trash.DAYS} days: `{command_line()} restore"
        f" {keys[0]}{chosen.flag}` brings one back."
    )


def bin_(
    empty: Annotated[
        bool, typer.Option("--empty", help="Remove all that is in it for good, now.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List deleted runs and how long they stay, or with --empty remove them for good."""
    chosen = Home.choose(home)
    binned = trash.deleted_runs(chosen)
    if empty:
        if binned and not yes:
            size = sum(run.size_bytes or 0 for run in binned)
            typer.confirm(
                f"Remove {len(binned)} run(s), {size / 1e6:,.0f} MB, for good?",
                abort=True,
                err=True,
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


def _table(binned: list[DeletedRun]) -> Table:
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
    """Show what takes how much space: each run, the largest first, data sets, jobs, the
    database, caches, the bin; and what is left.
    """
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


def mark(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")
    ],
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="TAG", help="Add it; may be repeated.")
    ] = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="TAG", help="Take it away; may be repeated."),
    ] = None,
    note: Annotated[
        str | None,
        typer.Option("--note", metavar="TEXT", help="Takes the place of the note; '' removes it."),
    ] = None,
    pin: Annotated[
        bool | None, typer.Option("--pin/--unpin", help="First in lists, and not to be deleted.")
    ] = None,
    hide: Annotated[bool | None, typer.Option("--hide/--unhide", help="Left out of lists.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag, note, pin or hide runs; without options say how they are marked."""
    chosen = Home.choose(home)
    folders = [chosen.run_dir(run_id) for run_id in dict.fromkeys(run)]
    for folder in folders if any(one is not None for one in (tag, untag, note, pin, hide)) else ():
        own = [one for one in run_folder.marks_of(folder).tags if one not in (untag or ())]
        tags = None if tag is None and untag is None else [*own, *(tag or ())]
        commands(chosen).mark([folder.run_id], tags=tags, remark=note, pinned=pin, hidden=hide)
    found = {folder.run_id: run_folder.marks_of(folder) for folder in folders}
    if as_json:
        return output.print_json({run_id: asdict(one) for run_id, one in found.items()})
    for run_id, one in found.items():
        kinds = [name for name in ("pinned", "hidden") if getattr(one, name)]
        said = ", ".join([*kinds, *(f"#{tag}" for tag in one.tags)]) or "no marks"
        output.say(f"{run_id}: {said}{f' – {one.remark}' if one.remark else ''}")
    return None


def best(
    run: RunArgument,
    by: Annotated[
        str,
        typer.Option(
            metavar="METRIC", help="Make the best checkpoint of the epoch in which this is lowest."
        ),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the best epoch of a run by each number that measures quality, or with --by choose its
    best checkpoint anew.

    It needs weight_snapshots=yes; numbers of a job, such as those of `evaluate RUN`, count as soon
    as they are there.
    """
    folder = Home.choose(home).run_dir(run)
    store = ingest.store_of(Home.choose(home), [folder])
    known = {metric.name: metric for metric in queries.declared_of(store, [run]).qualities}
    found = queries.best_epochs(store, run, list(known), trained.stored_epochs(folder))
    if by:
        if by not in found:
            raise SpecError([FieldError("by", _unknown(by, list(found)))])
        epoch, value = found[by]
        commands(Home.choose(home)).keep_best(run, epoch, f"{known[by].title} ({value:.4g})")
        found = {by: found[by]}
    if as_json:
        return output.print_json(
            {name: {"epoch": epoch, "value": value} for name, (epoch, value) in found.items()}
        )
    table = tables.table("Number", "Name", "Best epoch", "Value")
    for name, (epoch, value) in found.items():
        table.add_row(known[name].title, name, str(epoch), f"{value:.4g}")
    output.answers().print(table)
    told = (
        f"The best checkpoint of {run} is that of epoch {found[by][0]} now."
        if by
        else _hint(run, list(found))
    )
    return output.say(told)


def _hint(run: str, there: list[str]) -> str:
    if not there:
        return (
            f"{run} has fewer than two epochs with kept weights and such a number: train with"
            " weight_snapshots=yes."
        )
    return f"Choose one: `{command_line()} best {run} --by {there[-1]}`"


def _unknown(by: str, there: list[str]) -> str:
    if not there:
        return (
            f"by is {quoted(by)}, but no number of quality is known of two epochs whose weights"
            " were kept: train with weight_snapshots=yes."
        )
    return f"by is {quoted(by)}, but allowed is {', '.join(there)}: use one of them."
