"""Options and arguments that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from gan_runtime import __version__, catalog
from gan_runtime.base import options
from gan_runtime.base.options import Option
from gan_runtime.cli import output
from gan_runtime.commands.commands import Commands
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.actors import Actor, operator
from gan_runtime.records.home import HOME_VARIABLE, Home
from gan_runtime.spec import RunSpec

COMMAND_LINE = operator("command line")


def commands(
    home: Home, host: Callable[[], Host] | None = None, actor: Actor = COMMAND_LINE
) -> Commands:
    """Every change of a home, as the command line asks for it."""
    return Commands(home, actor, host)


def _listed(names: Iterable[str], known: Mapping[str, Option]) -> str:
    return "; ".join(f"{name}: {known[name].allowed}" for name in names)


def _of_workloads() -> Iterator[str]:
    """A sentence for each record of options, naming the workloads that have it."""
    records = {entry.options: "" for entry in catalog.WORKLOADS.values()}
    for record in records:
        theirs = [name for name, entry in catalog.WORKLOADS.items() if entry.options is record]
        yield (
            f"Options of {' and '.join(theirs)}: {_listed(options.of(record), options.of(record))}"
        )


_RATES = dict.fromkeys(rate for entry in catalog.WORKLOADS.values() for rate in entry.rates)
SETTABLE = ". ".join(
    [f"Options for --set: {_listed(RunSpec.options(), RunSpec.options())}", *_of_workloads()]
)
CHANGEABLE = (
    f"Options for --set: clip_norm: {RunSpec.options()['clip_norm'].allowed}; "
    f"the learning rates of the run's networks, such as {', '.join(_RATES)}."
)


def _version(asked: bool) -> None:
    if asked:
        output.say(f"gan-dashboard {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version of this program, and end.",
    ),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help=(
            f"Folder of results.duckdb and runs/. Default: {HOME_VARIABLE}, else the project (where"
            " the program is installed: ~/gan-dashboard)."
        ),
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON document and nothing else on stdout.")
]
JsonLinesOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help=(
            "Print JSON lines on stdout: one per change of state and finished epoch; the last is"
            " the end."
        ),
    ),
]
AssignmentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One option of the run; may be repeated; wins over the rest. 1_000 is 1000.",
    ),
]
StartFromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="RUN[:EPOCH]",
        help=(
            "Begin with that run's weights, after its newest epoch or this one, where names and"
            " shapes fit. Short for --set start_from=RUN[:EPOCH]."
        ),
    ),
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Only queue; the dashboard or another training starts it.")
]
AfterOption = Annotated[
    str,
    typer.Option(
        "--after",
        metavar="RUN",
        help="Start once that run has ended: finished, stopped, failed, lost or deleted.",
    ),
]
OnlyIfFinishedOption = Annotated[
    bool,
    typer.Option(
        "--only-if-finished",
        help=(
            "Not if the run before it was stopped, failed, lost or deleted; then this one keeps"
            " waiting."
        ),
    ),
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that are there already.")
]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's id, such as quick-0007; `runs` lists them.")
]
