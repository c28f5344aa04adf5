"""`train`, `study` and `resume`: queue runs, make sure that the home has an owner, and follow the
runs to their end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gan_runtime.base import slurm
from gan_runtime.base.errors import (
    DeviceLockError,
    HomeError,
    HomeInUseError,
    RunStateError,
    TargetSettingError,
)
from gan_runtime.cli import (
    COMMAND_LINE,
    AfterOption,
    AssignmentsOption,
    DetachOption,
    HomeOption,
    JsonLinesOption,
    OnlyIfFinishedOption,
    RunArgument,
    StartFromOption,
    commands,
    dependency,
    following,
    output,
)
from gan_runtime.cli.following import RunDisplay, Snapshot, StopSignal, follow, snapshot_of
from gan_runtime.commands.runtime import Runtime
from gan_runtime.device_locks import locks
from gan_runtime.hardware import hosts, machine
from gan_runtime.records.home import Home, command_line
from gan_runtime.records.record import Actor
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec, nesting, presets
from gan_runtime.spec.run_options import HERE
from gan_runtime.spec.run_spec import read_values
from gan_runtime.store import queries
from gan_runtime.studies.design import QUESTIONS, StudyDesign
from gan_runtime.supervision import owner
from gan_runtime.supervision.admission import Dependency, admit
from gan_runtime.supervision.target_starter import first_script, target_of
from gan_runtime.targets import configuration

ORPHANED_SECONDS = 5.0  # a dashboard that restarts is back by then and stays the owner
PresetOption = Annotated[
    str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
]


def train(
    preset: PresetOption = "",
    assignments: AssignmentsOption = None,
    spec_file: Annotated[
        Path | None,
        typer.Option(
            "--spec", metavar="FILE", help="A JSON file of options, such as a run's spec.json."
        ),
    ] = None,
    target: Annotated[
        str, typer.Option("--on", metavar="NAME", help="Train on this target (see `targets`).")
    ] = "",
    script: Annotated[
        bool, typer.Option("--script", help="Only print the script of the job; needs --on.")
    ] = False,
    start_from: StartFromOption = "",
    after: AfterOption = "",
    only_if_finished: OnlyIfFinishedOption = False,
    detach: DetachOption = False,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Train a run and follow it to its end. Ctrl-C saves and stops it. Exit code 1 if it fails."""
    folder = Home.choose(home)
    values = machine.preset_values(preset) if preset else {}
    if spec_file:
        values = nesting.overlaid(values, read_values(spec_file))
    values = nesting.overlaid(values, presets.parse_assignments(assignments or []))
    values = {**values, "target": target} if target else values
    spec = RunSpec.parse({**values, "start_from": start_from} if start_from else values)
    _warn(preset, spec)
    if script:
        _print_script(folder, spec)
        return
    waits_for = dependency(after, only_if_finished)
    with following.display(as_json) as display:
        if detach:
            end = snapshot_of(folder, commands(folder).submit(spec, preset, waits_for))
            display.show(end)
        else:
            end = train_run(folder, spec, preset, display, waits_for)
    conclude(folder, end, as_json)


def _print_script(home: Home, spec: RunSpec) -> None:
    if spec.target == HERE:
        raise TargetSettingError("--script prints what a target would run: add --on NAME.")
    there = target_of(configuration.target(home, spec.target), home)
    typer.echo(first_script(there, home, admit(spec, hosts.probe(), home).spec), nl=False)


