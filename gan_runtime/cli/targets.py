"""`targets`: the other places where runs of a home train."""

from __future__ import annotations

from typing import Annotated

import typer

from gan_runtime.base.errors import TargetSettingError
from gan_runtime.cli import HomeOption, JsonOption, output
from gan_runtime.cli.output import OneSentence
from gan_runtime.records.home import Home, command_line
from gan_runtime.supervision.target_starter import target_of
from gan_runtime.targets import configuration

app = typer.Typer(
    cls=OneSentence,
    no_args_is_help=True,
    help="Other places where runs train, such as a Slurm cluster.",
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="A name, such as atlas.")]


@app.command("list")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the targets of the home."""
    targets = configuration.targets_of(Home.choose(home))
    if as_json:
        return output.print_json({name: each.model_dump() for name, each in targets.items()})
    if not targets:
        return output.say(f"No targets: add one with `{command_line()} targets add`.")
    table = output.table("target", "kind", "host", "partition", "accelerator", "time limit")
    for name, each in targets.items():
        words = (each.host or "this one", each.partition, each.accelerator, each.time_limit)
        table.add_row(name, each.kind, *words)
    return output.answers().print(table)


@app.command()
def add(
    name: NameArgument,
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="The login node, as `ssh HOST` names it; here without."),
    ] = "",
    python: Annotated[
        str, typer.Option(metavar="PATH", help="The Python of this project there.")
    ] = "",
    project: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A clone of this project there; '' if it is installed."),
    ] = None,
    accelerator: Annotated[str, typer.Option(help="cpu or gpu.")] = "cpu",
    partition: Annotated[str, typer.Option(help="As sbatch --partition.")] = "",
    account: Annotated[str, typer.Option(help="As sbatch --account.")] = "",
    qos: Annotated[str, typer.Option(help="As sbatch --qos.")] = "",
    constraint: Annotated[str, typer.Option(help="As sbatch --constraint.")] = "",
    time_limit: Annotated[str, typer.Option(help="As sbatch --time.")] = "",
    memory: Annotated[str, typer.Option(help="As sbatch --mem.")] = "",
    cpus_per_task: Annotated[int, typer.Option(help="As sbatch --cpus-per-task.")] = 0,
    prelude: Annotated[
        list[str] | None,
        typer.Option(metavar="LINE", help="A line before the trainer; repeat for more."),
    ] = None,
    extra: Annotated[
        list[str] | None,
        typer.Option(metavar="OPTION", help="Another option of sbatch; repeat for more."),
    ] = None,
    requeue: Annotated[bool, typer.Option(help="Let Slurm start an ended job again.")] = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a Slurm cluster whose nodes see the home under the same path, or replace it.

    Further settings are in targets.toml (docs/cluster.md).
    """
    values = {
        **{"host": host, "accelerator": accelerator, "partition": partition, "account": account},
        **{"qos": qos, "constraint": constraint, "time_limit": time_limit, "memory": memory},
        **{"cpus_per_task": cpus_per_task, "prelude": prelude or (), "extra": extra or ()},
        **{"requeue": requeue, **({"python": python} if python else {})},
        **({} if project is None else {"project": project}),
    }
    target = configuration.parsed(name, values)
    configuration.add(Home.choose(home), name, target)
    if as_json:
        return output.print_json(target.model_dump())
    return output.say(f"Added {name}. Try it with `{command_line()} targets check {name}`.")


@app.command()
def check(name: NameArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a target what it has, and whether runs can train there."""
    offer = target_of(configuration.target(Home.choose(home), name)).offer()
    if as_json:
        output.print_json({"lines": offer.lines, "refusal": offer.refusal})
    elif not offer.refusal:
        output.say("\n".join(offer.lines))
    if offer.refusal:
        raise TargetSettingError(f"{name} cannot be used: {offer.refusal}")
