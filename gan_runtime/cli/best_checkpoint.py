"""`best`: which epoch of a run is the best by one of its numbers, and on request the best checkpoint made of it."""

from __future__ import annotations

from typing import Annotated

import typer

from gan_runtime.base.errors import FieldError, SpecError, quoted
from gan_runtime.cli import output, tables
from gan_runtime.cli.arguments import HomeOption, JsonOption, RunArgument, commands
from gan_runtime.records.home import Home, command_line
from gan_runtime.store import memory, queries
from gan_runtime.training import trained


def best(
    run: RunArgument,
    by: Annotated[
        str,
        typer.Option(metavar="METRIC", help="Make the best checkpoint of the epoch in which this is lowest."),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell the best epoch of a run by each number that measures quality, or with --by choose its best checkpoint anew.

    It needs weight_snapshots=yes; numbers of a job, such as those of `physics RUN --checkpoint every`, count as soon as they are there.
    """
    folder = Home.choose(home).run_dir(run)
    store = memory.from_journals(Home.choose(home), [folder])
    known = {metric.name: metric for metric in queries.declared_of(store, [run]).qualities}
    found = queries.best_epochs(store, run, list(known), trained.kept_epochs(folder))
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
        return f"{run} has fewer than two epochs with kept weights and such a number: train with weight_snapshots=yes."
    return f"Choose one: `{command_line()} best {run} --by {there[-1]}`"


def _unknown(by: str, there: list[str]) -> str:
    if not there:
        return f"by is {quoted(by)}, but no number of quality is known of two epochs whose weights were kept: train with weight_snapshots=yes."
    return f"by is {quoted(by)}, but allowed is {', '.join(there)}: use one of them."
