"""A variant of the JAX engine's step as a side: other convolutions, or other settings of XLA.

python -m benchmarks.gpu.variant_side even dcgan_mnist 256 mixed_bfloat16           serves (side.py)
python -m benchmarks.gpu.variant_side profile even dcgan_mnist 256 mixed_bfloat16   prints a JSON line
"""  # noqa: E501

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gpu.cases import Case
from benchmarks.gpu.jax_side import ACCELERATOR, build
from benchmarks.gpu.side import serve
from gan_runtime.engines.jax import devices as jax_devices

CALLS, LARGEST = 3, 8  # of a profile
GRAPHS = "--xla_gpu_enable_command_buffer=+WHILE,+CONVOLUTION"


@dataclass(frozen=True)
class Variant:
    """`kernels`: module and class in gan_runtime/engines/jax. `flags`: of XLA."""

    kernels: tuple[str, str]
    flags: str = ""


# From the plainest to the boldest: JAX's own derivatives; gradients by kernel written out; also
# even padding, as in the program; also one CUDA graph a call.
VARIANTS = {
    "base": Variant(("kernels", "JaxKernels")),
    "written_out": Variant(("kernels", "JaxCpuKernels")),
    "even": Variant(("gpu_kernels", "GpuKernels")),
    "graphs": Variant(("gpu_kernels", "GpuKernels"), GRAPHS),
}


def choose(variant: Variant) -> None:
    """Lets the engine use this variant's kernels, also on a CPU. XLA's flags are set before."""
    from gan_runtime.engines.jax import step

    module, name = variant.kernels
    chosen = getattr(importlib.import_module(f"gan_runtime.engines.jax.{module}"), name)
    vars(step).update(GpuKernels=chosen, JaxCpuKernels=chosen)


def profile(case: Case) -> list[tuple[str, float]]:
    """The GPU's kernels with the most time in CALLS calls, and their share of all kernels' time."""
    import jax

    step = build(case)
    step.call()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            for _ in range(CALLS):
                step.call()
        (file,) = Path(folder).rglob("*.xplane.pb")
        data = jax.profiler.ProfileData.from_file(str(file))
    nanoseconds: Counter[str] = Counter()
    for plane in data.planes:
        if plane.name.startswith("/device:GPU"):
            for line in plane.lines:
                if line.name.startswith("Stream"):
                    for event in line.events:
                        nanoseconds[event.name] += event.duration_ns
    whole = sum(nanoseconds.values()) or 1
    return [(name, spent / whole) for name, spent in nanoseconds.most_common(LARGEST)]


def main() -> None:
    """Serves the case, or profiles it."""
    is_profile = sys.argv[1] == "profile"
    name, *words = sys.argv[1 + is_profile :]
    variant = VARIANTS[name]
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {variant.flags}".strip()
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    workload, batch, precision = words
    case = Case(workload, int(batch), precision)
    jax_devices.set_flags(case.spec, ACCELERATOR)
    choose(variant)
    if is_profile:
        print(json.dumps({"kernels": profile(case)}))
        return
    sys.argv[1:] = words
    serve(build)


if __name__ == "__main__":
    main()
