"""The parts of the GPU page: progress, figures, wide convolutions, and the largest kernels."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard import actions, tables, widgets, words
from dashboard.check_form import Devices
from dashboard.widgets import EndButton
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.gpu import check
from gan_runtime.gpu.cards import CARDS
from gan_runtime.gpu.check import GpuPlan
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.jobs.folder import JobSnapshot

GPUS = Devices(
    command="gpu-check",
    option="card",
    label="GPU",
    help=(
        "One card, which computes the whole batch. The name in brackets is that of the command"
        " line."
    ),
    titles={name: card.title for name, card in CARDS.items()},
    first="h100",
    key="gpu.",
    precisions=("mixed_bfloat16", "mixed_float16", "float32"),
)
WHAT_IS_COMPILED = (
    "Compiles the training step of a run, as the JAX engine (`engine=jax`) builds it, with XLA's"
    " compiler for GPUs. No GPU is needed, and no time is estimated."
)
EMPTY = (
    "Nothing is compiled for this selection yet. Press Check: the compiler works in the background"
    " for about half a minute to two minutes."
)


def start(runtime: Runtime, plan: GpuPlan, job: JobSnapshot | None) -> None:
    """The button, the progress of its job, or why it ended."""
    if job is not None and job.is_live:
        button = EndButton(key="gpu.cancel", label="Cancel")
        widgets.job_bar(
            runtime, job, lambda live: f"Compiling: {widgets.job_sentence(live)}", button
        )
        return
    compiled = check.answer(job)
    if compiled is not None and not compiled.refused:
        return
    if lacking := check.missing_compiler():
        st.warning(lacking, icon=":material/info:")
        return
    if job is not None and job.end is not None and compiled is None:
        st.warning(f"The check ended early: {words.plain(job.end.reason)}", icon=":material/error:")
    label = "Check again" if compiled else "Check"
    if actions.button(label, type="primary", icon=":material/memory:") and actions.succeeded(
        lambda: runtime.commands.check_on_gpu(plan)
    ):
        st.rerun()
    if compiled is None:
        st.info(EMPTY)


def show(plan: GpuPlan, compiled: CompiledStep) -> None:
    """The answer."""
    if compiled.refused:
        st.error(
            f"The compiler refuses this step: {words.plain(compiled.refused)}",
            icon=":material/block:",
        )
        return
    _figures(plan, compiled)
    _wide(compiled)
    _largest(compiled)


def _figures(plan: GpuPlan, compiled: CompiledStep) -> None:
    share = compiled.memory.total / plan.card.memory_bytes
    figures = [
        ("Compiles", "yes", f"Compiled in {compiled.compile_seconds:.0f} s on this machine."),
        ("Kernels", formats.count(compiled.kernels), "Programs that a step starts on the GPU."),
        (
            "Read and written",
            formats.size(compiled.bytes),
            (
                "Operands and outcomes of the kernels of a step: also what stays in the card's"
                " cache, and whole arrays of which a kernel reads some rows."
            ),
        ),
        (
            "Memory",
            formats.size(compiled.memory.total),
            (
                f"Weights, optimizer, data set and values of a step: {formats.percent(share, 1)} of"
                f" {formats.size(plan.card.memory_bytes)}."
            ),
        ),
    ]
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for label, value, text in figures:
            st.metric(label, value, help=text, width=150)
    if share > 1.0:
        st.error(
            f"It does not fit: it needs {formats.size(compiled.memory.total)}, and the card has"
            f" {formats.size(plan.card.memory_bytes)}. Choose a smaller batch, or accumulation.",
            icon=":material/memory:",
        )


def _wide(compiled: CompiledStep) -> None:
    st.header("Convolutions")
    if not compiled.wide:
        st.markdown(
            f"The widest forward convolution has {check.taps_in_words(compiled.widest)} taps. None"
            " is wider than the kernel of its layer and the row of zeros that makes padding even."
        )
        return
    st.markdown(
        "These convolutions are wider than the kernels of their layers: the compiler uses an image"
        " as a kernel, and few multiprocessors compute. They are slow."
    )
    for wide in compiled.wide:
        st.markdown(f"- {words.plain(check.in_words(wide))}")


def _largest(compiled: CompiledStep) -> None:
    st.header("The kernels with the most bytes")
    rows = [
        {
            "Layer": kernel.layer or "–",
            "Kernel": kernel.kind,
            "Bytes": kernel.bytes,
            "Share": kernel.bytes / compiled.bytes,
        }
        for kernel in compiled.largest
    ]
    tables.show(
        tables.with_words(pd.DataFrame(rows), {"Bytes": formats.size, "Share": formats.percent}),
        hide_index=True,
        key="gpu.largest",
    )
    st.caption(
        "The compiler fuses several operations into one kernel; it is named after the layer of its"
        " last part."
    )
