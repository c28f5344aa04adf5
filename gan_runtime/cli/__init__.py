"""The command line: every command of the dashboard, for a terminal or a script.

app         the list of commands; `devices` and `serve`
training    `train`, `study`, `resume`
runs        `runs`, `show`, `stop`, `queue`
storage     `sql`, `export`, `bundle`, `import`, `mark`, `best`, `delete`, `bin`, `restore`, `space`
evaluating  `evaluate`, `generate`
data_sets   `data`
tpu_checks  `tpu-check`
gpu_checks  `gpu-check`
following   progress of runs and jobs, and Ctrl-C
output      stdout, stderr, tables, errors

Here: options and arguments that several commands share. Imports no framework.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from gan_runtime import __version__, catalog
from gan_runtime.base import options
from gan_runtime.base.options import Option
from gan_runtime.cli import output
from gan_runtime.commands import Commands
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.home import HOME_VARIABLE, Home
from gan_runtime.records.record import Actor, operator
from gan_runtime.spec import RunSpec
from gan_runtime.supervision.admission import Dependency

COMMAND_LINE = operator("command line")


def commands(
    home: Home, host: Callable[[], Host] | None = None, actor: Actor = COMMAND_LINE
) -> Commands:
    """The commands of a home, bound to the command line as their actor."""
    return Commands(home, actor, host)


def dependency(run_id: str, only_if_finished: bool) -> Dependency | None:
    """The value of --after and --only-if-finished."""
    if not run_id:
        return None
    return Dependency(run_id, "finished" if only_if_finished else "ended")


def allowed_values(record: Mapping[str, Option]) -> str:
    """The options of a record with the values of each: "size: a whole number from 5 to 41; …"."""
    return "; ".join(f"{name}: {option.allowed}" for name, option in record.items())


def _of_workloads() -> Iterator[str]:
    """A paragraph for each record of options, naming the workloads that have it."""
    for record in dict.fromkeys(entry.options for entry in catalog.WORKLOADS.values()):
        names = [name for name, entry in catalog.WORKLOADS.items() if entry.options is record]
        yield f"Options of {' and '.join(names)}: {allowed_values(options.of(record))}"


_RATES = dict.fromkeys(rate for entry in catalog.WORKLOADS.values() for rate in entry.rates)
SETTABLE = "\n\n".join(
    [
        f"Options for --set (docs/reference/options.md): {allowed_values(RunSpec.options())}",
        *_of_workloads(),
    ]
)
CHANGEABLE = (
    f"Options for --set: clip_norm: {RunSpec.options()['clip_norm'].allowed}; "
    f"the learning rates of the run's networks, such as {', '.join(_RATES)}."
)


def _version(is_requested: bool) -> None:
    if is_requested:
        output.say(f"gan-dashboard {__version__}")
        raise typer.Exit


VersionOption = Annotated[
    bool,
    typer.Option(
        "--version",
        callback=_version,
        is_eager=True,
        help="Print the version and exit.",
    ),
]
HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        metavar="DIR",
        help=(
            f"The home folder, which holds the runs. Default: ${HOME_VARIABLE}, or the project"
            " folder, or ~/gan-dashboard for an installed program."
        ),
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
JsonLinesOption = Annotated[
    bool,
    typer.Option(
        "--json",
        help=(
            "Print JSON lines on stdout: one for each change of state and each epoch; the last is"
            " the end."
        ),
    ),
]
AssignmentsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set an option, such as epochs=3; repeat it for more.",
    ),
]
StartFromOption = Annotated[
    str,
    typer.Option(
        "--from",
        metavar="RUN[:EPOCH]",
        help=(
            "Start from that run's weights, after its newest epoch or this one, where names and"
            " shapes match. Short for --set start_from=RUN[:EPOCH]."
        ),
    ),
]
DetachOption = Annotated[
    bool, typer.Option("--detach", help="Only queue it; a dashboard or another `train` trains it.")
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
            "Start only if that run has finished. If it ends otherwise, this one continues to wait."
        ),
    ),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace existing files.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="The id of a run, such as quick-0007; see `runs`.")
]
RunsArgument = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="Ids of runs, such as quick-0007; see `runs`.")
]
