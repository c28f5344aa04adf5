"""`tpu-check`: a compile check for a TPU, with progress on stderr and the estimates as tables."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gan_runtime.cli import AssignmentsOption, HomeOption, JsonOption, commands, following, output
from gan_runtime.records.home import Home
from gan_runtime.spec import nesting, presets
from gan_runtime.tpu import check as checking
from gan_runtime.tpu import estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import CheckProgress, document
from gan_runtime.tpu.estimates import TOPOLOGIES, StepEstimate
from gan_runtime.tpu.plan import CheckPlan, Program


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
            help="Compile the prediction of the next frame, in tiles over all cores, not a step.",
        ),
    ] = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a run's training step for a TPU, without one, and estimate its time and memory.

    Exit code 1 if the compiler refuses it.
    """
    folder = Home.choose(home)
    values = nesting.overlaid(
        presets.preset(preset).values, presets.parse_assignments(assignments or [])
    )
    plan = planning.make(values, topology, sweep, folder, "frame" if frame else "step")
    progress = follow(folder, plan)
    if as_json:
        output.print_json(document(plan, progress))
    elif progress.first is not None:
        output.answers().print(*report(plan, progress), sep="\n")
    if progress.trouble or progress.first is None or not progress.first.compiled:
        raise typer.Exit(1)


def follow(home: Home, plan: CheckPlan) -> CheckProgress:
    """Runs a check to its end, with a line on stderr for each estimate. Ctrl-C cancels it.

    Raises as `commands.check_on_tpu`.
    """
    job, reported = commands(home).check_on_tpu(plan), 0

    def now() -> CheckProgress:
        return checking.progress(home, plan, job.snapshot() if job is not None else None)

    def report_new(*_: object) -> None:
        nonlocal reported
        progress = now()
        for number, estimate in enumerate(progress.answers[reported:], reported + 1):
            result = f"{estimate.step_s * 1e3:.2f} ms a {plan.program}"
            output.note(
                f"{number} of {progress.points}: {in_words(estimate, plan.program)}:"
                f" {result if estimate.compiled else 'refused'}, compiled in"
                f" {estimate.compile_seconds:.0f} s"
            )
        reported = len(progress.answers)

    if job is not None:
        following.followed(home, job, report_new)
    report_new()
    if now().trouble:
        output.note(now().trouble)
    return now()


def in_words(estimate: StepEstimate, program: Program = "step") -> str:
    """The program: "batch 512 on 8 cores, mixed_bfloat16"; a frame has no batch."""
    shared = estimate.point.shared
    if program == "frame":
        shared = f"a frame on {shared.partition(' on ')[2]}"
    return f"{shared}, {estimate.point.precision}"


def report(plan: CheckPlan, progress: CheckProgress) -> list[Table | str]:
    """The tables of the estimates, or the compiler's reason if it refused the run."""
    first = progress.first
    if first is None:
        return []
    title = (
        f"{plan.topology.chip.title} ({plan.point.topology}), {in_words(first, plan.program)}:"
        f" {estimates.ESTIMATE}"
    )
    if not first.compiled:
        return [title, f"the compiler refuses it: {first.refused}"]
    predictions = _step_table(plan, progress) if plan.program == "step" else _frame_table(progress)
    return [_facts_table(title, plan, first), _expensive_table(first), predictions]


def _facts_table(title: str, plan: CheckPlan, estimate: StepEstimate) -> Table:
    chip, share = plan.topology.chip, estimate.share_of_peak
    transfers = ", ".join(estimate.host_transfers)
    place = f"NOT on the device: {transfers}" if transfers else "all on the device"
    rows = {
        "operations": f"{estimate.operations}, {place}",
        plan.program: (
            f"{estimate.step_s * 1e3:.3f} ms ({estimate.cycles:,.0f} cycles at"
            f" {chip.clock_hz / 1e9:.2f} GHz)"
        ),
        "share of the peak rate": "unknown" if share is None else f"{share:.0%}",
        "exchange": (
            f"{estimate.exchange_bytes / 1e6:.1f} MB in {estimate.exchanges:.1f} a step, about"
            f" {estimate.exchange_s * 1e3:.2f} ms ({estimates.EXCHANGE_ESTIMATE})"
        ),
        "memory of a core": (
            f"{estimate.memory.total / 1e6:.0f} MB of {chip.device_memory_bytes / 1e9:.1f} GB"
        ),
        "without an estimate": ", ".join(estimate.without_estimate) or "none",
    }
    return output.pairs(rows, "figure", "value", title=title)


def _expensive_table(estimate: StepEstimate) -> Table:
    title = "most expensive operations"
    table = output.table("cycles", "share", "layer", "operation", title=title)
    for operation in estimate.most_expensive:
        share = f"{operation.cycles / estimate.cycles:.1%}"
        table.add_row(f"{operation.cycles:,.0f}", share, operation.layer, operation.name)
    return table


def _frame_table(progress: CheckProgress) -> Table:
    """Tiles of one frame over the cores of each program, without the time of the host."""
    columns = ("cores", "precision", "ms a frame", "frames a second")
    table = output.table(*columns, title="without the host and transfers")
    for estimate in progress.answers:
        seconds, is_known = estimate.step_s, estimate.compiled and estimate.step_s
        rate = f"{1.0 / seconds:,.0f}" if is_known else "refused"
        point = estimate.point
        table.add_row(str(point.devices), point.precision, f"{seconds * 1e3:.3f}", rate)
    return table


def _step_table(plan: CheckPlan, progress: CheckProgress) -> Table:
    title = f"assumed: {estimates.HOST_OVERHEAD_S * 1e3:g} ms overhead for each host call"
    table = output.table("program", "ms a step", "s an epoch", title=title)
    for estimate in progress.answers:
        epoch_s = estimate.epoch_s(plan.steps_per_epoch(estimate.point), plan.spec.steps_per_loop)
        epoch = f"{epoch_s:.3g}" if estimate.compiled else "refused"
        table.add_row(in_words(estimate), f"{estimate.step_s * 1e3:.3f}", epoch)
    return table
