"""The tables of docs/benchmarks.md with the TPU compiler's estimates."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.markdown import NOT_MEASURED, number, select, table
from benchmarks.results import Record
from gan_runtime.studies import references


def cycles(records: Sequence[Record]) -> str:
    """The table of the TPU compiler's estimates."""
    facts = select(records, "cycles", "facts")
    if not facts:
        return f"{NOT_MEASURED.capitalize()}.\n"
    versions = ", ".join(f"{name} {version}" for name, version in facts[0]["versions"].items())
    return (
        f"Every number here is {facts[0]['label']} ({facts[0]['topology']}, {versions}): the sum of"
        " `estimated_cycles` of a step, divided by the clock rate of a core. Exchanges and random"
        " numbers are excluded. The limit is the step's arithmetic at the peak rate.\n\n"
        + _programs(select(records, "cycles", "cycles"))
    )


def pairs(records: Sequence[Record]) -> str:
    """The table of estimates of Pix2Pix at full size."""
    estimates = select(records, "pair_cycles", "pair_cycles")
    if not estimates:
        return f"{NOT_MEASURED.capitalize()}.\n"
    return (
        "Full size, pairs of RGB images of 256 pixels, batch 64 on eight cores of a v3-8. Plain"
        " Keras normalizes over all 64 pairs; so does ours in the first line, by"
        " `batch_norm=synchronised`.\n\n" + _programs(estimates)
    )


def _programs(records: Sequence[Record]) -> str:
    columns = [
        "Program",
        "Batch",
        "Precision",
        "Cycles",
        "Step",
        "Arithmetic limit",
        "Share of peak",
        "Exchanged",
    ]
    return table(columns, [_cycle_line(record) for record in records])


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
    """The table of epochs of CERN's 3DGAN at full size, with the authors' measurements."""
    selection = select(records, "cycles", references.KIND)
    if not selection:
        return f"{NOT_MEASURED.capitalize()}.\n"
    lines = [
        _epoch_line(record, estimate)
        for record, estimate in zip(selection, references.epoch_estimates(selection), strict=True)
    ]
    columns = [
        "Program",
        "Machine",
        "Epoch, estimated",
        "Authors measured",
        "Error",
        "Step",
        "Utilization",
        "Memory",
        "Exchanged",
    ]
    return (
        f"{references.EPOCH.what} Estimated from the compiler's cycles, with exchanges and 1 ms per"
        " host call. The authors trained plain layers, so only plain Keras compares with their"
        ' times. "Utilization" includes multiplications by padding zeros.\n\n'
        + table(columns, lines)
    )


def _epoch_line(record: Record, estimate: references.EpochEstimate) -> list[str]:
    return [
        estimate.program,
        estimate.machine,
        f"**{estimate.estimated_s:,.1f} s**",
        "" if estimate.measured is None else f"{estimate.measured.seconds:,.1f} s",
        "" if estimate.error is None else f"{100 * estimate.error:+.1f}%",
        f"{record['step_ms']:,.0f} ms",
        number(record["share_of_peak"], "%"),
        number(record["share_of_memory"], "%"),
        f"{record['exchange_mb']:.1f} MB in {record['exchanges']:.1f}",
    ]
