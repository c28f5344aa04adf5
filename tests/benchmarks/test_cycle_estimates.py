"""Estimates of the TPU compiler are cached as they arrive and summed over the programs of a step.

No compiler runs here.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cycle_tables, cycles_side
from benchmarks.cycle_estimates import EstimateCache, step_estimate
from benchmarks.effort import answer_of
from benchmarks.results import Report
from benchmarks.rows import cycles, pair_cycles
from benchmarks.turns import NotMeasuredError
from gan_runtime.tpu import estimates
from gan_runtime.tpu.estimates import ExpensiveOperation, Point, ProgramMemory, StepEstimate

Compiler = Callable[[list[str]], dict[str, Any]]
MILLION = 1_000_000


def estimate(millions: float, layer: str = "conv") -> StepEstimate:
    return StepEstimate(
        Point("v3:2x2", 8, 1024, "mixed_bfloat16"),
        refused="",
        compile_seconds=10.0,
        cycles=millions * MILLION,
        flops=millions,
        memory=ProgramMemory(int(millions), 0, 0, 0),
        operations=2,
        exchanges=1.0,
        exchange_bytes=8,
        without_estimate=("rng-bit-generator",),
        most_expensive=(ExpensiveOperation("fusion.1", "fusion", layer, millions * MILLION),),
    )


def compiler(requests: list[str], broken: str = "") -> Compiler:
    """Records each request. Every program costs 94 million cycles, except `broken`, which does not
    compile.
    """

    def answer(arguments: list[str]) -> dict[str, Any]:
        requests.append(" ".join(arguments[:3]))
        if arguments[1] == broken:
            raise NotMeasuredError("the compiler ran out of memory")
        return estimates.to_json(estimate(94.0))

    return answer


def test_a_step_sums_its_programs_weighted_by_run_count() -> None:
    step = step_estimate([(estimate(3.0, "judge"), 2), (estimate(5.0, "make"), 1)])
    assert (step.cycles, step.flops, step.operations) == (11.0 * MILLION, 11.0, 6)
    assert (step.exchanges, step.exchange_bytes, step.compile_seconds) == (3.0, 24, 20.0)
    assert step.memory.total == 5
    assert [(operation.layer, operation.cycles) for operation in step.most_expensive] == [
        ("judge", 6.0 * MILLION),
        ("make", 5.0 * MILLION),
    ]
    assert step.without_estimate == ("rng-bit-generator",)


def test_an_interrupted_row_resumes_from_cached_estimates(tmp_path: Path) -> None:
    first: list[str] = []
    report = Report("cycles")
    cycles.epochs(
        report, EstimateCache(tmp_path / "kept", compiler(first, broken="update_generator"))
    )
    missing = [record["name"] for record in report.records if record["kind"] == "not_measured"]
    assert missing == ["epoch_keras_v2:2x2", "epoch_keras_v3:2x2"]
    assert [record["side"] for record in report.records if record["kind"] == "epoch"] == [
        "ours",
        "ours",
    ]

    again: list[str] = []
    report = Report("cycles")
    cycles.epochs(report, EstimateCache(tmp_path / "kept", compiler(again)))
    assert again == ["showers update_generator v2:2x2", "showers update_generator v3:2x2"]
    # 94 million cycles at 0.94 GHz are 100 ms. A step is 5 programs in plain Keras and 1 in ours,
    # an epoch is 122 steps.
    plain, ours = (
        next(
            record
            for record in report.records
            if (record["kind"], record.get("side")) == ("epoch", side)
        )
        for side in ("keras", "ours")
    )
    assert plain["topology"] == ours["topology"] == "v2:2x2"
    figures = {
        record["name"]: record["value"] for record in report.records if record["kind"] == "figure"
    }
    assert figures["shower_epoch_s"] == pytest.approx(12.2, abs=0.1)
    assert figures["shower_epoch_of_keras"] == pytest.approx(0.2, abs=0.001)


def test_pix2pix_is_compared_with_keras_only_if_both_compile(
    tmp_path: Path,
) -> None:
    requests: list[str] = []
    report = Report("pair_cycles")
    pair_cycles.pairs(report, EstimateCache(tmp_path, compiler(requests, broken="keras")))
    assert requests == ["pairs ours v3:2x2", "pairs keras v3:2x2", "pairs_per_replica ours v3:2x2"]
    assert [record["name"] for record in report.records if record["kind"] == "not_measured"] == [
        "pair_cycles_of_keras"
    ]
    assert not any(record["kind"] == "figure" for record in report.records)

    report = Report("pair_cycles")
    pair_cycles.pairs(report, EstimateCache(tmp_path, compiler([])))
    assert [record["value"] for record in report.records if record["kind"] == "figure"] == [1.0]
    text = cycle_tables.pairs(report.records)
    assert "| ours | 64 | mixed_bfloat16 | 94,000,000 | 100.000 ms |" in text
    assert "| ours, batch norm per replica | 64 | mixed_bfloat16 | 94,000,000 |" in text
    assert cycle_tables.pairs([]) == "Not measured.\n"


def test_pix2pix_comparison_uses_synchronized_batch_norm_like_the_peer() -> None:
    judged, by_default = (
        cycles_side.plan_of(
            program, pair_cycles.TOPOLOGY, pair_cycles.BATCH, pair_cycles.PRECISION
        ).spec
        for program in ("pairs", "pairs_per_replica")
    )
    assert (judged.batch_norm, by_default.batch_norm) == ("synchronised", "per_replica")
    differing = {name for name, value in judged.flat().items() if by_default.flat()[name] != value}
    assert differing == {"batch_norm"}


def test_cached_estimates_of_another_compiler_version_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[str] = []
    cache = EstimateCache(tmp_path, compiler(requests))
    program = ("showers", "generate", "v3:2x2", 1024, "mixed_bfloat16")
    assert cache.estimate(*program) == cache.estimate(*program)
    assert len(requests) == 1
    monkeypatch.setattr("gan_runtime.tpu.plan.versions", lambda: {"libtpu": "1.0"})
    cache.estimate(*program)
    assert len(requests) == 2


def test_a_child_that_times_out_is_named_in_the_error() -> None:
    with pytest.raises(NotMeasuredError, match=r"time.sleep.60.` did not answer within 0 s"):
        answer_of(["-c", "import time; time.sleep(60)"], timeout_s=0.2)
