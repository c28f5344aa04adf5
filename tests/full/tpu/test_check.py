"""A compile check with the real TPU compiler, in the process of its job."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.tpu import check as checks
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import COMPILE_ONLY, CheckProgress
from gan_runtime.tpu.estimates import StepEstimate
from gan_runtime.tpu.plan import Program
from tests.support.asking import ask

SMALL = {"workload": "mlp_gan", "dataset": "digits", "batch_size_global": 64}
# Weights of dcgan with 8 channels for 28 × 28 pixels in three colors and 1,000 classes, without the
# statistics of batch norm.
GENERATOR = 16 * 7 * 7 * 16 + 1_000 * 2 * 16 + 25 * 16 * 8 + 1_000 * 2 * 8 + 25 * 8 * 3
DISCRIMINATOR = 25 * 3 * 8 + 8 + 25 * 8 * 16 + 16 + 7 * 7 * 16 + 1 + 1_000 * 16
TRAINED_OF_SMALL_DCGAN = GENERATOR + DISCRIMINATOR
# The paper's step for eight devices takes a minute on one core, and several on a slow one.
COMPILE_SECONDS = 480.0
pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library()),
]


@pytest.fixture
def checked(home: Home, wait_until: Callable[..., Any]) -> Callable[..., CheckProgress]:
    """`checked("v3:2x2", batch_size_global=64)` compiles the run and waits for the end."""

    def to_its_end(
        topology: str,
        sweep: bool = False,
        program: Program = "step",
        fewer: int = 0,
        **options: object,
    ) -> CheckProgress:
        """`fewer`: also compiles for this many devices."""
        plan = planning.make({**SMALL, **options}, topology, sweep, program=program)
        if fewer:
            plan = replace(plan, points=(plan.point, replace(plan.point, devices=fewer)))
        ask(home).check_on_tpu(plan)
        wait_until(
            lambda: not checks.newest_progress(home, plan).running,
            "the end of the check",
            COMPILE_SECONDS,
        )
        return checks.newest_progress(home, plan)

    return to_its_end


def only(progress: CheckProgress) -> StepEstimate:
    (answer,) = _answers(progress)
    return answer


def both(progress: CheckProgress) -> tuple[StepEstimate, StepEstimate]:
    """Returns the estimates for all devices and for fewer."""
    whole, fewer = _answers(progress)
    return whole, fewer


def _answers(progress: CheckProgress) -> tuple[StepEstimate, ...]:
    assert progress.trouble == ""
    assert {answer.refused for answer in progress.answers} == {""}
    return progress.answers


def test_frame_program_compiles_for_the_tpu_without_exchanges(
    checked: Callable[..., CheckProgress],
) -> None:
    """80 × 192 pixels in 60 tiles of 16: eight in sequence on each of eight cores, or fifteen on
    each of four.
    """
    options = {"workload": "pix2pix", "dataset": "karman", "pix2pix.tile": 16}
    eight, four = both(checked("v3:2x2", fewer=4, program="frame", **options))
    for estimate in (eight, four):
        assert (estimate.host_transfers, estimate.exchanges) == ((), 0.0)
        assert estimate.most_expensive[0].layer.startswith("generator ")
    assert four.most_expensive[0].cycles / eight.most_expensive[0].cycles == pytest.approx(
        15 / 8
    ), "a tile costs the same"
    # Work done once, before the first tile, adds a little to a round.
    assert four.cycles / eight.cycles == pytest.approx(15 / 8, rel=0.05)


def test_paper_step_compiles_and_stays_on_the_tpu(checked: Callable[..., CheckProgress]) -> None:
    options = {"workload": "dcgan_mnist", "dataset": "mnist", "batch_size_global": 512}
    estimate = only(checked("v3:2x2", **options))
    assert estimate.host_transfers == ()
    assert estimate.operations > 50
    assert estimate.exchange_bytes == pytest.approx(
        4 * 2_518_337, rel=0.1
    )  # all trainable weights in float32
    assert estimate.share_of_peak is not None
    assert 0.02 < estimate.share_of_peak < 1.0
    assert 0.0 < estimate.share_of_memory < 0.1
    assert len(estimate.most_expensive) == 10
    assert any("generator" in operation.layer for operation in estimate.most_expensive)


WITH_LITTLE_MEMORY = """
import sys
from pathlib import Path

import psutil
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from gan_runtime.tpu import check

free = psutil.virtual_memory()._replace(available=500_000_000)
psutil.virtual_memory = lambda: free
job = JobDir(Path(sys.argv[1]))
print(check.compile_points(Task(Home(job.path.parent.parent), job, job.request().options)))
"""


def test_a_program_that_takes_more_memory_than_is_free_is_not_compiled(home: Home) -> None:
    plan = planning.make(SMALL, "v3:2x2", sweep=False)
    job = JobDir(home.path / "jobs" / "check-tpu-0001")
    job.path.mkdir(parents=True)
    job.write_request(
        JobRequest(kind=checks.CHECK, options=checks.as_options(home, plan), asker="command line")
    )
    child = subprocess.run(
        [sys.executable, "-c", WITH_LITTLE_MEMORY, str(job.path)],
        capture_output=True,
        text=True,
        env={**os.environ, **COMPILE_ONLY},
        check=True,
    )
    assert "compiling takes about 1.2 GB of memory, and 500 MB is free" in child.stdout
    assert list(checks.folder(home).iterdir()) == []
    reported = job.progress_file.read_text(encoding="utf-8").splitlines()
    assert "takes about 1.2 GB of memory" in reported[-1]


def test_conditional_color_step_compiles_and_stays_on_the_tpu(
    checked: Callable[..., CheckProgress],
) -> None:
    options = {
        "workload": "dcgan",
        "dataset": "stacked_digits",
        "base_channels": 8,
        "latent_size": 16,
    }
    estimate = only(checked("v5e:2x4", **options))
    assert estimate.host_transfers == ()
    assert estimate.exchange_bytes == pytest.approx(4 * TRAINED_OF_SMALL_DCGAN, rel=0.02)
    assert any(operation.layer.startswith("generator ") for operation in estimate.most_expensive)


def test_accumulated_step_has_the_cycles_of_all_its_parts(
    checked: Callable[..., CheckProgress],
) -> None:
    whole, parts = only(checked("v3:2x2")), only(checked("v3:2x2", accumulation_steps=4))
    assert whole.cycles < parts.cycles < 8 * whole.cycles
    assert parts.flops is None
