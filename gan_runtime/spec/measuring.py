"""What a run measures beside its training."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from gan_runtime.base.options import option


class MeasuringOptions(BaseModel):
    """Read by the training loop."""

    profile_steps: int = option(
        0,
        label="Profile steps",
        group="Run",
        unit="steps",
        ge=0,
        le=100,
        help="So many steps run once under the profiler, to tell where a step's time goes. They train as all others but count in no time. 0: none.",
        source="CERN's 3DGAN on TPUs: 38 % forward, 61 % backward, 0.7 % idle",
        error="use 0, or a few steps such as 5.",
    )
    weight_snapshots: Literal["no", "yes"] = option(
        "no",
        label="Weight snapshots",
        group="Run",
        choices=("no", "yes"),
        help="Keeps the weights of all networks after each epoch, in half precision, so that the descent on the loss surface can be drawn: about 5 MB an epoch for the DCGAN.",
        source="paper, Fig. 11",
        error="use no or yes.",
    )
    count_kernels: Literal["no", "yes"] = option(
        "no",
        label="Count kernels",
        group="Run",
        choices=("no", "yes"),
        help="With XLA jit: kernels and fusions of a step, before and after XLA's optimizing. Compiles once more at the start: that counts in no time, but in the memory.",
        source="TensorFlow: experimental_get_compiler_ir",
        error="use no or yes.",
    )
