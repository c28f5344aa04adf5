"""Stored answers of a compile check, with round numbers."""

from __future__ import annotations

from dataclasses import replace

from gan_runtime.records.home import Home
from gan_runtime.tpu import check
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.estimates import ExpensiveOperation, Point, ProgramMemory, StepEstimate
from gan_runtime.tpu.plan import CheckPlan

V3 = Point("v3:2x2", 8, 512, "mixed_bfloat16")


def estimate(point: Point = V3, **changed: object) -> StepEstimate:
    """A step of 940,000 cycles: one millisecond on a v3 core, a quarter of it for arithmetic."""
    result = StepEstimate(
        point=point,
        refused="",
        compile_seconds=9.0,
        cycles=940_000.0,
        flops=15.375e9,  # a quarter of a millisecond at 61.5 Tflop/s a core
        bytes_accessed=3e8,
        memory=ProgramMemory(
            arguments=80_000_000, temporary=45_000_000, program=10_000_000, outputs=0
        ),
        operations=120,
        exchanges=1.0,
        exchange_bytes=8_200_000,
        without_estimate=("rng-bit-generator",),
        most_expensive=(
            ExpensiveOperation("fusion.1", "fusion", "generator up_1, backward", 94_000.0),
            ExpensiveOperation("fusion.2", "fusion", "", 47_000.0),
        ),
    )
    return replace(result, **changed)  # type: ignore[arg-type]


def keep_all(home: Home, plan: CheckPlan) -> None:
    """Stores an answer for every point of a plan; smaller batches take as long per step."""
    folder = home.path / check.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for point in plan.points:
        check.store(folder, planning.key(plan, point), estimate(point))
