"""What a home stores: SQL over its results, exports and bundles, marks, best checkpoint, deleted
runs, and disk space.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.table import Table

from gan_runtime import bundles
from gan_runtime.base import formats
from gan_runtime.base.errors import BundleError, FieldError, SpecError, quoted
from gan_runtime.bundles import export as exporting
from gan_runtime.cli import (
    HomeOption,
    JsonOption,
    OverwriteOption,
    RunArgument,
    RunsArgument,
    commands,
    output,
)
from gan_runtime.records import run_folder
from gan_runtime.records.home import Home, command_line
from gan_runtime.store import ingest, queries
from gan_runtime.store.user_sql import Limits
from gan_runtime.supervision import trash
from gan_runtime.supervision.maintenance import DiskUsage
from gan_runtime.supervision.trash import DeletedRun
from gan_runtime.training import inference

Format = Literal["csv", "parquet", "tensorboard"]
MOST_NAMED = 8  # new runs of an import


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="SELECT", help='Such as "SELECT name, status FROM runs".')
    ],
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=86_400, help="The time limit.")
    ] = Limits.seconds,
    max_rows: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=10_000_000, help="The most rows of the answer."),
    ] = Limits.rows,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run one SQL statement that reads, over the views of docs/schema.md.

    In JSON, columns with equal names become a, a_2, …
    """
    answer = ingest.store_of(Home.choose(home)).user_answer(statement, Limits(seconds, max_rows))
    if answer.cut:
        output.note(f"the answer has more rows than {formats.count(max_rows)}: use --max-rows.")
    if as_json:
        return output.print_json(answer.records())
    if not answer.rows:
        return output.say("no rows")
    table = output.table(*answer.columns)
    for row in answer.rows:
        table.add_row(*map(output.cell, row))
    return output.answers().print(table)


def rebuild(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Rebuild the database (results.duckdb) from the journals.

    Refused while a dashboard or a training has the home open.
    """
    folder = Home.choose(home)
    rebuilt = commands(folder).rebuild()
    if as_json:
        return output.print_json(
            {"database": folder.database, "rows": rebuilt.rows, "damaged": rebuilt.damaged}
        )
    counts = ", ".join(f"{name}: {count:,}" for name, count in rebuilt.rows.items())
    output.say(f"{folder.database} is rebuilt: {counts}.")
    return (
        output.say(f"the damaged file is quarantined as {rebuilt.damaged.name}.")
        if rebuilt.damaged
        else None
    )


# ---- files ---------------------------------------------------------------------------------------


def export(
    run: RunsArgument,
    to: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the files; created if missing.")
    ],
    form: Annotated[
        Format,
        typer.Option("--format", help="Of the tables; tensorboard: its event files."),
    ] = "parquet",
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Export runs as plain files: tables, images and their spec.json."""
    folder = Home.choose(home)
    run_dirs = [folder.run_dir(run_id) for run_id in dict.fromkeys(run)]
    store = ingest.store_of(folder, run_dirs)
    run_ids = [run_dir.run_id for run_dir in run_dirs]
    if form == "tensorboard":
        paths = exporting.export_event_files(store, run_ids, to, overwrite)
    else:
        paths = exporting.export(store, run_ids, to, form, overwrite)
    if as_json:
        return output.print_json({"folder": to, "files": [path.relative_to(to) for path in paths]})
    return output.say(f"{formats.quantity(len(paths), 'file')} written to {to}.")


def bundle(
    run: RunsArgument,
    to: Annotated[Path, typer.Option(metavar="FILE", help="The zip file to write.")],
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="A prefix for the ids of runs and studies.")
    ] = "",
    films: Annotated[
        bool, typer.Option(help="With the films of rollouts, some megabytes each.")
    ] = True,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write ended runs into one file to share: options, numbers, images, films.

    It has no checkpoints and no names of hosts or folders.
    """
    folder = Home.choose(home)
    run_dirs = [folder.run_dir(run_id) for run_id in dict.fromkeys(run)]
    size = bundles.pack(run_dirs, to, prefix, overwrite, films)
    if as_json:
        return output.print_json({"file": to, "bytes": size})
    return output.say(f"{to} holds {formats.quantity(len(run_dirs), 'run')}, {formats.size(size)}.")


def import_(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE",
            help="A file from `bundle`, or TensorBoard's log folder. Default: the example runs.",
        ),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import the runs of a bundle or of event files. An open dashboard shows them at once."""
    files = bundles.examples() if file is None else [file]
    if not files:
        raise BundleError(
            "this copy of the project has no example runs: name a FILE made by `bundle`."
        )
    door = commands(Home.choose(home))
    imported = [
        door.import_event_files(each) if each.is_dir() else door.import_bundle(each)
        for each in files
    ]
    run_ids = [run_id for of_file in imported for run_id in of_file]
    if as_json:
        return output.print_json({"runs": run_ids})
    others = len(run_ids) - MOST_NAMED
    more = f" and {others} more; `{command_line()} runs` lists them" if others > 0 else ""
    return output.say(
        f"imported {formats.quantity(len(run_ids), 'run')}:"
        f" {', '.join(run_ids[:MOST_NAMED])}{more}."
        if run_ids
        else "all of these runs are imported already."
    )


