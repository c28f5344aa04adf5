"""`targets`: the other places where runs of a home train."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from gan_runtime.base.errors import TargetSettingError
from gan_runtime.cli import HomeOption, JsonOption, commands, output
from gan_runtime.cli.output import OneSentence
from gan_runtime.records.home import Home, command_line
from gan_runtime.supervision.target_starter import target_of
from gan_runtime.targets import configuration
from gan_runtime.targets.slurm import Slurm
from gan_runtime.targets.target import Offer

app = typer.Typer(
    cls=OneSentence,
    no_args_is_help=True,
    help="Other places where runs train: Slurm clusters, and hosts that ssh reaches.",
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
        words = (
            (each.partition, each.accelerator, each.time_limit)
            if each.kind == "slurm"
            else ("", each.accelerator, "")
        )
        table.add_row(name, each.kind, each.host or "this one", *words)
    return output.answers().print(table)


@app.command()
def add(
    name: NameArgument,
    kind: Annotated[str, typer.Option(help="slurm, ssh or kubernetes.")] = "slurm",
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="The host or login node, as `ssh HOST` names it."),
    ] = "",
    python: Annotated[
        str, typer.Option(metavar="PATH", help="The Python of this project there.")
    ] = "",
    project: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="A clone of this project there; '' if it is installed."),
    ] = None,
    accelerator: Annotated[str, typer.Option(help="cpu, gpu, or tpu with ssh.")] = "",
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
    image: Annotated[str, typer.Option(help="Kubernetes: the image with this project.")] = "",
    claim: Annotated[str, typer.Option(help="Kubernetes: the claim with the home.")] = "",
    namespace: Annotated[str, typer.Option(help="Kubernetes: the namespace.")] = "",
    command: Annotated[
        str, typer.Option(metavar="WORDS", help="What takes the place of `ssh HOST`.")
    ] = "",
    apart: Annotated[
        bool,
        typer.Option(
            "--apart", help="Slurm: the cluster does not see this home; files are copied."
        ),
    ] = False,
    requeue: Annotated[bool, typer.Option(help="Let Slurm start an ended job again.")] = True,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a Slurm or Kubernetes cluster, or a host that ssh reaches; a target of the same name is
    replaced.

    Further settings are in targets.toml (docs/cluster.md).
    """
    texts = {
        **{"host": host, "python": python, "accelerator": accelerator, "partition": partition},
        **{"account": account, "qos": qos, "constraint": constraint, "time_limit": time_limit},
        **{"memory": memory, "cpus_per_task": cpus_per_task, "prelude": prelude, "extra": extra},
        **{"image": image, "claim": claim, "namespace": namespace},
        **{"command": tuple(shlex.split(command))},
    }
    values = {key: value for key, value in texts.items() if value}
    values |= {} if project is None else {"project": project}
    values |= {} if requeue else {"requeue": False}
    place = Home.choose(home)
    commands(place).add_target(name, {"kind": kind, **values}, is_apart=apart)
    if as_json:
        return output.print_json(configuration.target(place, name).model_dump())
    return output.say(f"Added {name}. Try it with `{command_line()} targets check {name}`.")


@app.command()
def check(
    name: NameArgument,
    set_up: Annotated[
        bool, typer.Option("--set-up", help="First run `make setup` in the project there.")
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Ask a target what it has, and whether runs can train there."""
    place = Home.choose(home)
    target = target_of(configuration.target(place, name), place)
    offer = target.set_up() if set_up else Offer()
    if not offer.refusal:
        offer = target.check() if isinstance(target, Slurm) else target.offer()
    if as_json:
        output.print_json({"lines": offer.lines, "refusal": offer.refusal})
    elif not offer.refusal:
        output.say("\n".join(offer.lines))
    if offer.refusal:
        raise TargetSettingError(f"{name} cannot be used: {offer.refusal}")
