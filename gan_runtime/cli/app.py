"""The commands: each reads its options, asks one module, and prints. `python -m gan_runtime COMMAND --help`

Exit codes: 0 done; 1 a run that was followed failed or was lost; 2 something asked for is wrong, said in one sentence.
Reading commands (runs, show, sql, export) build their answer in memory from the journals, so they work beside a dashboard
and without a usable results.duckdb, and change nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gan_runtime import bundles
from gan_runtime.base import disk
from gan_runtime.base.errors import BundleError
from gan_runtime.base.operator_password import hash_of
from gan_runtime.cli import (
    best_checkpoint,
    binned,
    data_sets,
    evaluating,
    generating,
    marking,
    output,
    queueing,
    record,
    reports,
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
    OverwriteOption,
    RunArgument,
    StartFromOption,
    VersionOption,
    commands,
)
from gan_runtime.cli.refusals import OneSentence
from gan_runtime.cli.serving import Place
from gan_runtime.hardware import host_presets, hosts
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_state import latest_status
from gan_runtime.spec import RunSpec, nesting, presets
from gan_runtime.spec.spec_file import read_values
from gan_runtime.store import export as exporting
from gan_runtime.store import memory, queries
from gan_runtime.store.user_sql import Limits
from gan_runtime.studies.design import StudyDesign
from gan_runtime.studies.questions import QUESTIONS
from gan_runtime.tpu.chips import TOPOLOGIES

NO_RUNS = f"no runs yet: start one with `{command_line()} train --preset quick`, or on the Launch page."


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
        f"{host.cpu_model}, {host.cores} cores, {host.memory_bytes / 2**30:.0f} GiB; TensorFlow {host.tensorflow}"
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
        typer.Option("--spec", metavar="FILE", help="A JSON file of options, such as a run's spec.json."),
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
    with reports.choose(as_json) as report:
        if detach:
            end = training.queue(chosen, spec, preset, queueing.wish(after, only_if_finished))
            report.show(end)
        else:
            end = training.train(chosen, spec, preset, report, queueing.wish(after, only_if_finished))
    reports.conclude(chosen, end, as_json)


@app.command(epilog=SETTABLE)
def study(
    question: Annotated[str, typer.Argument(metavar="QUESTION", help=f"One of: {', '.join(QUESTIONS)}.")],
    values: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="The values to compare. Default: those of the question."),
    ] = None,
    repeats: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Runs of each value, each with another seed. Two give an interval; more narrow it.",
        ),
    ] = 1,
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "",
    assignments: AssignmentsOption = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="What the study is called in lists.")] = "",
    detach: DetachOption = False,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Train several runs that differ in one thing, interleaved, and follow them. The Studies page shows what they say."""
    chosen = Home.choose(home)
    base = nesting.overlaid(
        host_presets.values(preset) if preset else {}, presets.parse_assignments(assignments or [])
    )
    design = StudyDesign.parse(question, base, None if values is None else values.split(","), repeats, title)
    with reports.choose(as_json) as report:
        if detach:
            ends = training.queue_study(chosen, design)
            for end in ends:
                report.show(end)
        else:
            ends = training.train_study(chosen, design, report)
    states = [end.row.status for end in ends]
    if not as_json:
        output.say(
            f"study {ends[0].row.study_id}: {', '.join(f'{states.count(one)} {one}' for one in dict.fromkeys(states))}."
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
    """Go on with a stopped, failed or lost run, if need be with other rates, and follow it as `train` does."""
    chosen = Home.choose(home)
    with reports.choose(as_json) as report:
        end = training.resume(chosen, run, presets.parse_assignments(assignments or []), report)
    reports.conclude(chosen, end, as_json)


@app.command()
def runs(
    hidden: Annotated[bool, typer.Option("--hidden", help="Hidden runs too; JSON always has them.")] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the stored runs, pinned ones first, then the newest."""
    chosen = Home.choose(home)
    store = memory.from_journals(chosen)
    for name, reason in queries.set_aside(store).items():
        output.notes().print(f"{name} is no run that can be read, and is left out: {reason}.")
    frame = queries.run_table(store)
    frame["bytes"] = [disk.used_bytes(chosen.runs / run_id) for run_id in frame["run_id"]]
    if as_json:
        frame = frame.drop(columns="spec")  # `show --json` has the options, and not as text within JSON
        return output.print_json(frame.astype(object).where(frame.notna(), None).to_dict("records"))
    if frame.empty:
        return output.say(NO_RUNS)
    if left_out := 0 if hidden else int(frame["hidden"].sum()):
        output.note(f"{left_out} hidden run(s) are left out: --hidden lists them too.")
    return output.answers().print(tables.runs(frame[~frame["hidden"]] if left_out else frame))


@app.command()
def show(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show one run: state and reason, options, last numbers, phases, events."""
    chosen = Home.choose(home)
    found = record.of_run(memory.from_journals(chosen, [chosen.run_dir(run)]), run)
    if as_json:
        return output.print_json(found)
    return output.answers().print(*tables.run_tables(found), sep="\n")


@app.command()
def stop(run: RunArgument, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Ask a waiting or training run to save and end; does not wait for it."""
    chosen = Home.choose(home)
    commands(chosen).stop(run)
    status = latest_status(chosen.run_dir(run)).status
    if as_json:
        return output.print_json({"run_id": run, "status": status, "stop_requested": True})
    return output.say(
        f"run {run} is asked to stop: it saves and ends after the steps now under way, or leaves the queue."
    )


@app.command()
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
            metavar="N", min=1, max=10_000_000, help="How many rows are given; a note tells of more."
        ),
    ] = Limits.rows,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer one SQL statement that reads, over the views of docs/schema.md. In JSON, columns of equal name are a, a_2, …"""
    found = memory.from_journals(Home.choose(home)).person_answer(statement, Limits(seconds, max_rows))
    if found.cut:
        output.note(
            f"only the first {max_rows:,} rows are given: there are more, which --max-rows would give."
        )
    if as_json:
        return output.print_json(found.records())
    return output.answers().print(tables.answer(found) if found.rows else "no rows")


@app.command()
def export(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs; `runs` lists them.")],
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
    store = memory.from_journals(chosen, run_dirs)
    paths = exporting.export(store, [run_dir.run_id for run_dir in run_dirs], to, form, overwrite)
    if as_json:
        return output.print_json({"folder": to, "files": [path.relative_to(to) for path in paths]})
    return output.say(f"{len(paths)} files are in {to}.")


@app.command()
def bundle(
    run: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of ended runs; `runs` lists them.")],
    to: Annotated[Path, typer.Option(metavar="FILE", help="The zip file to write.")],
    prefix: Annotated[
        str, typer.Option(metavar="TEXT", help="Comes before the ids of runs and studies.")
    ] = "",
    films: Annotated[
        bool, typer.Option(help="With the films of iterations, some megabytes each, or without them.")
    ] = True,
    overwrite: OverwriteOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write ended runs into one file to give away: options, numbers, images, films; no checkpoints, no names of hosts or folders."""
    chosen = Home.choose(home)
    runs = [chosen.run_dir(run_id) for run_id in dict.fromkeys(run)]
    size = bundles.pack(runs, to, prefix, overwrite, films)
    if as_json:
        return output.print_json({"file": to, "bytes": size})
    return output.say(f"{to} holds {len(set(run))} run(s) in {size / 1e6:.1f} MB.")


@app.command("import")
def import_(
    file: Annotated[Path | None, typer.Argument(metavar="FILE", help="A file made by `bundle`.")] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Load the runs of a bundle; without FILE the example runs. An open dashboard shows them within a moment."""
    files = bundles.examples() if file is None else [file]
    if not files:
        raise BundleError(
            "this copy of the project comes without the example runs: name a FILE made by `bundle`."
        )
    new = [run for each in files for run in commands(Home.choose(home)).import_bundle(each)]
    if as_json:
        return output.print_json({"runs": new})
    return output.say(
        f"{len(new)} new run(s): {', '.join(new)}." if new else "all runs of the bundle are here already."
    )


@app.command("tpu-check", epilog=SETTABLE)
def tpu_check(
    topology: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of: {', '.join(TOPOLOGIES)}.")
    ] = "v3:2x2",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "paper",
    assignments: AssignmentsOption = None,
    sweep: Annotated[
        bool, typer.Option(help="Also compile the other precision, the paper's batch sizes and fewer cores.")
    ] = True,
    frame: Annotated[
        bool,
        typer.Option(
            "--frame",
            help="Instead of the training step, the way from one frame to the next, in tiles over all cores.",
        ),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a run's training step for a TPU, without one, and say what it would take there. Exit code 1 if it is refused."""
    values = nesting.overlaid(host_presets.values(preset), presets.parse_assignments(assignments or []))
    if not tpu_checks.check(
        Home.choose(home), values, topology, sweep, as_json, "frame" if frame else "step"
    ):
        raise typer.Exit(1)


app.command()(generating.generate)
app.command()(best_checkpoint.best)
app.command()(marking.mark)
app.command()(binned.delete)
app.command("bin")(binned.bin_)
app.command()(binned.restore)
app.command()(binned.space)


app.command(epilog=evaluating.SETTABLE)(evaluating.evaluate)
for name, alias in evaluating.aliases().items():
    app.command(name)(alias)


@app.command()
def rebuild(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Make results.duckdb anew from the journals. Refused while a dashboard or a training is open."""
    chosen = Home.choose(home)
    rebuilt = commands(chosen).rebuild()
    if as_json:
        return output.print_json(
            {"database": chosen.database, "rows": rebuilt.rows, "damaged": rebuilt.damaged}
        )
    output.say(f"{chosen.database} is made anew: {tables.counts(rebuilt.rows)}.")
    return (
        output.say(f"the unusable old file is kept as {rebuilt.damaged.name}.") if rebuilt.damaged else None
    )


@app.command()
def serve(
    port: Annotated[int, typer.Option(min=1, max=65_535)] = 8501,
    address: Annotated[
        str,
        typer.Option(
            help="127.0.0.1 lets only this machine in; with 0.0.0.0 everyone can look (docs/sharing.md)."
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
    """Ask for a password for the operators of a shared dashboard, and print the lines for .streamlit/secrets.toml."""
    password = typer.prompt("Operator password", hide_input=True, confirmation_prompt=True, err=True)
    hashed = hash_of(password)
    if as_json:
        output.print_json({"password": hashed})
    else:
        output.say(f'[operators]\npassword = "{hashed}"')
