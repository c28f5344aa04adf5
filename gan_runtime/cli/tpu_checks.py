"""A TPU compile check on the terminal: progress on stderr, the answer as tables."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from gan_runtime.cli import following, output
from gan_runtime.cli.arguments import AssignmentsOption, HomeOption, JsonOption, commands
from gan_runtime.cli.tables import table
from gan_runtime.hardware import host_presets
from gan_runtime.records.home import Home
from gan_runtime.spec import nesting, presets
from gan_runtime.tpu import check as checking
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu import report
from gan_runtime.tpu.check import Progress, document
from gan_runtime.tpu.chips import TOPOLOGIES
from gan_runtime.tpu.plan import Plan, Program
from gan_runtime.tpu.report import StepEstimate


def tpu_check(
    topology: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of: {', '.join(TOPOLOGIES)}.")
    ] = "v3:2x2",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "paper",
    assignments: AssignmentsOption = None,
    sweep: Annotated[
        bool,
        typer.Option(
            help="Also compile the other precision, the paper's batch sizes and fewer cores."
        ),
    ] = True,
    frame: Annotated[
        bool,
        typer.Option(
            "--frame",
            help=(
                "Instead of the training step, the way from one frame to the next, in tiles over"
                " all cores."
            ),
        ),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a run's training step for a TPU, without one, and say what it would take there.

    Exit code 1 if it is refused.
    """
    values = nesting.overlaid(
        host_presets.values(preset), presets.parse_assignments(assignments or [])
    )
    if not check(Home.choose(home), values, topology, sweep, as_json, "frame" if frame else "step"):
        raise typer.Exit(1)


def check(
    home: Home,
    values: dict[str, Any],
    topology: str,
    sweep: bool,
    as_json: bool,
    program: Program = "step",
) -> bool:
    """Makes a check and prints it; whether the compiler took the run.

    Raises as `plan.make` and `commands.check_on_tpu`.
    """
    plan = planning.make(values, topology, sweep, home, program)
    progress = follow(home, plan)
    if as_json:
        output.print_json(document(plan, progress))
    elif progress.first is not None:
        output.answers().print(*answer(plan, progress), sep="\n")
    return not progress.trouble and progress.first is not None and progress.first.compiled


def follow(home: Home, plan: Plan) -> Progress:
    """Runs a check to its end, telling on stderr what has come.

    Ctrl-C ends it. Raises as `commands.check_on_tpu`.
    """
    job, told = commands(home).check_on_tpu(plan), 0

    def now() -> Progress:
        return checking.progress(home, plan, job.look() if job is not None else None)

    def tell(*_: object) -> None:
        nonlocal told
        told = _tell(now(), told, plan.program)

    if job is not None:
        following.followed(home, job, tell)
    tell()
    if now().trouble:
        output.note(now().trouble)
    return now()


def _tell(progress: Progress, told: int, program: Program) -> int:
    for number, one in enumerate(progress.answers[told:], told + 1):
        what = f"{one.step_s * 1e3:.2f} ms a {program}" if one.compiled else "refused"
        output.note(
            f"{number} of {progress.points}: {in_words(one, program)}: {what}, compiled in"
            f" {one.compile_seconds:.0f} s"
        )
    return len(progress.answers)


def in_words(one: StepEstimate, program: Program = "step") -> str:
    """Which program it is: "batch 512 on 8 cores, mixed_bfloat16"; a frame has no batch."""
    shared = (
        one.point.shared
        if program == "step"
        else f"a frame on {one.point.shared.partition(' on ')[2]}"
    )
    return f"{shared}, {one.point.precision}"


def answer(plan: Plan, progress: Progress) -> list[Table | str]:
    """The tables of what is known; the compiler's reason where it refused the run."""
    first = progress.first
    if first is None:
        return []
    title = (
        f"{plan.topology.chip.title} ({plan.point.topology}), {in_words(first, plan.program)}:"
        f" {report.ESTIMATE}"
    )
    if not first.compiled:
        return [title, f"the compiler refuses it: {first.refused}"]
    predictions = _predictions(plan, progress) if plan.program == "step" else _frames(progress)
    return [_facts(title, plan, first), _dearest(first), predictions]


def _facts(title: str, plan: Plan, one: StepEstimate) -> Table:
    chip = plan.topology.chip
    found = table("figure", "value", title=title)
    host = (
        f"NOT on the device: {', '.join(one.host_transfers)}"
        if one.host_transfers
        else "all on the device"
    )
    rows: dict[str, Any] = {
        "operations": f"{one.operations}, {host}",
        plan.program: (
            f"{one.step_s * 1e3:.3f} ms ({one.cycles:,.0f} cycles at {chip.clock_hz / 1e9:.2f} GHz)"
        ),
        "share of the peak rate": (
            "unknown" if one.share_of_peak is None else f"{one.share_of_peak:.0%}"
        ),
        "exchange": (
            f"{one.exchange_bytes / 1e6:.1f} MB in {one.exchanges:.1f} a step, about"
            f" {one.exchange_s * 1e3:.2f} ms ({report.EXCHANGE_ESTIMATE})"
        ),
        "memory of a core": (
            f"{one.memory.total / 1e6:.0f} MB of {chip.device_memory_bytes / 1e9:.1f} GB"
        ),
        "without an estimate": ", ".join(one.without_estimate) or "none",
    }
    for name, value in rows.items():
        found.add_row(name, str(value))
    return found


def _dearest(one: StepEstimate) -> Table:
    found = table("cycles", "share", "layer", "operation", title="most expensive operations")
    for operation in one.dearest:
        found.add_row(
            f"{operation.cycles:,.0f}",
            f"{operation.cycles / one.cycles:.1%}",
            operation.layer,
            operation.name,
        )
    return found


def _frames(progress: Progress) -> Table:
    """Tiles of one frame over the cores of each program; what the host does meanwhile is not
    in it.
    """
    found = table(
        "cores",
        "precision",
        "ms a frame",
        "frames a second",
        title="without the host and transfers",
    )
    for one in progress.answers:
        rate = f"{1.0 / one.step_s:,.0f}" if one.compiled and one.step_s else "refused"
        found.add_row(str(one.point.devices), one.point.precision, f"{one.step_s * 1e3:.3f}", rate)
    return found


def _predictions(plan: Plan, progress: Progress) -> Table:
    overhead = report.HOST_OVERHEAD_S * 1e3
    found = table(
        "program",
        "ms a step",
        "s an epoch",
        title=f"assumed: {overhead:g} ms overhead for each host call",
    )
    for one in progress.answers:
        steps = plan.steps_per_epoch(one.point)
        epoch = f"{one.epoch_s(steps, plan.spec.steps_per_loop):.3g}" if one.compiled else "refused"
        found.add_row(in_words(one), f"{one.step_s * 1e3:.3f}", epoch)
    return found
