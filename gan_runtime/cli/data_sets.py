"""`data list|prepare|show|remove`: the data sets of a home.

`python -m gan_runtime data COMMAND --help`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gan_runtime.base.fields import Fields
from gan_runtime.cli import following, output
from gan_runtime.cli.arguments import HomeOption, JsonOption, commands
from gan_runtime.cli.tables import table
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.preparations import PREPARATIONS, Asked
from gan_runtime.data.prepared import Manifest
from gan_runtime.data.summary import Summary, Survey
from gan_runtime.records.home import Home
from gan_runtime.spec import presets

SETTABLE = "\n\n".join(
    f"Options for --set of {name}: "
    + "; ".join(
        f"{option.name}: {option.allowed}"
        for option in preparations.options_of(known.options).values()
    )
    for name, known in PREPARATIONS.items()
    if preparations.options_of(known.options)
)
MOST_LINES = 10  # of a table, after a preparation
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set; `data list` lists them.")
]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def data() -> None:
    """List, prepare, show and remove data sets."""


@app.command("list")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the data sets that a run can name."""
    known = loading.known(Home.choose(home))
    if as_json:
        return output.print_json([_record(known_set) for known_set in known.values()])
    made = table("data set", "rows", "row", "classes", "what it is")
    for name, known_set in known.items():
        classes = sum(len(field.classes) for field in known_set.fields.values())
        what = known_set.problem or known_set.summary
        made.add_row(name, f"{known_set.rows:,}", in_words(known_set.fields), f"{classes:,}", what)
    return output.answers().print(made)


