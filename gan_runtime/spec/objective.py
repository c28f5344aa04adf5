"""What the networks are trained towards: losses, the order of the updates, penalties, the average of the generator."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.options import option

GeneratorLoss = Literal["non_saturating", "minimax"]
Updates = Literal["together", "in_turn"]
SamplesFrom = Literal["live", "ema"]


class ObjectiveOptions(BaseModel):
    """Read by the workload as `contract.Objective`."""

    generator_loss: GeneratorLoss = option(
        "non_saturating",
        label="Generator loss",
        group="Objective",
        choices=get_args(GeneratorLoss),
        help="'non_saturating' is what DCGANs use; 'minimax' is the paper's equation, whose gradient fades while D is sure.",
        source="Goodfellow et al. 2014; paper, equations 3 to 5",
        error="pick one of the listed losses.",
    )
    updates: Updates = option(
        "together",
        label="Updates",
        group="Objective",
        choices=get_args(Updates),
        help="'together' updates both networks from one forward pass; 'in_turn' updates D first, then G against the new D.",
        source="TensorFlow DCGAN tutorial (together); paper, equations 4 and 5 (in turn)",
        error="pick one of the listed orders.",
    )
    discriminator_steps: int = option(
        1,
        label="Discriminator steps",
        group="Objective",
        unit="per generator step",
        ge=1,
        le=10,
        help="How often D is updated before each update of G, each time on other real images, so an epoch has fewer steps.",
        source="Goodfellow et al. 2014, algorithm 1: k",
        error="use a whole number from 1 to 10.",
    )
    label_smoothing: float = option(
        0.0,
        label="Label smoothing, real side",
        group="Objective",
        ge=0,
        le=0.5,
        help="D's target for real images is 1 minus this. It keeps D from becoming too sure.",
        source="Salimans et al. 2016, section 3.4: 0.1",
        error="use 0, or about 0.1.",
    )
    r1_weight: float = option(
        0.0,
        label="R1 penalty",
        group="Objective",
        ge=0,
        le=1000.0,
        help="Weight gamma of the penalty on D's slope at real images. 0 leaves it out; it costs about half a step more.",
        source="Mescheder et al. 2018, equation 9: 10",
        error="use 0, or about 1 to 10.",
    )
    ema_decay: float = option(
        0.0,
        label="Generator average (EMA)",
        group="Objective",
        unit="decay per step",
        ge=0,
        lt=1,
        help="Keeps a moving average of G's weights, which makes steadier images. 0 keeps none.",
        source="Yazici et al. 2019: 0.999",
        error="use 0, or about 0.99 to 0.9999.",
    )
    samples_from: SamplesFrom = option(
        "live",
        label="Sample grids from",
        group="Objective",
        choices=get_args(SamplesFrom),
        help="The generator whose images are shown: the one in training, or its moving average.",
        source="",
        error="pick one of the listed generators.",
    )