def _warn(preset: str, *specs: RunSpec) -> None:
    """Prints known problems with these options before anything starts."""
    for text in dict.fromkeys(filter(None, map(machine.precision_warning, specs))):
        typer.echo(f"{text} Add --set precision=float32 to use that.", err=True)
    for caution in machine.preset_cautions(preset, specs) if preset else ():
        repair = " ".join(f"--set {name}={value}" for name, value in caution.repair.items())
        typer.echo(f"{caution.text} Add {repair} to repair it.", err=True)


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
            help="Runs of each value, each with another seed. 2 give an interval.",
        ),
    ] = 1,
    preset: PresetOption = "",
    assignments: AssignmentsOption = None,
    title: Annotated[str, typer.Option(metavar="TEXT", help="The name of the study.")] = "",
    detach: DetachOption = False,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Train several runs that differ in one option, interleaved, and follow them.

    The report is on the Studies page.
    """
    folder = Home.choose(home)
    base = nesting.overlaid(
        machine.preset_values(preset) if preset else {},
        presets.parse_assignments(assignments or []),
    )
    design = StudyDesign.parse(
        question, base, None if values is None else values.split(","), repeats, title
    )
    _warn(preset, *(planned.spec for planned in design.runs))
    with following.display(as_json) as display:
        if detach:
            ends = [snapshot_of(folder, run) for run in commands(folder).submit_study(design)]
            for end in ends:
                display.show(end)
        else:
            ends = train_study(folder, design, display)
    states = [end.row.status for end in ends]
    if not as_json:
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
        output.say(f"study {ends[0].row.study_id}: {counts}.")
    if {"failed", "lost"} & set(states):
        raise typer.Exit(1)


def resume(
    run: RunArgument,
    assignments: AssignmentsOption = None,
    home: HomeOption = None,
    as_json: JsonLinesOption = False,
) -> None:
    """Resume a stopped, failed or lost run, with other rates if you like, and follow it."""
    folder = Home.choose(home)
    changes = presets.parse_assignments(assignments or [])
    with following.display(as_json) as display:
        end = resume_run(folder, run, changes, display)
    conclude(folder, end, as_json)


class Supervision:
    """Ensures that the home has an owner: another process, or a runtime of this process."""

    def __init__(self, home: Home, clock: Callable[[], float] = time.monotonic) -> None:
        self._home, self._clock = home, clock
        self._owner_seen_s = clock()
        _check_task()
        self.runtime = _open_if_free(home)
        if self.runtime is None and slurm.is_task():
            raise HomeInUseError(_of_another_host(home))

    def keep_up(self) -> None:
        """Takes over if the other owner has exited; otherwise a queued run would wait forever."""
        if self.runtime is not None:
            return
        if owner.is_owned(self._home):
            self._owner_seen_s = self._clock()
        elif self._clock() - self._owner_seen_s > ORPHANED_SECONDS:
            self.runtime = _open_if_free(self._home)

    @property
    def trouble(self) -> str:
        """Why the runtime of this process cannot act; empty when it can."""
        return self.runtime.trouble if self.runtime else ""

    def __enter__(self) -> Supervision:
        return self

    def __exit__(self, *_: object) -> None:
        if self.runtime is not None:
            _leave(self.runtime)


def train_run(
    home: Home,
    spec: RunSpec,
    preset: str,
    display: RunDisplay,
    after: Dependency | None = None,
    actor: Actor = COMMAND_LINE,
) -> Snapshot:
    """Queues the run and follows it; returns how it ended.

    Raises:
        StoreError, HomeError, DeviceLockError: the home or the locks of devices cannot be used; no
            run is queued.
        HomeInUseError, RunStateError: in a Slurm job, another process owns the home, or there are
            several tasks; no run is queued.
        SpecError: this host cannot train that; no run is queued.
    """
    host = hosts.probe()
    admit(spec, host, home, after.run_id if after else "")
    with Supervision(home) as supervision, StopSignal() as stop:
        run = commands(home, lambda: host, actor).submit(spec, preset, after)
        return _follow(home, run, supervision, stop, display)


def train_study(home: Home, design: StudyDesign, display: RunDisplay) -> list[Snapshot]:
    """Queues all runs of a study and follows them one after another; returns how they ended.

    Raises as `train_run`.
    """
    host = hosts.probe()
    for planned in design.runs:
        admit(planned.spec, host, home)
    ends: list[Snapshot] = []
    with Supervision(home) as supervision, StopSignal() as stop:
        runs = commands(home, lambda: host).submit_study(design)
        for number, run in enumerate(runs, 1):
            ends.append(_follow(home, run, supervision, stop, display, runs[number:]))
            if stop.is_requested:
                break
    return ends


def resume_run(
    home: Home, run_id: str, changes: Mapping[str, Any], display: RunDisplay
) -> Snapshot:
    """Queues an ended run again, with some options changed, and follows it; returns how it ended.

    Raises as `Commands.resume` and `train_run`.
    """
    run = home.run_dir(run_id)
    with Supervision(home) as supervision, StopSignal() as stop:
        if supervision.runtime is not None:
            # marks the run as lost if its trainer exited while the home had no owner
            supervision.runtime.refresh()
        commands(home).resume(run_id, changes)
        return _follow(home, run, supervision, stop, display)


def _follow(
    home: Home,
    run: RunDir,
    supervision: Supervision,
    stop: StopSignal,
    display: RunDisplay,
    waiting: Sequence[RunDir] = (),
) -> Snapshot:
    """Follows a run to its end.

    Ctrl-C also stops the runs that wait behind it: they first, so that none starts.
    """
    is_stopped, trouble = False, ""
    for snapshot in follow(home, run):
        display.show(snapshot)
        supervision.keep_up()
        if stop.is_requested and not is_stopped:
            output.notes().print(
                f"stopping {run.run_id}: it saves and ends after its current steps (Ctrl-C again:"
                " leave at once)"
            )
            for each in (*reversed(waiting), run):
                with contextlib.suppress(RunStateError):  # the run has just ended
                    commands(home).stop(each.run_id)
            is_stopped = True
        if supervision.trouble and supervision.trouble != trouble:
            trouble = supervision.trouble
            output.notes().print(f"cannot supervise the runs: {trouble}")
    return snapshot


def _leave(runtime: Runtime) -> None:
    """Releases the home with all rows in results.duckdb, and prints the runs that still wait."""
    try:
        with contextlib.suppress(OSError, HomeError):  # a full disk must not hide how the run ended
            runtime.refresh()
        waiting = [row.run_id for row in queries.queue(runtime.store)]
        if waiting:
            output.notes().print(
                f"still in the queue: {', '.join(waiting)}; start a dashboard or another `train` to"
                " train them."
            )
    finally:
        runtime.close()


def _check_task() -> None:
    """Raises RunStateError if Slurm has started this command several times."""
    if slurm.tasks() > 1:
        raise RunStateError(
            f"srun starts this command {slurm.tasks()} times, and each would train a run: use"
            f" --ntasks=1, or start the workers of one run as in docs/cluster.md."
        )


def _of_another_host(home: Home) -> str:
    """Why a command in a Slurm job queues no run in a home that another process owns."""
    other = owner.holder(home)
    who = other.who if other is not None else "another process"
    return (
        f"{home.path} is in use by {who}, which would train the run there while this Slurm job"
        " idles: start a trainer in the job as in docs/cluster.md, or choose another folder with"
        " --home DIR."
    )


def _open_if_free(home: Home) -> Runtime | None:
    """A runtime of this process; None when another process owns the home.

    Raises StoreError when the database cannot be used, DeviceLockError when no run could start.
    """
    try:
        runtime = Runtime.open(home)
    except HomeInUseError:
        return None
    try:
        locks.check()
    except DeviceLockError:
        runtime.close()
        raise
    for recovered in runtime.recovered:
        output.note(recovered.sentence)
    return runtime


def conclude(home: Home, end: Snapshot, as_json: bool) -> None:
    """Prints how a followed run ended, and what to do next. Raises typer.Exit with code 1 if the
    run failed or was lost.
    """
    row = end.row
    if row.status in ("failed", "lost"):
        output.note(f"run {row.run_id} is {row.status}: {row.note}")
        raise typer.Exit(1)
    if as_json:
        return
    output.say(f"run {row.run_id} is {row.status}: {row.note}")
    if row.status == "stopped":
        output.say(f"resume it with: {command_line()} resume {row.run_id}{home.flag}")
    if row.status == "queued" and not owner.is_owned(home):
        output.say(
            "no process trains in this home now: start a dashboard or another `train` to train it."
        )
