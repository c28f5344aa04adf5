"""A stored answer of a GPU check, with round numbers."""

from __future__ import annotations

from dataclasses import asdict, replace

from gan_runtime.gpu import check
from gan_runtime.gpu.check import GpuPlan
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.gpu.program import Kernel, WideConvolution
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.tpu.estimates import ProgramMemory

WIDE = WideConvolution("generator up_3, backward", (5, 5), (28, 28))
STEP = CompiledStep(
    refused="",
    compile_seconds=20.0,
    kernels=100,
    bytes=800_000_000,
    memory=ProgramMemory(
        arguments=80_000_000, temporary=100_000_000, program=0, outputs=20_000_000
    ),
    largest=(Kernel("fusion.1", "fusion", "generator up_1, backward", 200_000_000),),
    widest=(6, 6),
)


def keep(home: Home, plan: GpuPlan, **changed: object) -> None:
    """Stores an answer as the result of a finished job."""
    job = JobDir(home.jobs / f"check-gpu-{len(list(home.jobs.glob('*'))) + 1:04}")
    job.path.mkdir(parents=True)
    options = check.as_options(plan)
    job.write_request(JobRequest(kind=check.CHECK, options=options, asker="a test"))
    result = asdict(replace(STEP, **changed))  # type: ignore[arg-type]
    job.write_end(End(state="finished", reason="done", result=result))
