"""The parts of the TPU page: progress, verdict, predictions, most expensive operations, effects of
bfloat16, and the quality of the estimates.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from dashboard import actions, plots, tables, words
from dashboard.check_form import Devices
from dashboard.tpu import charts as tpu_charts
from dashboard.tpu import words as tpu_words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.studies import references
from gan_runtime.tpu import check, estimates
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import CheckProgress
from gan_runtime.tpu.estimates import StepEstimate
from gan_runtime.tpu.plan import CheckPlan

MILLISECONDS = 1e3
TPUS = Devices(
    command="tpu-check",
    option="topology",
    label="TPU",
    help="All its cores share the batch. The name in brackets is the compiler's.",
    titles={
        name: f"{topology.chip.title}, {topology.devices} cores"
        for name, topology in estimates.TOPOLOGIES.items()
    },
    first="v3:2x2",  # the paper's
    key="tpu.",
    precisions=planning.PRECISIONS,
)
OVERHEAD_HELP = (
    "Time of a host call in addition to its steps. This is assumed: the compiler does not know it."
    " A call runs `steps_per_loop` steps."
)


def start_or_cancel(runtime: Runtime, plan: CheckPlan, progress: CheckProgress) -> None:
    """The primary button of the page, or Cancel."""
    if progress.running:
        if actions.button("Cancel", icon=":material/close:", help="Compiled results are stored."):
            actions.attempt(lambda: _cancel(runtime, plan))
            st.rerun()
        return
    lacking = planning.missing_library()
    missing = progress.points - len(progress.answers)
    if lacking and missing:
        st.warning(lacking, icon=":material/info:")
        return
    label = (
        "Check"
        if missing == progress.points
        else f"Compile the missing {missing}"
        if missing
        else "All compiled"
    )
    if actions.button(
        label, type="primary", icon=":material/memory:", disabled=not missing
    ) and actions.succeeded(lambda: runtime.commands.check_on_tpu(plan, alone=True)):
        st.rerun()


def _cancel(runtime: Runtime, plan: CheckPlan) -> None:
    snapshot = check.newest(runtime.home, plan)
    if snapshot is not None and snapshot.is_live:
        runtime.commands.cancel_job(snapshot.job.job_id)


def show_progress(plan: CheckPlan, progress: CheckProgress) -> None:
    """A bar while programs are compiled, or why the check ended early."""
    if progress.running:
        done = {answer.point for answer in progress.answers}
        current = next((tpu_words.program(point) for point in plan.points if point not in done), "")
        text = tpu_words.waiting(len(progress.answers), progress.points, current)
        st.progress(len(progress.answers) / progress.points, text=text)
    elif progress.trouble:
        st.warning(
            f"The check ended early: {words.plain(progress.trouble)}", icon=":material/error:"
        )


def show_empty(progress: CheckProgress) -> None:
    """What will appear, and when."""
    if progress.running:
        st.caption("The result for this run appears here as soon as its step is compiled.")
        return
    st.info(
        "Nothing is compiled for this selection yet. Press Check: the TPU's own compiler compiles"
        " the step in the background, about 10 to 60 s per program. First the run itself, then the"
        " other precision, the paper's batch sizes, and fewer cores. No TPU is needed."
    )


def verdict(plan: CheckPlan, answer: StepEstimate, overhead_s: float) -> None:
    """Whether the step compiles, and its figures."""
    if not answer.compiled:
        st.error(tpu_words.refusal(answer), icon=":material/block:")
        return
    epoch = answer.epoch_s(plan.steps_per_epoch(answer.point), plan.spec.steps_per_loop, overhead_s)
    figures = [
        ("Compiles", "yes", f"Compiled in {answer.compile_seconds:.0f} s on this machine."),
        (
            "On the TPU",
            f"{answer.operations - len(answer.host_transfers)} of {answer.operations}",
            "Operations of a step that run on the device.",
        ),
        (
            "Step, est.",
            formats.timing(answer.step_s),
            (
                f"{formats.count(answer.cycles)} cycles at the chip's clock rate; without the"
                " exchange between cores."
            ),
        ),
        (
            "Epoch, est.",
            formats.timing(epoch),
            (
                f"{formats.count(plan.images)} images; exchange and the assumed host overhead"
                " included."
            ),
        ),
        (
            "Of the peak rate",
            formats.percent(answer.share_of_peak),
            "Arithmetic of the step as a share of what the chip could do in the same time.",
        ),
        (
            "Memory",
            formats.percent(answer.share_of_memory, 1),
            "Share of a core's memory; the bar below shows what uses it.",
        ),
    ]
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        for label, value, text in figures:
            st.metric(label, value, help=text, width=150)
    st.caption(
        f"{plan.topology.chip.title}, {tpu_words.program(answer.point)}. Every number is"
        f" {estimates.ESTIMATE}."
    )


def overhead_slider() -> float:
    """The assumed overhead of a host call, in seconds."""
    first = estimates.HOST_OVERHEAD_S * MILLISECONDS
    return (
        float(
            st.slider(
                "Assumed host overhead (ms per call)",
                0.0,
                20.0,
                first,
                0.5,
                key="tpu.overhead",
                help=OVERHEAD_HELP,
            )
        )
        / 1e3
    )


def predictions(plan: CheckPlan, progress: CheckProgress) -> float:
    """The two charts under the slider; returns the assumed overhead."""
    st.header("Predicted time of an epoch")
    overhead_s = overhead_slider()
    left, right = st.columns(2, gap="large")
    with left:
        _by_batch(plan, progress, overhead_s)
    with right:
        _by_devices(plan, progress, overhead_s)
    return overhead_s


def _by_batch(plan: CheckPlan, progress: CheckProgress, overhead_s: float) -> None:
    frame = tpu_charts.batch_rows(plan, progress.answers, overhead_s)
    if frame.empty:
        st.caption(
            "The time over the batch size appears here when a second batch size is compiled."
        )
        return
    plots.chart(tpu_charts.by_batch(frame), key="tpu.by_batch")
    st.caption(
        f"The paper, {references.TIME_FELL.section}: “{references.TIME_FELL.sentence}” The line"
        " between the two ends is interpolated. Its section 5.1 says the opposite, that the time"
        " increased with the batch; the tab The paper of Studies shows both."
    )


def _by_devices(plan: CheckPlan, progress: CheckProgress, overhead_s: float) -> None:
    frame = tpu_charts.device_rows(plan, progress.answers, overhead_s)
    if frame.empty:
        st.caption(
            "The time over the number of cores appears here when a second number is compiled."
        )
        return
    plots.chart(tpu_charts.by_devices(frame), key="tpu.by_devices")
    st.caption(
        f"The batch of {formats.quantity(plan.point.batch_size_global, 'image')} is shared by the"
        f" cores of one TPU. Exchange: {estimates.EXCHANGE_ESTIMATE}."
    )


def step_in_words(answer: StepEstimate) -> None:
    """The step, its memory, and what the estimate leaves out."""
    for sentence in (
        tpu_words.on_device(answer),
        tpu_words.arithmetic(answer),
        tpu_words.exchange(answer),
    ):
        st.markdown(sentence)
    st.progress(min(1.0, answer.share_of_memory), text=tpu_words.memory(answer))
    st.caption(tpu_words.not_estimated(answer))


def most_expensive(answer: StepEstimate) -> None:
    """The table of the ten operations with the most cycles."""
    st.header("The ten most expensive operations of a step")
    tables.show(
        tables.with_words(
            tpu_charts.most_expensive(answer), {"Cycles": formats.count, "Share": formats.percent}
        ),
        hide_index=True,
        key="tpu.most_expensive",
        column_config={
            "Cycles": st.column_config.NumberColumn(
                help="The compiler's estimate, per step and core."
            ),
        },
    )
    st.caption(
        "The compiler fuses several operations into one; it is named after the layer of its last"
        " part."
    )


def what_precision_changes(first: StepEstimate, answers: Sequence[StepEstimate]) -> None:
    """bfloat16 next to float32, once both are compiled."""
    st.header("What bfloat16 changes")
    points = [planning.with_precision(first.point, precision) for precision in planning.PRECISIONS]
    other = next((answer for answer in answers if answer.point in points and answer != first), None)
    sentence = tpu_words.precision(first, other) if other is not None else ""
    st.markdown(sentence or "Appears here when both precisions are compiled.")


def accuracy(store: Store, plan: CheckPlan) -> None:
    """Estimates next to published measurements, and next to stored runs on a real TPU, if any."""
    st.header("How accurate are these estimates?")
    st.markdown(tpu_words.ACCURACY)
    table = tpu_charts.accuracy_table(references.by_machine(references.stored_estimates()))
    if table.empty:
        st.caption(f"This comparison is not stored. Run `{references.COMMAND}` to create it.")
    else:
        tables.show(table, hide_index=True, key="tpu.how_good")
    real = tpu_charts.real_runs(queries.rates_by_device(store, plan.spec.workload), plan.images)
    if real.empty:
        st.caption("No finished run on a real TPU is stored yet. Its speed will appear here.")
        return
    st.markdown("Measured on a real TPU, stored here:")
    tables.show(real, hide_index=True, key="tpu.real")
