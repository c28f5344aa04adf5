"""What a TPU compile check says, in sentences."""

from __future__ import annotations

from dashboard import option_words, words
from gan_runtime.base import formats
from gan_runtime.studies import references
from gan_runtime.tpu.estimates import Point, StepEstimate
from gan_runtime.tpu.plan import CheckPlan

FIELDS = {
    "peak_flops": "peak rate",
    "memory": "memory",
    "clock_hz": "clock",
    "link_bytes_per_s": "links",
}
WHAT_IS_COMPILED = (
    "Compiles the training step of a run, as the JAX engine (`engine=jax`) builds it, with the"
    " TPU's own compiler. TensorFlow's step is another program and is not compiled here. Every"
    " number is the compiler's estimate, not a measurement."
)
ACCURACY = (
    "**This project's steps have not run on a TPU.** The compiler's estimate is compared with"
    f" times that the authors of another program measured. {references.EPOCH.what} Their layers, in"
    f" plain Keras on JAX, are compiled for their machines (`{references.COMMAND}`); the error is"
    " that of the estimate. The table also has this project's own step of the same networks, which"
    " is not measured. For small steps, add the host's overhead and the exchange, as the slider"
    " does."
)
PAPER_ON_CPU = "reshape, pooling, dropout, up-sampling and flatten"


def program(point: Point) -> str:
    """batch 512 on 8 cores, mixed bfloat16."""
    return f"{point.shared}, {option_words.choice(point.precision)}"


def waiting(done: int, points: int, current: str) -> str:
    """The progress of a check."""
    return (
        f"{done} of {points} programs compiled · now {current}"
        if current
        else f"{done} of {points} programs compiled"
    )


def on_device(answer: StepEstimate) -> str:
    """Whether the whole step runs on the TPU."""
    if answer.host_transfers:
        return (
            f"**{len(answer.host_transfers)} operations leave the device**:"
            f" {', '.join(answer.host_transfers[:6])}. Every step waits for them."
        )
    return (
        f"**The whole step runs on the TPU**: {answer.operations} operations, none on the host,"
        f" nothing sent to it in a step. The paper had to leave {PAPER_ON_CPU} to the CPU, and"
        " switching cost time."
    )


def exchange(answer: StepEstimate) -> str:
    """The data that cores exchange."""
    if answer.point.devices == 1:
        return "One core: nothing is exchanged."
    return (
        f"**Exchange of gradients**: {formats.size(answer.exchange_bytes)} per step and core, about"
        f" {formats.timing(answer.exchange_s)}. That is our estimate, from the bytes, the"
        " documented rate of the links and 10 µs latency each; the compiler gives none."
    )


def memory(answer: StepEstimate) -> str:
    """What a core's memory holds."""
    parts = (
        (answer.memory.arguments, "weights, optimizer and images"),
        (answer.memory.temporary + answer.memory.outputs, "needed during a step"),
        (answer.memory.program, "program"),
    )
    sizes = ", ".join(f"{formats.size(size)} {what}" for size, what in parts)
    there = formats.size(answer.topology.chip.device_memory_bytes)
    return (
        f"**Memory of a core**: {formats.size(answer.memory.total)} of {there}"
        f" ({formats.percent(answer.share_of_memory, 1)}): {sizes}."
    )


def arithmetic(answer: StepEstimate) -> str:
    """How close the step comes to the chip's peak rate."""
    if answer.floor_s is None or answer.share_of_peak is None or answer.flops is None:
        return (
            "With gradient accumulation the compiler does not count the operations, so the share of"
            " the peak rate is unknown."
        )
    return (
        f"**Arithmetic**: {answer.flops / 1e9:.3g} billion operations per step and core take at"
        f" least {formats.timing(answer.floor_s)} at the documented peak rate. The estimate is"
        f" {formats.timing(answer.step_s)}, so the matrix units work"
        f" {formats.percent(answer.share_of_peak)} of the time."
    )


def not_estimated(answer: StepEstimate) -> str:
    """What the estimate leaves out."""
    operations = ", ".join(answer.without_estimate)
    return (
        f"Not in the estimate, because the compiler gives no cycles: {operations}, and the"
        " exchanges between cores."
        if operations
        else ""
    )


def precision(first: StepEstimate, other: StepEstimate) -> str:
    """The effect of bfloat16 against float32."""
    pair = {answer.point.precision: answer for answer in (first, other)}
    half, full = pair.get("mixed_bfloat16"), pair.get("float32")
    if half is None or full is None or not half.compiled or not full.compiled:
        return ""
    time, memory = half.step_s / full.step_s, half.memory.total / full.memory.total
    return (
        f"A step takes {formats.timing(half.step_s)} in mixed bfloat16 and"
        f" {formats.timing(full.step_s)} in float32 ({_change(time)}). A core holds"
        f" {formats.size(half.memory.total)} against {formats.size(full.memory.total)}"
        f" ({_change(memory)}), and moves {formats.size(half.bytes_accessed)} against"
        f" {formats.size(full.bytes_accessed)} per step. A TPU's matrix units multiply in bfloat16"
        " in both cases; what changes is the numbers between the layers."
    )


def _change(ratio: float) -> str:
    return f"{formats.percent(abs(1 - ratio))} {'less' if ratio < 1 else 'more'}"


def refusal(answer: StepEstimate) -> str:
    """The compiler's reason, and what to do if it is known."""
    reason = words.plain(answer.refused)
    if "RESOURCE_EXHAUSTED" in answer.refused or "out of memory" in answer.refused.lower():
        return (
            "It does not fit into the memory of a core: use a smaller batch or more accumulation"
            f" steps. The compiler says: {reason}"
        )
    return f"The compiler refuses this step. Change its options. The compiler says: {reason}"


def sources(plan: CheckPlan) -> str:
    """The chip's numbers, and their sources."""
    chip = plan.topology.chip
    named: dict[str, list[str]] = {}
    for field, source in chip.sources.items():
        named.setdefault(source, []).append(FIELDS[field])
    numbers = "; ".join(f"{' and '.join(fields)} from {source}" for source, fields in named.items())
    return (
        f"{chip.title}: {chip.clock_hz / 1e9:.2f} GHz, {chip.peak_flops / 1e12:.0f} Tflop/s and"
        f" {formats.size(chip.memory_bytes)} a chip, {plan.topology.chips} chips."
        f" Numbers: {numbers}."
    )
