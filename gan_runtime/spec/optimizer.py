"""How the weights follow the gradients: optimizer, schedule of the learning rates, clipping, seed.

The rates themselves are options of the workload, one for each of its networks.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.base.options import option

Optimizer = Literal["adam", "sgd", "rmsprop"]
RMSpropEpsilon = Literal["inside", "outside"]
RateSchedule = Literal["constant", "cosine_restarts"]
RateScaling = Literal["none", "linear", "sqrt"]


class OptimizerOptions(BaseModel):
    """All networks have an optimizer of the same kind, each with a rate of its own."""

    optimizer: Optimizer = option(
        "adam",
        label="Optimizer",
        group="Optimizer",
        choices=get_args(Optimizer),
        help=(
            "Adam as in Table 1, plain or momentum SGD as in the paper's text, RMSprop as in CERN's"
            " 3DGAN."
        ),
        source="paper, Table 1 and section 3; 3DGAN: RMSprop(1e-3)",
        error="pick one of the listed optimizers.",
    )
    adam_beta_1: float = option(
        0.9,
        label="Adam beta 1",
        group="Optimizer",
        ge=0,
        lt=1,
        help=(
            "How long Adam remembers earlier gradients. Radford et al. found 0.5 steadier for GANs."
        ),
        source="Keras default 0.9 (Table 1 names none); Radford et al. 2016: 0.5",
        error="use 0.9, or 0.5 for steadier training.",
    )
    adam_beta_2: float = option(
        0.999,
        label="Adam beta 2",
        group="Optimizer",
        ge=0,
        lt=1,
        help=(
            "How long Adam remembers the size of earlier gradients. Gulrajani et al. take 0.9 for"
            " WGAN-GP, with a beta 1 of 0."
        ),
        source="Kingma and Ba 2015, algorithm 1: 0.999; Gulrajani et al. 2017, algorithm 1: 0.9",
        error="use 0.999, or 0.9 as WGAN-GP does.",
    )
    rmsprop_epsilon: RMSpropEpsilon = option(
        "inside",
        label="RMSprop's epsilon",
        group="Optimizer",
        choices=get_args(RMSpropEpsilon),
        help=(
            "Where the 1e-7 stands that keeps RMSprop from dividing by 0: 'inside' the square root"
            " as in Keras 3, 'outside' as in TensorFlow 2. Inside it holds back weights whose"
            " gradients are below about 3e-4."
        ),
        source=(
            "Keras 3: g / √(v + ε); TensorFlow 2, with which CERN's 3DGAN was trained: g / (√v + ε)"
        ),
        error="use inside, or outside as TensorFlow 2 does.",
    )
    momentum: float = option(
        0.0,
        label="Momentum (SGD)",
        group="Optimizer",
        ge=0,
        lt=1,
        help="Share of the last update that SGD keeps. 0 is plain SGD.",
        source="paper, section 3: stochastic gradient descent, with momentum",
        error="use 0, or about 0.9.",
    )
    learning_rate_schedule: RateSchedule = option(
        "constant",
        label="Rate schedule",
        group="Optimizer",
        choices=get_args(RateSchedule),
        help=(
            "'cosine_restarts' lowers the rates along a cosine and lifts them again at the start of"
            " each cycle."
        ),
        source="paper, Fig. 9; Loshchilov and Hutter 2017",
        error="pick one of the listed schedules.",
    )
    restart_epochs: int = option(
        10,
        label="Cycle of the schedule",
        group="Optimizer",
        unit="epochs",
        ge=1,
        le=10_000,
        help="Length of one cosine cycle; read only with cosine_restarts.",
        source="Loshchilov and Hutter 2017: T_0 = 10",
        error="use a whole number of epochs.",
    )
    warmup_epochs: int = option(
        0,
        label="Warm-up",
        group="Optimizer",
        unit="epochs",
        ge=0,
        le=10_000,
        help=(
            "The rates grow in a straight line from zero during these first epochs. 0 starts at the"
            " full rates."
        ),
        source="Goyal et al. 2017, section 2.2",
        error="use a whole number of epochs, or 0.",
    )
    learning_rate_scaling: RateScaling = option(
        "none",
        label="Rate by batch",
        group="Optimizer",
        choices=get_args(RateScaling),
        help="Multiplies the rates by global batch / reference batch, or by its square root.",
        source="Goyal et al. 2017 (linear); Krizhevsky 2014 (square root)",
        error="pick one of the listed scalings.",
    )
    reference_batch: int = option(
        64,
        label="Reference batch",
        group="Optimizer",
        unit="images",
        ge=1,
        le=65_536,
        help=(
            "The global batch at which the rates hold as given; read only when the rates are scaled"
            " by the batch."
        ),
        source="paper: 64, its smallest batch",
        error="use the batch for which the rates were tuned.",
    )
    clip_norm: float = option(
        0.0,
        label="Gradient clipping",
        group="Optimizer",
        unit="global norm",
        ge=0,
        le=1e6,
        help="Longest gradient of each network, after the sum over all replicas. 0 does not clip.",
        source="Pascanu et al. 2013",
        error="use 0, or a norm such as 1.",
    )
    seed: int = option(
        1,
        label="Seed",
        group="Optimizer",
        ge=0,
        le=2**31 - 1,
        help=(
            "Start of every random draw: weights, order of the images, noise. The same seed gives"
            " the same run on the same device."
        ),
        source="",
        error="use a whole number from 0.",
    )


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
        help=(
            "Keeps a moving average of the weights that make the images, for steadier ones. 0 keeps"
            " none."
        ),
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
