"""The moving average of a network's weights, and which of the two makes the pictures."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.base.options import option

SamplesFrom = Literal["live", "ema"]


class AveragingOptions(BaseModel):
    """Of the network that the workload's entry names (`averaged`)."""

    ema_decay: float = option(
        0.0,
        label="Moving average (EMA)",
        group="Moving average",
        unit="decay per step",
        ge=0,
        lt=1,
        help="Keeps a moving average of the weights that make the images, for steadier ones. 0 keeps none.",
        source="Yazici et al. 2019: 0.999",
        error="use 0, or about 0.99 to 0.9999.",
    )
    samples_from: SamplesFrom = option(
        "live",
        label="Sample grids from",
        group="Moving average",
        choices=get_args(SamplesFrom),
        help="Whose images are shown: those of the network in training, or of its moving average.",
        source="",
        error="pick one of the listed networks.",
    )
