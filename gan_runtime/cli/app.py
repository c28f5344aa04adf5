"""The commands: each reads its options, asks one module, and prints.

`python -m gan_runtime COMMAND --help`

Exit codes: 0 done; 1 a run that was followed failed or was lost; 2 something asked for is wrong,
said in one sentence. Reading commands (runs, show, sql, export) build their answer in memory from
the journals, so they work beside a dashboard and without a usable results.duckdb, and change
nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gan_runtime.base.operator_password import hash_of
from gan_runtime.cli import (
    data_sets,
    evaluating,
    kept,
    output,
    queueing,
    runs,
    serving,
    tables,
    tpu_checks,
    training,
)
from gan_runtime.cli.arguments import (
    CHANGEABLE,
    SETTABLE,
    AfterOption,
    AssignmentsOption,
    DetachOption,
    HomeOption,
    JsonLinesOption,
    JsonOption,
    OnlyIfFinishedOption,
    RunArgument,
    StartFromOption,
    VersionOption,
    commands,
)
from gan_runtime.cli.output import OneSentence
from gan_runtime.cli.serving import Place
from gan_runtime.hardware import host_presets, hosts
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec, nesting, presets
from gan_runtime.spec.run_spec import read_values
from gan_runtime.studies.design import StudyDesign
from gan_runtime.studies.questions import QUESTIONS

app = typer.Typer(
    cls=OneSentence,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


app.add_typer(data_sets.app, name="data")
app.add_typer(queueing.app, name="queue")


@app.callback()
def program(version: VersionOption = False) -> None:
    """Launch, watch and compare GAN training from a terminal."""


@app.command()
def devices(home: HomeOption = None, as_json: JsonOption = False) -> None:  # noqa: ARG001  (every command takes --home)
    """What this host offers to train on, and why the rest is missing. Takes some seconds."""
    host = hosts.probe()
    if as_json:
        return output.print_json(host.model_dump())
    output.say(
        f"{host.cpu_model}, {host.cores} cores, {host.memory_bytes / 2**30:.0f} GiB; TensorFlow"
        f" {host.tensorflow}"
    )
    return output.answers().print(tables.devices(host))


@app.command(epilog=SETTABLE)
def train(
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "",
    assignments: AssignmentsOption = None,
    spec_file: Annotated[
        Path | None,
        typer.Option(
            "--spec", metavar="FILE", help="A JSON file of options, such as a run's spec.json."
        ),
    ] = None,
    start_from: StartFromOption = "",
    after: AfterOption = "",
    only_if_finished: OnlyIfFinishedOption = False,
    detach: DetachOption = False,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Train a run and follow it to its end. Ctrl-C stops and saves it. Exit code 1 if it fails."""
    chosen = Home.choose(home)
    values = host_presets.values(preset) if preset else {}
    if spec_file:
        values = nesting.overlaid(values, read_values(spec_file))
    values = nesting.overlaid(values, presets.parse_assignments(assignments or []))
    spec = RunSpec.parse({**values, "start_from": start_from} if start_from else values)
    if why := host_presets.caution(spec):
        typer.echo(f"{why} Add --set precision=float32 to train in that.", err=True)
    with training.choose(as_json) as report:
        if detach:
            end = training.queue(chosen, spec, preset, queueing.wish(after, only_if_finished))
            report.show(end)
        else:
            end = training.train(
                chosen, spec, preset, report, queueing.wish(after, only_if_finished)
            )
    training.conclude(chosen, end, as_json)


@app.command(epilog=SETTABLE)
def study(
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help=f"One of: {', '.join(QUESTIONS)}.")
    ],
    values: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,…", help="The values to compare. Default: those of the question."
        ),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            metavar="N",
            help=(
                "Runs of each value, each with another seed. Two give an interval; more narrow it."
            ),
        ),
    ] = 1,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "",
    assignments: AssignmentsOption = None,
    title: Annotated[
        str, typer.Option(metavar="TEXT", help="What the study is called in lists.")
    ] = "",
    detach: DetachOption = False,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Train several runs that differ in one thing, interleaved, and follow them.

    The Studies page shows what they say.
    """
    chosen = Home.choose(home)
    base = nesting.overlaid(
        host_presets.values(preset) if preset else {}, presets.parse_assignments(assignments or [])
    )
    design = StudyDesign.parse(
        question, base, None if values is None else values.split(","), repeats, title
    )
    with training.choose(as_json) as report:
        if detach:
            ends = training.queue_study(chosen, design)
            for end in ends:
                report.show(end)
        else:
            ends = training.train_study(chosen, design, report)
    states = [end.row.status for end in ends]
    if not as_json:
        output.say(
            f"study {ends[0].row.study_id}:"
            f" {', '.join(f'{states.count(one)} {one}' for one in dict.fromkeys(states))}."
        )
    if {"failed", "lost"} & set(states):
        raise typer.Exit(1)


@app.command(epilog=CHANGEABLE)
def resume(
    run: RunArgument,
    assignments: AssignmentsOption = None,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Go on with a stopped, failed or lost run, if need be with other rates, and follow it as
    `train` does.
    """
    chosen = Home.choose(home)
    with training.choose(as_json) as report:
        end = training.resume(chosen, run, presets.parse_assignments(assignments or []), report)
    training.conclude(chosen, end, as_json)


for command in (runs.runs, runs.show, runs.stop, runs.sql, runs.export, runs.bundle):
    app.command()(command)
app.command("import")(runs.import_)
app.command("tpu-check", epilog=SETTABLE)(tpu_checks.tpu_check)
app.command()(evaluating.generate)
app.command()(kept.best)
app.command()(kept.mark)
app.command()(kept.delete)
app.command("bin")(kept.bin_)
app.command()(kept.restore)
app.command()(kept.space)


app.command(epilog=evaluating.SETTABLE)(evaluating.evaluate)
for name, alias in evaluating.aliases().items():
    app.command(name)(alias)


@app.command()
def rebuild(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make results.duckdb anew from the journals.

    Refused while a dashboard or a training is open.
    """
    chosen = Home.choose(home)
    rebuilt = commands(chosen).rebuild()
    if as_json:
        return output.print_json(
            {"database": chosen.database, "rows": rebuilt.rows, "damaged": rebuilt.damaged}
        )
    output.say(f"{chosen.database} is made anew: {tables.counts(rebuilt.rows)}.")
    return (
        output.say(f"the unusable old file is kept as {rebuilt.damaged.name}.")
        if rebuilt.damaged
        else None
    )


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65_535)] = 8501,
    address: Annotated[
        str,
        typer.Option(
            help=(
                "127.0.0.1 lets only this machine in; with 0.0.0.0 everyone can look"
                " (docs/sharing.md)."
            )
        ),
    ] = "127.0.0.1",
    tls_cert: Annotated[
        Path | None, typer.Option(help="A certificate in PEM; the dashboard is then at https.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="The key of the certificate.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Open the dashboard. Ctrl-C ends it; trainings go on."""
    serving.serve(Home.choose(home), Place(address, port, tls_cert, tls_key), as_json)


@app.command()
def operator_password(
    home: HomeOption = None,  # noqa: ARG001 (every command takes it; this one touches no home)
    as_json: JsonOption = False,
) -> None:
    """Ask for a password for the operators of a shared dashboard, and print the lines for
    .streamlit/secrets.toml.
    """
    password = typer.prompt(
        "Operator password", hide_input=True, confirmation_prompt=True, err=True
    )
    hashed = hash_of(password)
    if as_json:
        output.print_json({"password": hashed})
    else:
        output.say(f'[operators]\npassword = "{hashed}"')
