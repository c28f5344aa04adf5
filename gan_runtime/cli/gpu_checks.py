"""`gpu-check`: a compile check for a GPU, with progress on stderr and the answer as tables."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from gan_runtime.base import formats
from gan_runtime.cli import AssignmentsOption, HomeOption, JsonOption, commands, following, output
from gan_runtime.gpu import check as checking
from gan_runtime.gpu.cards import CARDS
from gan_runtime.gpu.check import GpuPlan
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.records.home import Home
from gan_runtime.spec import nesting, presets


def gpu_check(
    card: Annotated[
        str, typer.Option(metavar="NAME", help=f"One of: {', '.join(CARDS)}.")
    ] = "h100",
    preset: Annotated[
        str, typer.Option(metavar="NAME", help=f"Start from: {', '.join(presets.PRESETS)}.")
    ] = "paper",
    assignments: AssignmentsOption = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compile a run's training step for a GPU, without one: its kernels, bytes and memory.

    One card computes the whole batch. It estimates no time. Exit code 1 if the compiler refuses it.
    """
    folder = Home.choose(home)
    values = nesting.overlaid(
        presets.preset(preset).values, presets.parse_assignments(assignments or [])
    )
    plan = checking.make(values, card, folder)
    compiled = checking.answer(checking.newest(folder, plan))
    if compiled is None or compiled.refused:
        job = commands(folder).check_on_gpu(plan)
        compiled = CompiledStep.from_json(following.to_its_end(folder, job))
    if as_json:
        output.print_json(checking.document(plan, compiled))
    else:
        output.answers().print(*report(plan, compiled), sep="\n")
    if compiled.refused:
        raise typer.Exit(1)


def report(plan: GpuPlan, compiled: CompiledStep) -> list[Table | str]:
    """The tables of an answer, or the compiler's reason if it refused the run."""
    spec = plan.spec
    title = (
        f"{plan.card.title}, batch {spec.batch_size_global}, {spec.precision}: compiled, not timed"
    )
    if compiled.refused:
        return [title, f"the compiler refuses it: {compiled.refused}"]
    rows = {
        "kernels of a step": formats.count(compiled.kernels),
        "read and written in a step": formats.size(compiled.bytes),
        "memory": (
            f"{formats.size(compiled.memory.total)} of {formats.size(plan.card.memory_bytes)}"
        ),
        "widest forward convolution": f"{checking.taps_in_words(compiled.widest)} taps",
        "wider than their layers' kernels": "; ".join(map(checking.in_words, compiled.wide))
        or "none",
    }
    largest = output.table("bytes", "layer", "kernel", title="kernels with the most bytes")
    for kernel in compiled.largest:
        largest.add_row(formats.size(kernel.bytes), kernel.layer, kernel.kind)
    return [output.pairs(rows, "figure", "value", title=title), largest]
