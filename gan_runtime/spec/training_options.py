"""The options for updates of weights: optimizer, learning-rate schedule, moving average, exchange
between replicas.

The learning rates are options of the workload, one per network.
"""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import BaseModel

from gan_runtime.base.options import option

Optimizer = Literal["adam", "sgd", "rmsprop"]
RMSpropEpsilon = Literal["inside", "outside"]
RateSchedule = Literal["constant", "cosine_restarts"]
RateScaling = Literal["none", "linear", "sqrt"]
SamplesFrom = Literal["live", "ema"]
BatchNormScope = Literal["per_replica", "synchronised"]
AllReduceType = Literal["float32", "bfloat16"]


class OptimizerOptions(BaseModel):
    """All networks use the same kind of optimizer, each with its own learning rate."""

    optimizer: Optimizer = option(
        "adam",
        label="Optimizer",
        group="Optimizer",
        choices=get_args(Optimizer),
        help="Adam as in Table 1, SGD as in the paper's text, or RMSprop as in CERN's 3DGAN.",
        source="paper, Table 1 and section 3; 3DGAN: RMSprop(1e-3)",
        error="pick one of the listed optimizers.",
    )
    adam_beta_1: float = option(
        0.9,
        label="Adam beta 1",
        group="Optimizer",
        ge=0,
        lt=1,
        help="Decay of Adam's mean of gradients. 0.5 is often steadier for GANs (Radford et al.).",
        source="Keras default 0.9 (Table 1 names none); Radford et al. 2016: 0.5",
        error="use 0.9, or 0.5 for steadier training.",
    )
    adam_beta_2: float = option(
        0.999,
        label="Adam beta 2",
        group="Optimizer",
        ge=0,
        lt=1,
        help="Decay of Adam's mean of squared gradients. WGAN-GP uses 0.9, with beta 1 = 0.",
        source="Kingma and Ba 2015, algorithm 1: 0.999; Gulrajani et al. 2017, algorithm 1: 0.9",
        error="use 0.999, or 0.9 as WGAN-GP does.",
    )
    rmsprop_epsilon: RMSpropEpsilon = option(
        "inside",
        label="RMSprop epsilon",
        group="Optimizer",
        choices=get_args(RMSpropEpsilon),
        help=(
            "Epsilon 1e-7 inside the square root (Keras 3) or outside it (TensorFlow 2). Inside"
            " damps gradients below about 3e-4."
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
        help="Share of the last update that SGD adds to the next. 0: plain SGD.",
        source="paper, section 3: stochastic gradient descent, with momentum",
        error="use 0, or about 0.9.",
    )
    learning_rate_schedule: RateSchedule = option(
        "constant",
        label="Rate schedule",
        group="Optimizer",
        choices=get_args(RateSchedule),
        help=(
            "'cosine_restarts' lowers the rates along a cosine and resets them at the start of each"
            " cycle."
        ),
        source="paper, Fig. 9; Loshchilov and Hutter 2017",
        error="pick one of the listed schedules.",
    )
    restart_epochs: int = option(
        10,
        label="Restart cycle",
        group="Optimizer",
        unit="epochs",
        ge=1,
        le=10_000,
        help="Length of one cosine cycle. Used only with cosine_restarts.",
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
        help="The rates rise linearly from 0 over these first epochs. 0: full rates at once.",
        source="Goyal et al. 2017, section 2.2",
        error="use a whole number of epochs, or 0.",
    )
    learning_rate_scaling: RateScaling = option(
        "none",
        label="Rate scaling",
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
            "Global batch for which the rates are stated. Used only when the rates scale with the"
            " batch."
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
        help="Largest gradient norm per network, after the sum over all replicas. 0: no clipping.",
        source="Pascanu et al. 2013",
        error="use 0, or a norm such as 1.",
    )
    seed: int = option(
        1,
        label="Seed",
        group="Optimizer",
        ge=0,
        le=2**31 - 1,
        help="Seed of weights, image order and noise. Same seed, same device: same run.",
        source="",
        error="use a whole number from 0.",
    )


class AveragingOptions(BaseModel):
    """Moving averages of the networks that the workload's entry names (`averaged`)."""

    ema_decay: float = option(
        0.0,
        label="Moving average (EMA)",
        group="Moving average",
        unit="decay per step",
        ge=0,
        lt=1,
        help=(
            "Decay of a moving average of the generating network's weights, for steadier images. 0:"
            " no average."
        ),
        source="Yazici et al. 2019: 0.999",
        error="use 0, or about 0.99 to 0.9999.",
    )
    samples_from: SamplesFrom = option(
        "live",
        label="Sample grids from",
        group="Moving average",
        choices=get_args(SamplesFrom),
        help=(
            "Network that generates the images shown: the one in training (live), or its moving"
            " average (ema)."
        ),
        source="",
        error="pick one of the listed networks.",
    )


class DistributionOptions(BaseModel):
    """How replicas work together; on a single replica only accumulation has an effect."""

    batch_norm: BatchNormScope = option(
        "per_replica",
        label="Batch norm over",
        group="Distribution",
        choices=get_args(BatchNormScope),
        help=(
            "Statistics per replica, or over the whole batch at the cost of one exchange per layer."
        ),
        source="tf.distribute guide; Keras BatchNormalization(synchronized=True)",
        error="pick one of the listed scopes.",
    )
    all_reduce_type: AllReduceType = option(
        "float32",
        label="Gradient exchange",
        group="Distribution",
        choices=get_args(AllReduceType),
        help=(
            "Number format of gradients between replicas. bfloat16 halves the bytes and rounds to 8"
            " bits."
        ),
        source="paper, section 4.3: bfloat16",
        error="pick one of the listed types.",
    )
    accumulation_steps: int = option(
        1,
        label="Gradient accumulation",
        group="Distribution",
        unit="parts of a batch",
        ge=1,
        le=64,
        help=(
            "Each replica splits its share into this many parts and updates once, to save memory."
            " Batch norm sees one part."
        ),
        source="tf.distribute has none that works on several replicas; done in the training step",
        error="use a whole number that divides the images per replica.",
    )
    sync_every_steps: int = option(
        1,
        label="Synchronize every",
        group="Distribution",
        unit="steps",
        ge=1,
        le=1000,
        help=(
            "1: gradients are exchanged in each step. Above 1: local SGD, another algorithm, which"
            " averages weights this often."
        ),
        source="Stich 2019; Rasouli et al. 2020 (FedGAN); paper, future work on stragglers",
        error="use 1, or a whole number of steps.",
    )
    all_reduce_pack_mb: int = option(
        0,
        label="All-reduce pack",
        group="Distribution",
        unit="MB",
        ge=0,
        le=1024,
        help="Size of the packs in which workers exchange gradients. 0: one pack per step.",
        source="tf.distribute.experimental.CommunicationOptions",
        error="use 0 for one pack, or a size such as 8.",
    )