@app.command()
def show(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one data set: rows, fields, labels; of a prepared one how it was made and what was
    left out.
    """
    chosen = Home.choose(home)
    at_hand = loading.availability(name, chosen)
    manifest = prepared.manifest(chosen, name) if prepared.is_there(chosen, name) else None
    if as_json:
        return output.print_json({**_record(loading.known(chosen)[name]), **_prepared(manifest)})
    facts = {
        "rows to train on": f"{at_hand.images:,}",
        "one row": in_words(loading.fields_of(name, chosen)),
        "at hand": "yes" if at_hand.ready else "no",
        "from": at_hand.note or at_hand.origin,
    }
    output.answers().print(
        _pairs("data set", name, {**facts, **(_facts(manifest) if manifest else {})})
    )
    summary = loading.known(chosen)[name].preparation
    if summary:
        _say_summary(summary)
    return _say_where_drawn(chosen, name)


@app.command(epilog=SETTABLE)
def prepare(
    preparation: Annotated[
        str, typer.Argument(metavar="PREPARATION", help=f"One of: {', '.join(PREPARATIONS)}.")
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="A folder or a file, where one is needed."),
    ] = None,
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="What the new data set is called.")
    ] = "",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One option of the preparation; may be repeated."
        ),
    ] = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Only say what would be made and left out; store nothing."),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a data set ready for runs, in a background job: convert files, simulate, or download a
    set.

    The Data page shows it too. Ctrl-C cancels it and leaves nothing half-made.
    """
    chosen = Home.choose(home)
    asked = Asked(preparation, name, source, presets.parse_assignments(assignments or []))
    asked.check()
    if preview:
        with following.one_line() as progress:
            return _say_survey(preparations.survey(asked, progress), as_json)
    made, manifest = asked.set_name, _prepared_by_a_job(chosen, asked)
    rows = loading.availability(made, chosen).images
    if as_json:
        return output.print_json({"data_set": made, "rows": rows, **_prepared(manifest)})
    summary = loading.known(chosen)[made].preparation
    held_out = f", {summary.held_out:,} held out" if summary else ""
    output.say(
        f"data set {made} is ready: {rows:,} rows to train on{held_out}. "
        f"Train on it with `train --set dataset={made}`."
    )
    if summary:
        _say_summary(summary, MOST_LINES)
    return _say_where_drawn(chosen, made)


@app.command()
def remove(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a prepared data set for good. Refused while a run that waits or trains uses it."""
    commands(Home.choose(home)).remove_data(name)
    if as_json:
        return output.print_json({"removed": name})
    return output.say(f"data set {name} is removed.")


def _prepared_by_a_job(home: Home, asked: Asked) -> Manifest | None:
    """Waits for the job, which the Data page shows too; None for a set that the program does not
    keep itself.

    Raises:
        JobError: the job has failed; the message gives its reason. Others as
            `commands.prepare_data`.
    """
    source = asked.source.absolute() if asked.source is not None else None
    job = commands(home).prepare_data(asked.preparation, asked.name, source, asked.options)
    following.to_its_end(home, job)
    name = asked.set_name
    return prepared.manifest(home, name) if prepared.is_there(home, name) else None


def in_words(fields: Fields) -> str:
    """What a row holds: "64 × 64 × 3 images, labels"."""
    return ", ".join(
        f"{field.size} {name}" if field.shape else name for name, field in fields.items()
    )


def _say_summary(summary: Summary, most: int | None = None) -> None:
    """Sentences, warnings and tables; of each table the first `most` rows."""
    for sentence in (
        *summary.sentences(),
        *(f"Warning: {warning}" for warning in summary.warnings),
    ):
        output.say(sentence)
    output.answers().print(*_details(summary, most), sep="\n", end="")


def _say_where_drawn(home: Home, name: str) -> None:
    if path := prepared.drawn(home, name):
        output.say(f"The first rows are drawn in {path}.")


def _say_survey(seen: Survey, as_json: bool) -> None:
    if as_json:
        facts = seen.summary.model_dump(mode="json")
        return output.print_json({"rows": seen.rows, **facts, "bytes_on_disk": seen.bytes_on_disk})
    told = {
        "rows to train on": f"{seen.rows:,}",
        "held out": f"{seen.summary.held_out:,}",
        "one row": in_words(seen.fields),
        "on disk": f"{seen.bytes_on_disk / 1e6:,.1f} MB",
    }
    output.answers().print(_pairs("would be made", "", told))
    return _say_summary(seen.summary)


def _facts(manifest: Manifest) -> dict[str, str]:
    """How a set was prepared."""
    return {
        "held out": f"{manifest.held_out:,}",
        "on disk": f"{manifest.bytes / 1e6:,.1f} MB",
        "prepared at (UTC)": f"{manifest.prepared_at:%Y-%m-%d %H:%M}",
        **{key: str(value) for key, value in manifest.options.items()},
    }


def _details(summary: Summary, most: int | None = None) -> Iterator[Table]:
    """Rows of each class, and what was left out; each only where there is something to tell."""
    if summary.counts:
        rows = [
            (name, f"{train:,}", f"{held:,}") for name, (train, held) in summary.by_split().items()
        ]
        yield _cut(("class", "to train on", "held out"), rows, len(rows), most)
    if first := [(skip.name, skip.reason) for skip in summary.skipped.first]:
        yield _cut(("left out", "why"), first, sum(summary.skipped.counts.values()), most)


def _cut(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, most: int | None
) -> Table:
    """The first rows, and how many more there are."""
    made = table(*columns)
    for row in rows[:most]:
        made.add_row(*row)
    if more := total - len(rows[:most]):
        made.add_row("…", f"and {more:,} more")
    return made


def _pairs(first: str, second: str, pairs: dict[str, str]) -> Table:
    made = table(first, second)
    for name, value in pairs.items():
        made.add_row(name, value)
    return made


def _record(known: loading.KnownSet) -> dict[str, Any]:
    fields = {
        name: {"shape": field.shape, "dtype": field.dtype} for name, field in known.fields.items()
    }
    classes = next((list(field.classes) for field in known.fields.values() if field.classes), [])
    return {
        "data_set": known.name,
        "prepared": known.is_prepared,
        "rows": known.rows,
        "fields": fields,
        "classes": classes,
        "problem": known.problem,
    }


def _prepared(manifest: Manifest | None) -> dict[str, Any]:
    """For JSON; nothing for sets that come with the program."""
    return (
        manifest.model_dump(mode="json", exclude={"format", "name", "fields", "shards"})
        if manifest
        else {}
    )
