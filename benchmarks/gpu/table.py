"""The results of benchmarks/gpu.sh as the table of docs/gpu.md."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

Record = dict[str, Any]
HEAD = (
    "| Workload | Batch | Precision | JAX engine, images/s | Compiled PyTorch, images/s | JAX /"
    " PyTorch | Share of the matrix rate | Memory |"
)
NOT_MEASURED = "not measured"


def markdown(records: Sequence[Record]) -> str:
    """A row for each case, with medians of the turns. Shares refer to the rate of the GPU's matrix
    product in the same precision.
    """
    device = next(record for record in records if record["kind"] == "card")
    sides = {
        (record["workload"], record["batch"], record["precision"], record["side"]): record
        for record in records
        if record["kind"] == "case"
    }
    flop = {
        record["workload"]: record["flop_per_image"]
        for record in records
        if record["kind"] == "operations"
    }
    cases = dict.fromkeys(key[:3] for key in sides)
    rows = [_row(case, sides, device["flop_per_s"][case[2]] / flop[case[0]]) for case in cases]
    return "\n".join([HEAD, "|---|--:|---|--:|--:|--:|--:|--:|", *rows])


def epoch(records: Sequence[Record]) -> str:
    """The epoch of CERN's 3DGAN: measured, or extrapolated from its measured part; "" without
    one, or if it failed.
    """
    record = next((record for record in records if record["kind"] == "epoch"), None)
    if record is None or "failure" in record:
        return ""
    rate = record["showers"] / record["seconds"]
    is_complete = record["showers"] > record["of_showers"] - record["batch"]
    return (
        f"One epoch of {record['of_showers']:,} showers, streamed, batch {record['batch']}:"
        f" {record['of_showers'] / rate:,.0f} s"
        + ("." if is_complete else f" (estimated from {record['showers']:,} showers).")
    )


def _row(
    case: tuple[str, int, str], sides: dict[tuple[Any, ...], Record], peak_per_s: float
) -> str:
    workload, batch, precision = case
    ours, peer = (sides.get((*case, side), {}) for side in ("jax", "torch"))
    ours_per_s, peer_per_s = (_median(record) for record in (ours, peer))
    ratio = f"{ours_per_s / peer_per_s:.2f}" if ours_per_s and peer_per_s else ""
    share = f"{ours_per_s / peak_per_s:.1%}" if ours_per_s else ""
    memory = ours.get("peak_bytes")
    cells = [
        f"`{workload}`",
        f"{batch:,}",
        precision.removeprefix("mixed_"),
        _speed(ours, ours_per_s),
        _speed(peer, peer_per_s),
        ratio,
        share,
        f"{memory / 1e9:.1f} GB" if memory and ours_per_s else "",
    ]
    return f"| {' | '.join(cells)} |"


def _median(record: Record) -> float:
    return statistics.median(record.get("images_per_s") or [0.0])


def _speed(record: Record, images_per_s: float) -> str:
    return f"{images_per_s:,.0f}" if images_per_s else record.get("failure") or NOT_MEASURED
