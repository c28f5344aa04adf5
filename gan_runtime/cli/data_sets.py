"""`data list|prepare|show|remove`: the data sets of a home. `python -m gan_runtime data COMMAND --help`"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from gan_runtime.cli import output, progress_line
from gan_runtime.cli.arguments import ASKER, HomeOption, JsonOption
from gan_runtime.cli.tables import table
from gan_runtime.data import loading, prepared, preparing
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.data.prepared import Manifest, Skipped
from gan_runtime.data.preparing import Asked
from gan_runtime.data.survey import Survey
from gan_runtime.fields import Fields
from gan_runtime.home import Home
from gan_runtime.runtime import commands
from gan_runtime.spec import presets

SETTABLE = "\n\n".join(
    f"Options for --set of {name}: "
    + "; ".join(f"{option.name}: {option.allowed}" for option in preparing.options_of(known.options).values())
    for name, known in PREPARATIONS.items()
    if preparing.options_of(known.options)
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A data set; `data list` lists them.")]

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
    """Show one data set: rows, fields, labels; of a prepared one how it was made and what was left out."""
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
    return output.answers().print(*_tables(name, facts, manifest), sep="\n")


@app.command(epilog=SETTABLE)
def prepare(
    preparation: Annotated[
        str, typer.Argument(metavar="PREPARATION", help=f"One of: {', '.join(PREPARATIONS)}.")
    ],
    source: Annotated[
        Path | None, typer.Option("--from", metavar="PATH", help="A folder or a file, where one is needed.")
    ] = None,
    name: Annotated[str, typer.Option("--as", metavar="NAME", help="What the new data set is called.")] = "",
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One option of the preparation; may be repeated."),
    ] = None,
    preview: Annotated[
        bool, typer.Option("--preview", help="Only say what would be made and left out; store nothing.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a data set ready for runs, in a background job: convert files, simulate, or download a set.

    The Data page shows it too. Ctrl-C cancels it and leaves nothing half-made.
    """
    chosen = Home.choose(home)
    asked = Asked(preparation, name, source, presets.parse_assignments(assignments or []))
    asked.check()
    if preview:
        with progress_line.one_line() as progress:
            return _say_survey(preparing.survey(asked, progress), as_json)
    made, manifest = asked.set_name, _prepared_by_a_job(chosen, asked)
    rows = loading.availability(made, chosen).images
    if as_json:
        return output.print_json({"data_set": made, "rows": rows, **_prepared(manifest)})
    left_out = _left_out(manifest) if manifest else ""
    return output.say(
        f"data set {made} is ready: {rows:,} rows to train on{left_out}. "
        f"Train on it with `train --set dataset={made}`."
    )


@app.command()
def remove(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Remove a prepared data set for good. Refused while a run that waits or trains uses it."""
    commands.remove_data(Home.choose(home), name, asker=ASKER)
    if as_json:
        return output.print_json({"removed": name})
    return output.say(f"data set {name} is removed.")


def _prepared_by_a_job(home: Home, asked: Asked) -> Manifest | None:
    """Waits for the job, which the Data page shows too; None for a set that the program does not keep itself.

    Raises:
        JobError: the job has failed; the message gives its reason. Others as `commands.prepare_data`.
    """
    source = asked.source.absolute() if asked.source is not None else None
    job = commands.prepare_data(home, asked.preparation, asked.name, source, asked.options, asker=ASKER)
    progress_line.to_its_end(home, job)
    name = asked.set_name
    return prepared.manifest(home, name) if prepared.is_there(home, name) else None


def in_words(fields: Fields) -> str:
    """What a row holds: "64 × 64 × 3 images, labels"."""
    return ", ".join(f"{field.size} {name}" if field.shape else name for name, field in fields.items())


def _left_out(manifest: Manifest) -> str:
    """The end of a sentence: "; 3 files are left out (too small 2, damaged 1), such as a.png: …", or the note of the set."""
    skipped = manifest.skipped
    if not skipped.first:
        return f"; {manifest.note}" if manifest.note else ""
    total, first = sum(skipped.counts.values()), skipped.first[0]
    files = "1 file is" if total == 1 else f"{total:,} files are"
    kinds = ", ".join(f"{kind} {count:,}" for kind, count in skipped.counts.items())
    return f"; {files} left out ({kinds}), such as {first.name}: {first.reason}"


def _say_survey(seen: Survey, as_json: bool) -> None:
    if as_json:
        skipped = seen.skipped.model_dump()
        facts = {"rows": seen.rows, "held_out": seen.held_out, "counts": seen.counts, "skipped": skipped}
        return output.print_json({**facts, "bytes_on_disk": seen.bytes_on_disk})
    told = {
        "rows to train on": f"{seen.rows:,}",
        "held out": f"{seen.held_out:,}",
        "one row": in_words(seen.fields),
        "on disk": f"{seen.bytes_on_disk / 1e6:,.1f} MB",
    }
    tables = [_pairs("would be made", "", told), *_details(seen.counts, seen.skipped)]
    return output.answers().print(*tables, sep="\n")


def _tables(name: str, facts: dict[str, str], manifest: Manifest | None) -> list[Table]:
    if manifest is None:
        return [_pairs("data set", name, facts)]
    more = {
        "held out": f"{manifest.held_out:,}",
        "on disk": f"{manifest.bytes / 1e6:,.1f} MB",
        "prepared at (UTC)": f"{manifest.prepared_at:%Y-%m-%d %H:%M}",
        **{key: str(value) for key, value in manifest.options.items()},
        "hidden files": f"{manifest.skipped.hidden:,}",
        **({"note": manifest.note} if manifest.note else {}),
    }
    return [_pairs("data set", name, {**facts, **more}), *_details(manifest.counts, manifest.skipped)]


def _details(counts: dict[str, int], skipped: Skipped) -> Iterator[Table]:
    """Rows of each class, and what was left out; each only where there is something to tell."""
    if counts:
        yield _pairs("class", "rows", {name: f"{count:,}" for name, count in counts.items()})
    if skipped.first:
        more = sum(skipped.counts.values()) - len(skipped.first)
        rest = {"…": f"and {more:,} more"} if more else {}
        yield _pairs("left out", "why", {skip.name: skip.reason for skip in skipped.first} | rest)


def _pairs(first: str, second: str, pairs: dict[str, str]) -> Table:
    made = table(first, second)
    for name, value in pairs.items():
        made.add_row(name, value)
    return made


def _record(known: loading.KnownSet) -> dict[str, Any]:
    fields = {name: {"shape": field.shape, "dtype": field.dtype} for name, field in known.fields.items()}
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
        manifest.model_dump(mode="json", exclude={"format", "name", "fields", "shards"}) if manifest else {}
    )
