"""`data list|prepare|show|remove`: the data sets of a home.

`python -m gan_runtime data COMMAND --help`
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gan_runtime.base import formats
from gan_runtime.base.fields import Fields
from gan_runtime.cli import HomeOption, JsonOption, allowed_values, commands, following, output
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.data.prepared import Manifest
from gan_runtime.data.summary import Summary, Survey
from gan_runtime.records.home import Home
from gan_runtime.spec import presets

SETTABLE = "\n\n".join(
    f"Options for --set of {name}: {allowed_values(preparations.options_of(entry.options))}"
    for name, entry in PREPARATIONS.items()
    if preparations.options_of(entry.options)
)
MOST_LINES = 10  # most rows of a table after a preparation
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of a data set; see `data list`.")
]

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def data() -> None:
    """List, prepare, show and remove data sets."""


@app.command("list")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the data sets that a run can use."""
    data_sets = loading.data_sets(Home.choose(home))
    if as_json:
        return output.print_json([_record(data_set) for data_set in data_sets.values()])
    table = output.table("data set", "rows", "row", "classes", "what it is")
    for name, data_set in data_sets.items():
        classes = sum(len(field.classes) for field in data_set.fields.values())
        row, text = in_words(data_set.fields), data_set.problem or data_set.summary
        table.add_row(name, f"{data_set.rows:,}", row, f"{classes:,}", text)
    return output.answers().print(table)


