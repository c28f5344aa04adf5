"""The tables of docs/benchmarks.md about what the TPU's compiler reckons."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import NOT_MEASURED, number, of, table
from benchmarks.results import Record
from gan_runtime.studies import estimates


def cycles(records: Sequence[Record]) -> str:
    """What the TPU's compiler reckons, and the dearest operations of both sides."""
    facts = of(records, "cycles", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    versions = ", ".join(f"{name} {version}" for name, version in facts[0]["versions"].items())
    return (
        f"Every number here is {facts[0]['label']} ({facts[0]['topology']}, {versions}): the sum of"
        " `estimated_cycles` over one step with its optimizers, by the clock of a core. Exchanges"
        " between cores and the device's random generator carry no estimate. Plain Keras is"
        " benchmarks/keras_on_jax.py; the limit is the arithmetic of the step at the documented"
        " peak rate.\n\n"
        + _programs(of(records, "cycles", "cycles"))
        + "\nThe dearest operations at batch 512 in bfloat16:\n\n"
        + _dearest(of(records, "cycles", "operation"))
    )


def pairs(records: Sequence[Record]) -> str:
    """Pix2Pix at full size."""
    found = of(records, "pair_cycles", "pair_cycles")
    if not found:
        return f"{NOT_MEASURED.capitalize()}.\n"
    return (
        "Pix2Pix at full size, 54.42 and 2.77 million weights, on pairs of RGB pictures of 256"
        " pixels, batch 64 on the eight cores of a v3-8. Plain Keras is"
        " benchmarks/keras_pix2pix_on_jax.py: jit over a shared batch, so its batch norm goes over"
        " all 64 pairs. So does ours (`batch_norm=synchronised`) in what is judged; by the default,"
        " `per_replica`, a core normalises its own 8 pairs. Plain Keras exchanges the gradients of"
        " kernels in bfloat16, ours in float32; no exchange has an estimate.\n\n"
        + _programs(found)
        + "\nIts dearest operations:\n\n"
        + _dearest(of(records, "pair_cycles", "pair_operation"))
    )


def _programs(records: Sequence[Record]) -> str:
    columns = [
        "Program",
        "Batch",
        "Precision",
        "Cycles",
        "Step",
        "Arithmetic limit",
        "Share of it",
        "Exchanged",
    ]
    return table(columns, [_cycle_line(record) for record in records])


def _dearest(records: Sequence[Record]) -> str:
    return table(
        ["Program", "Cycles", "Layer, or name where it has none"],
        [
            [_SIDES[one["side"]], f"{one['cycles']:,.0f}", one["layer"] or one["name"]]
            for one in records
        ],
    )


_SIDES = {
    "ours": "ours",
    "ours_per_replica": "ours, batch norm per replica",
    "keras": "plain Keras on JAX",
}


def _cycle_line(record: Record) -> list[str]:
    return [
        _SIDES[record["side"]],
        str(record["batch"]),
        record["precision"],
        f"{record['cycles']:,.0f}",
        f"{record['step_ms']:.3f} ms",
        f"{record['floor_ms']:.3f} ms",
        number(record["share_of_peak"], "%"),
        f"{record['exchange_mb']:.1f} MB in {record['exchanges']:.1f}",
    ]


def epochs(records: Sequence[Record]) -> str:
    """Epochs of CERN's 3DGAN at full size, beside what its authors measured."""
    found = of(records, "cycles", estimates.KIND)
    if not found:
        return f"{NOT_MEASURED.capitalize()}.\n"
    lines = [
        _epoch_line(record, one)
        for record, one in zip(found, estimates.estimated(found), strict=True)
    ]
    columns = [
        "Program",
        "Machine",
        "Epoch, estimated",
        "Its authors measured",
        "Error",
        "Step",
        "Units at work",
        "Memory",
        "Exchanged",
    ]
    return (
        f"{estimates.EPOCH.what} Estimated from the compiler's cycles, exchanges and 1 ms a host"
        " call added. Its authors trained their own program, of plain layers: only plain Keras can"
        " be held against it (benchmarks/keras_showers_on_jax.py; its step is compiled in three"
        ' programs, whose cycles are added as often as a step runs each). "Units at work" counts'
        " the zeros with which kernels are filled up (decision 36) as arithmetic.\n\n"
        + table(columns, lines)
        + "\nThe dearest operations of a step on a v3 core:\n\n"
        + _dearest(of(records, "cycles", "epoch_operation"))
    )


def _epoch_line(record: Record, one: estimates.Estimated) -> list[str]:
    return [
        one.program,
        one.machine,
        f"**{one.estimated_s:,.1f} s**",
        "" if one.measured is None else f"{one.measured.seconds:,.1f} s",
        "" if one.error is None else f"{100 * one.error:+.1f} %",
        f"{record['step_ms']:,.0f} ms",
        number(record["share_of_peak"], "%"),
        number(record["share_of_memory"], "%"),
        f"{record['exchange_mb']:.1f} MB in {record['exchanges']:.1f}",
    ]