# ---- marks and checkpoints -----------------------------------------------------------------------


def mark(
    run: RunsArgument,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="TAG", help="Add a tag; repeat it for more."),
    ] = None,
    untag: Annotated[
        list[str] | None,
        typer.Option("--untag", metavar="TAG", help="Remove a tag; repeat it for more."),
    ] = None,
    note: Annotated[
        str | None,
        typer.Option("--note", metavar="TEXT", help="Replace the note; '' removes it."),
    ] = None,
    pin: Annotated[
        bool | None,
        typer.Option("--pin/--unpin", help="List it first, and protect it from deletion."),
    ] = None,
    hide: Annotated[
        bool | None, typer.Option("--hide/--unhide", help="Leave it out of lists.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tag, pin or hide runs, or add a note; without options show their marks."""
    folder = Home.choose(home)
    run_dirs = [folder.run_dir(run_id) for run_id in dict.fromkeys(run)]
    is_change = any(value is not None for value in (tag, untag, note, pin, hide))
    for run_dir in run_dirs if is_change else ():
        old = [each for each in run_folder.marks_of(run_dir).tags if each not in (untag or ())]
        tags = None if tag is None and untag is None else [*old, *(tag or ())]
        commands(folder).mark([run_dir.run_id], tags=tags, remark=note, pinned=pin, hidden=hide)
    marks_by_id = {run_dir.run_id: run_folder.marks_of(run_dir) for run_dir in run_dirs}
    if as_json:
        return output.print_json({run_id: asdict(marks) for run_id, marks in marks_by_id.items()})
    for run_id, marks in marks_by_id.items():
        names = [name for name in ("pinned", "hidden") if getattr(marks, name)]
        text = ", ".join([*names, *(f"#{each}" for each in marks.tags)]) or "no marks"
        output.say(f"{run_id}: {text}{f' – {marks.remark}' if marks.remark else ''}")
    return None


def best(
    run: RunArgument,
    by: Annotated[
        str,
        typer.Option(
            metavar="METRIC", help="Choose the epoch with the best value as best checkpoint."
        ),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the best epoch of a run by each quality score; with --by choose its best checkpoint.

    The run needs weight_snapshots=yes. Scores of `evaluate RUN` count too.
    """
    folder = Home.choose(home)
    run_dir = folder.run_dir(run)
    store = ingest.store_of(folder, [run_dir])
    scores = {metric.name: metric for metric in queries.declared_of(store, [run]).qualities}
    epochs = queries.best_epochs(store, run, scores.values(), inference.stored_epochs(run_dir))
    if by:
        if by not in epochs:
            raise SpecError([FieldError("by", _unknown_score(by, list(epochs)))])
        epoch, value = epochs[by]
        commands(folder).keep_best(run, epoch, f"{scores[by].title} ({value:.4g})")
        epochs = {by: epochs[by]}
    if as_json:
        return output.print_json(
            {name: {"epoch": epoch, "value": value} for name, (epoch, value) in epochs.items()}
        )
    if not epochs:
        return output.say(
            f"{run} has fewer than two epochs with stored weights and a quality score: train with"
            " weight_snapshots=yes."
        )
    table = output.table("Score", "Name", "Best epoch", "Value")
    for name, (epoch, value) in epochs.items():
        table.add_row(scores[name].title, name, str(epoch), f"{value:.4g}")
    output.answers().print(table)
    if by:
        return output.say(f"The best checkpoint of {run} is now that of epoch {epochs[by][0]}.")
    example = f"{command_line()} best {run} --by {list(epochs)[-1]}{folder.flag}"
    return output.say(f"Choose one: `{example}`")


def _unknown_score(by: str, names: list[str]) -> str:
    if not names:
        return (
            f"by is {quoted(by)}, but no two epochs with stored weights have a quality score: train"
            " with weight_snapshots=yes."
        )
    return f"by is {quoted(by)}, but allowed is {', '.join(names)}: use one of them."


# ---- deleted runs and space ----------------------------------------------------------------------


def delete(run: RunsArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Move runs to the trash. `restore` brings them back within 30 days."""
    folder = Home.choose(home)
    run_ids = [folder.run_dir(run_id).run_id for run_id in dict.fromkeys(run)]
    keys = [commands(folder).delete(run_id) for run_id in run_ids]
    if as_json:
        return output.print_json({"deleted": keys, "days": trash.DAYS})
    return output.say(
        f"{formats.quantity(len(keys), 'run')} moved to the trash for {trash.DAYS} days:"
        f" `{command_line()} restore {keys[0]}{folder.flag}` restores one."
    )


def bin_(
    empty: Annotated[
        bool, typer.Option("--empty", help="Delete all runs in the trash for good.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the runs in the trash and the days left; with --empty delete them for good."""
    folder = Home.choose(home)
    deleted = trash.deleted_runs(folder)
    if empty:
        if deleted and not yes:
            size = sum(run.size_bytes or 0 for run in deleted)
            runs = formats.quantity(len(deleted), "run")
            question = f"Delete {runs} for good and free {formats.size(size)}?"
            typer.confirm(question, abort=True, err=True)
        commands(folder).remove_for_good([run.key for run in deleted])
        if as_json:
            return output.print_json({"removed": [run.key for run in deleted]})
        return output.say(f"{formats.quantity(len(deleted), 'run')} deleted for good.")
    if as_json:
        return output.print_json([asdict(run) for run in deleted])
    if not deleted:
        return output.say("the trash is empty.")
    return output.answers().print(_trash_table(deleted))


def _trash_table(deleted: list[DeletedRun]) -> Table:
    table = output.table("key", "name", "status", "deleted (UTC)", "by", "MB", "days left")
    for run in deleted:
        size = "" if run.size_bytes is None else output.megabytes(run.size_bytes)
        days = "" if run.days_left is None else f"{run.days_left:.1f}"
        name = "" if run.name == run.run_id else run.name
        table.add_row(run.key, name, run.status, output.cell(run.deleted_at), run.asker, size, days)
    return table


def restore(
    key: Annotated[list[str], typer.Argument(metavar="RUN...", help="Keys of runs; see `bin`.")],
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore deleted runs from the trash, with all their files."""
    folder = Home.choose(home)
    run_ids = [commands(folder).restore(each).run_id for each in dict.fromkeys(key)]
    if as_json:
        return output.print_json({"restored": run_ids})
    return output.say(f"restored: {', '.join(run_ids)}.")


def space(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show how much disk space runs, data sets, jobs, database, caches and trash use."""
    folder = Home.choose(home).prepare()
    usage = DiskUsage(folder).space()
    if as_json:
        return output.print_json(asdict(usage))
    parts = {
        "runs": usage.all_runs,
        "data sets": usage.data,
        "jobs and uploads": usage.jobs,
        "database": usage.database,
        "temporary files of queries": usage.spill,
        "Keras' cache": usage.keras_cache,
        "trash": usage.bin,
        "free on the disk": usage.free,
    }
    if usage.runs_disk is not None:
        parts["free on the disk of runs"] = usage.runs_disk.free
    table = output.table("what", "MB")
    for name, size in parts.items():
        table.add_row(name, output.megabytes(size))
    for run_id, size in sorted(usage.runs.items(), key=lambda entry: -entry[1]):
        table.add_row(f"run {run_id}", output.megabytes(size))
    return output.answers().print(table)