@app.command()
def show(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one data set: rows, fields and labels, and how it was prepared."""
    folder = Home.choose(home)
    availability = loading.availability(name, folder)
    manifest = prepared.manifest(folder, name) if prepared.exists(folder, name) else None
    data_set = loading.data_sets(folder)[name]
    if as_json:
        return output.print_json({**_record(data_set), **_preparation(manifest)})
    facts = {
        "training rows": f"{availability.images:,}",
        "one row": in_words(loading.fields_of(name, folder)),
        "ready": "yes" if availability.ready else "no",
        "from": availability.note or availability.origin,
        **(_facts(manifest) if manifest else {}),
    }
    output.answers().print(output.pairs(facts, "data set", name))
    if data_set.preparation:
        _say_summary(data_set.preparation)
    return _say_preview(folder, name)


@app.command(epilog=SETTABLE)
def prepare(
    preparation: Annotated[
        str, typer.Argument(metavar="PREPARATION", help=f"One of: {', '.join(PREPARATIONS)}.")
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", metavar="PATH", help="The source folder or file, if it needs one."),
    ] = None,
    name: Annotated[
        str, typer.Option("--as", metavar="NAME", help="The name of the new data set.")
    ] = "",
    assignments: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Set an option of the preparation; repeat for more."
        ),
    ] = None,
    preview: Annotated[
        bool,
        typer.Option("--preview", help="Only show what would be prepared and skipped."),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Prepare a data set for training: convert files, simulate, or download it.

    A background job does it, which the Data page shows. Ctrl-C cancels it and leaves no files.
    """
    folder = Home.choose(home)
    request = PreparationRequest(
        preparation, name, source, presets.parse_assignments(assignments or [])
    )
    request.check(needs_name=not preview)
    if preview:
        with following.one_line() as progress:
            return _say_survey(preparations.survey(request, progress), as_json)
    data_set, manifest = request.set_name, _run_job(folder, request)
    rows = loading.availability(data_set, folder).images
    if as_json:
        return output.print_json({"data_set": data_set, "rows": rows, **_preparation(manifest)})
    summary = loading.data_sets(folder)[data_set].preparation
    held_out = f", {summary.held_out:,} held out" if summary else ""
    output.say(
        f"data set {data_set} is ready: {rows:,} training rows{held_out}. "
        f"Train on it with `train --set dataset={data_set}`."
    )
    if summary:
        _say_summary(summary, MOST_LINES)
    return _say_preview(folder, data_set)


@app.command()
def remove(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Delete a prepared data set for good. Refused while a waiting or training run uses it."""
    commands(Home.choose(home)).remove_data(name)
    if as_json:
        return output.print_json({"removed": name})
    return output.say(f"data set {name} is deleted.")


def _run_job(home: Home, request: PreparationRequest) -> Manifest | None:
    """Waits for the job of a preparation; None for a set that Keras stores.

    Raises:
        JobError: the job has failed; the message is its reason. Others as
            `commands.prepare_data`.
    """
    source = request.source.absolute() if request.source is not None else None
    job = commands(home).prepare_data(request.preparation, request.name, source, request.options)
    following.to_its_end(home, job)
    name = request.set_name
    return prepared.manifest(home, name) if prepared.exists(home, name) else None


def in_words(fields: Fields) -> str:
    """The fields of a row: "64 × 64 × 3 images, labels"."""
    return ", ".join(
        f"{field.size} {name}" if field.shape else name for name, field in fields.items()
    )


def _say_summary(summary: Summary, most: int | None = None) -> None:
    """Sentences, warnings and tables; of each table the first `most` rows."""
    warnings = (f"Warning: {warning}" for warning in summary.warnings)
    for sentence in (*summary.sentences(), *warnings):
        output.say(sentence)
    output.answers().print(*_details(summary, most), sep="\n", end="")


def _say_preview(home: Home, name: str) -> None:
    if path := prepared.first_rows_image(home, name):
        output.say(f"See the first rows in {path}.")


def _say_survey(survey: Survey, as_json: bool) -> None:
    if as_json:
        facts = survey.summary.model_dump(mode="json")
        return output.print_json(
            {"rows": survey.rows, **facts, "bytes_on_disk": survey.bytes_on_disk}
        )
    rows = {
        "training rows": f"{survey.rows:,}",
        "held out": f"{survey.summary.held_out:,}",
        "one row": in_words(survey.fields),
        "on disk": formats.size(survey.bytes_on_disk),
    }
    output.answers().print(output.pairs(rows, "preview", ""))
    return _say_summary(survey.summary)


def _facts(manifest: Manifest) -> dict[str, str]:
    """Facts about the preparation of a set."""
    return {
        "held out": f"{manifest.held_out:,}",
        "on disk": formats.size(manifest.bytes),
        "prepared at (UTC)": f"{manifest.prepared_at:%Y-%m-%d %H:%M}",
        **{key: str(value) for key, value in manifest.options.items()},
    }


def _details(summary: Summary, most: int | None = None) -> Iterator[Table]:
    """Rows of each class, and skipped rows; without empty tables."""
    if summary.counts:
        rows = [
            (name, f"{train:,}", f"{held_out:,}")
            for name, (train, held_out) in summary.by_split().items()
        ]
        yield _cut(("class", "training", "held out"), rows, len(rows), most)
    if skipped := [(skip.name, skip.reason) for skip in summary.skipped.first]:
        yield _cut(("skipped", "why"), skipped, sum(summary.skipped.counts.values()), most)


def _cut(
    columns: Sequence[str], rows: Sequence[Sequence[str]], total: int, most: int | None
) -> Table:
    """The first rows, and how many more there are."""
    table = output.table(*columns)
    for row in rows[:most]:
        table.add_row(*row)
    if more := total - len(rows[:most]):
        table.add_row("…", f"and {more:,} more")
    return table


def _record(data_set: loading.DataSetInfo) -> dict[str, Any]:
    fields = data_set.fields
    return {
        "data_set": data_set.name,
        "prepared": data_set.is_prepared,
        "rows": data_set.rows,
        "fields": {
            name: {"shape": field.shape, "dtype": field.dtype} for name, field in fields.items()
        },
        "classes": next((list(field.classes) for field in fields.values() if field.classes), []),
        "problem": data_set.problem,
    }


def _preparation(manifest: Manifest | None) -> dict[str, Any]:
    """The preparation of a set for JSON; empty for built-in sets."""
    return (
        manifest.model_dump(mode="json", exclude={"format", "name", "fields", "shards"})
        if manifest
        else {}
    )
