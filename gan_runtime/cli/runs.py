"""`runs`, `show`, `stop`, `sql`, `export`, `bundle`, `import`: the runs of a home, as tables
and as files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gan_runtime import bundles
from gan_runtime.base import disk
from gan_runtime.base.errors import BundleError
from gan_runtime.cli import (
    output,
    tables,
)
from gan_runtime.cli.arguments import (
    HomeOption,
    JsonOption,
    OverwriteOption,
    RunArgument,
    commands,
)
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import latest_status
from gan_runtime.store import export as exporting
from gan_runtime.store import ingest, queries
from gan_runtime.store.user_sql import Limits

NO_RUNS = (
    f"no runs yet: start one with `{command_line()} train --preset quick`, or on the Launch page."
)


def runs(
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Hidden runs too; JSON always has them.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the stored runs, pinned ones first, then the newest."""
    chosen = Home.choose(home)
    store = ingest.store_of(chosen)
    for name, reason in queries.set_aside(store).items():
        output.notes().print(f"{name} is no run that can be read, and is left out: {reason}.")
    frame = queries.run_table(store)
    frame["bytes"] = [disk.used_bytes(chosen.runs / run_id) for run_id in frame["run_id"]]
    if as_json:
        frame = frame.drop(
            columns="spec"
        )  # `show --json` has the options, and not as text within JSON
        return output.print_json(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    if frame.empty:
        return output.say(NO_RUNS)
    if left_out := 0 if hidden else int(frame["hidden"].sum()):
        output.note(f"{left_out} hidden run(s) are left out: --hidden lists them too.")
    return output.answers().print(tables.runs(frame[~frame["hidden"]] if left_out else frame))


def show(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one run: state and reason, options, last numbers, phases, events."""
    chosen = Home.choose(home)
    found = tables.of_run(ingest.store_of(chosen, [chosen.run_dir(run)]), run)
    if as_json:
        return output.print_json(found)
    return output.answers().print(*tables.run_tables(found), sep="\n")


def stop(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a waiting or training run to save and end; does not wait for it."""
    chosen = Home.choose(home)
    commands(chosen).stop(run)
    status = latest_status(chosen.run_dir(run)).status
    if as_json:
        return output.print_json({"run_id": run, "status": status, "stop_requested": True})
    return output.say(
        f"run {run} is asked to stop: it saves and ends after the steps now under way, or leaves"
        " the queue."
    )


def sql(
    statement: Annotated[
        str, typer.Argument(metavar="SELECT", help='Such as "SELECT name, status FROM runs".')
    ],
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=86_400, help="How long it may take.")
    ] = Limits.seconds,
    max_rows: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=10_000_000,
            help="How many rows are given; a note tells of more.",
        ),
    ] = Limits.rows,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer one SQL statement that reads, over the views of docs/schema.md.

    In JSON, columns of equal name are a, a_2, …
    """
    found = ingest.store_of(Home.choose(home)).person_answer(statement, Limits(seconds, max_rows))
    if found.cut:
        output.note(
            f"only the first {max_rows:,} rows are given: there are more, which --max-rows would"
            " give."
        )
    if as_json:
        return output.print_json(found.records())
    return output.answers().print(tables.answer(found) if found.rows else "no rows")


def export(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")
    ],
    to: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the files; made if missing.")],
    form: Annotated[
        exporting.Format, typer.Option("--format", help="Of the tables; pictures are always PNG.")
    ] = "parquet",
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write runs as plain files: tables, pictures and their spec.json."""
    chosen = Home.choose(home)
    run_dirs = [chosen.run_dir(run_id) for run_id in dict.fromkeys(run)]
    store = ingest.store_of(chosen, run_dirs)
    paths = exporting.export(store, [run_dir.run_id for run_dir in run_dirs], to, form, overwrite)
    if as_json:
        return output.print_json({"folder": to, "files": [path.relative_to(to) for path in paths]})
    return output.say(f"{len(paths)} files are in {to}.")


def bundle(
    run: Annotated[
        list[str], typer.Argument(metavar="RUN...", help="Ids of ended runs; `runs` lists them.")
    ],
    to: Annotated[Path, typer.Option(metavar="FILE", help="The zip file to write.")],
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Comes before the ids of runs and studies.")
    ] = "",
    films: Annotated[
        bool,
        typer.Option(help="With the films of iterations, some megabytes each, or without them."),
    ] = True,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write ended runs into one file to give away: options, numbers, images, films; no
    checkpoints, no names of hosts or folders.
    """
    chosen = Home.choose(home)
    runs = [chosen.run_dir(run_id) for run_id in dict.fromkeys(run)]
    size = bundles.pack(runs, to, prefix, overwrite, films)
    if as_json:
        return output.print_json({"file": to, "bytes": size})
    return output.say(f"{to} holds {len(set(run))} run(s) in {size / 1e6:.1f} MB.")


def import_(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file made by `bundle`.")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load the runs of a bundle; without FILE the example runs.

    An open dashboard shows them within a moment.
    """
    files = bundles.examples() if file is None else [file]
    if not files:
        raise BundleError(
            "this copy of the project comes without the example runs: name a FILE made by `bundle`."
        )
    new = [run for each in files for run in commands(Home.choose(home)).import_bundle(each)]
    if as_json:
        return output.print_json({"runs": new})
    return output.say(
        f"{len(new)} new run(s): {', '.join(new)}."
        if new
        else "all runs of the bundle are here already."
    )
