"""3DGAN on calorimeter showers: fields of a row, options, size, the authors' speeds, and its
declaration as a workload.

The value of a cell is (energy in GeV · 50)^0.85. The unit and the power are those of the authors'
files and of their training (github.com/recardoso/ISC_HPC_3DGAN): about 1/50 of the energy is
visible, so the sum of the cells in this unit is about the incident energy in GeV, and the power
brings the many faint cells closer to the few bright ones. The conversion is in
domains/showers/features.py, which needs NumPy; the catalog does not.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from gan_runtime.base.fields import Field, Fields, needed
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import (
    Condition,
    PublishedSpeeds,
    Size,
    Speed,
    WorkloadEntry,
    refused,
)
from gan_runtime.domains.showers.layer_tables import LayerPlan, plan
from gan_runtime.domains.showers.score_metrics import (
    JUDGEMENTS,
    NETWORKS,
    PANELS,
    PICTURES,
    WORKLOAD_METRICS,
    G,
)

SHOWERS = "showers"  # (X, Y, Z, 1): two lateral axes, then depth
ENERGY = "energy"  # of the incident particle, as E / 100 GeV
ANGLE = "angle"  # measured on the shower; missing in a data set without angles
DEPOSIT = "deposit"  # sum of the cells, before the power
BELIEF = "belief"  # the discriminator's probability that a shower is simulated; not a field

AUTHORS_GRID = (51, 51, 25)  # cells along x, y, z
MERGED = {"full": 1, "tiny": 3}  # name of a grid → the authors' cells a side that are summed to one
CELL_UNITS = 50.0  # of a cell, per GeV
POWER = 0.85
MEV_PER_GEV = 1_000.0
ENERGY_SCALE = 0.01  # of the incident energy, per GeV
ENERGIES_GEV, ANGLES_DEG = (1.0, 1_000.0), (45.0, 135.0)  # allowed in requests


def cells_along(grid: str) -> tuple[int, int, int]:
    """The cells along x, y and z: 51, 51, 25 on the full grid, 17, 17, 25 on the tiny grid."""
    x, y, z = AUTHORS_GRID
    return x // MERGED[grid], y // MERGED[grid], z


def shower_fields(
    shape: tuple[int, int, int, int], angle: bool = True, periodic: tuple[int, ...] = ()
) -> Fields:
    """The fields of a data set of showers. `shape`: (X, Y, Z, 1); `periodic`: its periodic axes."""
    fields = {
        SHOWERS: Field(shape, dtype="float16", unit="(20 MeV)^0.85", periodic=periodic),
        ENERGY: Field((), dtype="float32", scale=ENERGY_SCALE, unit="100 GeV"),
        DEPOSIT: Field((), dtype="float32", unit="20 MeV"),
    }
    return {**fields, ANGLE: Field((), dtype="float32", unit="rad")} if angle else fields


# ---- options ----------------------------------------------------------------------------------

NetworkSize = Literal["full", "tiny"]
# Grids that the full networks are for: the authors', and data sets 2 and 3 of the CaloChallenge
# (alpha, r, layer).
FULL_GRIDS = (AUTHORS_GRID, (16, 9, 45), (50, 18, 45))
SHORTEST = 2  # cells of an axis, which the discriminator's pooling halves
OF_THE_AUTHORS = "recardoso/ISC_HPC_3DGAN: 0.001"
ADVICE = "use data set showers_tiny, or another one of showers"


class ShowerGanOptions(OptionRecord):
    """The authors' constants, and the size of the networks."""

    size: NetworkSize = option(
        "tiny",
        label="Network size",
        choices=get_args(NetworkSize),
        help=(
            "'full': the authors' networks, 40 billion multiplications a shower and step; 'tiny':"
            " the same layers with 4 channels."
        ),
        source="recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py: full",
        error="use tiny on a CPU, full on an accelerator.",
        phrase="{} networks",
    )
    latent_size: int = option(
        256,
        label="Latent size",
        unit="numbers",
        ge=3,
        le=4096,
        help=("Inputs of the generator for one shower: its energy, its angle, and normal noise."),
        source="recardoso/ISC_HPC_3DGAN: 256",
        error="use a whole number from 3, such as 256.",
    )
    learning_rate_generator: float = option(
        1e-3,
        label="Learning rate, generator",
        gt=0,
        le=1.0,
        help=("Step size of the generator's optimizer, which updates twice in each training step."),
        source=OF_THE_AUTHORS,
        error="use a positive rate, such as 0.001.",
        phrase="rate of G {}",
    )
    learning_rate_discriminator: float = option(
        1e-3,
        label="Learning rate, discriminator",
        gt=0,
        le=1.0,
        help=(
            "Step size of the discriminator's optimizer, which updates twice in each training step."
        ),
        source=OF_THE_AUTHORS,
        error="use a positive rate, such as 0.001.",
        phrase="rate of D {}",
    )
    weight_real: float = option(
        3.0,
        label="Weight of the cross-entropy",
        ge=0,
        le=1000,
        help=("Weight of the binary cross-entropy of D's score in every loss."),
        source="recardoso/ISC_HPC_3DGAN: 3",
        error="use a number from 0, such as 3.",
    )
    weight_energy: float = option(
        0.1,
        label="Weight of the energy",
        ge=0,
        le=1000,
        help=("Weight of one percent of error in the energy that D reads, in every loss."),
        source="recardoso/ISC_HPC_3DGAN: 0.1",
        error="use a number from 0, such as 0.1.",
    )
    weight_angle: float = option(
        25.0,
        label="Weight of the angle",
        ge=0,
        le=1000,
        help=(
            "Weight of an error of one rad in the measured angle, in the generator's loss. Unused"
            " without angles."
        ),
        source="recardoso/ISC_HPC_3DGAN: 25",
        error="use a number from 0, such as 25.",
    )
    weight_deposit: float = option(
        0.1,
        label="Weight of the deposited energy",
        ge=0,
        le=1000,
        help="Weight of one percent of error in the sum over all cells, in the generator's loss.",
        source="recardoso/ISC_HPC_3DGAN: 0.1",
        error="use a number from 0, such as 0.1.",
    )
    dropout: float = option(
        0.2,
        label="Dropout in D",
        ge=0,
        le=0.9,
        help=("Share of values that each layer of D drops in training."),
        source="recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py: 0.2",
        error="use 0, or about 0.2.",
    )
    angle_gain: float = option(
        0.0,
        label="Gain of the angle",
        ge=0,
        le=1000,
        help=(
            "0: G reads the angle in rad, as in the paper. Otherwise its difference from 90° times"
            " this gain, which G learns faster."
        ),
        source="recardoso/ISC_HPC_3DGAN: the angle in rad",
        error="use 0, or about 6 on the tiny grid.",
    )
    norm_momentum: float = option(
        0.99,
        label="Momentum of batch norm",
        ge=0,
        lt=1,
        help=(
            "Momentum of the stored batch norm statistics, with which G generates for D. At 0.99"
            " they lag by a hundred updates."
        ),
        source="recardoso/ISC_HPC_3DGAN: Keras' 0.99",
        error="use 0.99, or 0.9 for runs of some thousand steps.",
    )
    flip_share: float = option(
        0.05,
        label="Flipped labels",
        ge=0,
        le=0.5,
        help=(
            "Share of showers whose label is inverted for D, drawn in each step, so that D stays"
            " uncertain."
        ),
        source="recardoso/ISC_HPC_3DGAN, BitFlip: 0.05",
        error="use 0, or about 0.05.",
    )


def reads(options: ShowerGanOptions, offered: Fields) -> Fields:
    """Showers with their energy and what they deposit; the angle where the data set has one.

    Raises:
        DatasetError: one of them is missing, or the grid does not fit the networks.
    """
    if options.size == "full":
        grids = " or ".join(" × ".join(map(str, grid)) for grid in FULL_GRIDS)
        showers = needed(
            offered,
            SHOWERS,
            lambda shape: shape[-1:] == (1,) and shape[:-1] in FULL_GRIDS,
            f"{grids} cells in 1 channel",
            "use size=tiny, or a data set of one of these grids",
        )
    else:
        showers = needed(
            offered,
            SHOWERS,
            lambda shape: len(shape) == 4 and shape[-1] == 1 and min(shape[:-1]) >= SHORTEST,
            f"a grid of three axes with {SHORTEST} or more cells in 1 channel",
            ADVICE,
        )
    numbers = [ENERGY, DEPOSIT, *([ANGLE] if ANGLE in offered else [])]
    by_name = {
        name: needed(offered, name, lambda shape: shape == (), "one number a shower", ADVICE)
        for name in numbers
    }
    return {SHOWERS: showers, **by_name}


def layers(options: ShowerGanOptions, fields: Fields) -> LayerPlan:
    """Both networks on the grid of the data."""
    showers = fields[SHOWERS]
    return plan(options.size, showers.shape[:-1], showers.periodic)


def size(options: ShowerGanOptions, fields: Fields) -> Size:
    """Exact weights of both networks, and about the activations of a shower in the largest phase,
    the generator's.
    """
    planned = layers(options, fields)
    enlarged = math.prod(planned.cells) * planned.cell_channels
    generator = enlarged + sum(3 * layer.cells for layer in planned.generator)
    discriminator = sum(4 * layer.cells for layer in planned.discriminator)
    return Size(planned.parameters(options.latent_size), generator + discriminator)


RULES = (
    # TensorFlow has no AvgPool3D of float16 for CPUs: InvalidArgumentError in the first step.
    refused(
        "precision",
        lambda accelerator, engine, precision: (
            accelerator == "cpu" and engine != "jax" and precision == "mixed_float16"
        ),
        "precision is mixed_float16, but TensorFlow on a CPU cannot pool float16 volumes: use"
        " mixed_bfloat16 or float32, or engine=jax.",
    ),
    # Automatic clustering creates a cycle in the loop over a batch's parts, which TensorFlow
    # refuses.
    refused(
        "xla",
        lambda xla, accumulation_steps: xla == "autocluster" and accumulation_steps != 1,
        "xla is autocluster, which cannot cluster this GAN's step in {accumulation_steps} parts:"
        " use xla=off or jit, or accumulation_steps=1.",
    ),
)

# What the authors of 3DGAN measured on GPUs and TPUs: seconds of an epoch with the best of their
# input pipelines.
SPEEDS = (
    *(
        Speed("V100 GPUs", devices, 96, seconds)
        for devices, seconds in (
            (2, 1779.3),
            (4, 899.0),
            (8, 453.1),
            (16, 227.6),
            (32, 115.0),
            (64, 59.4),
            (128, 34.9),
        )
    ),
    *(Speed("TPU v2 cores", cores, 128, seconds) for cores, seconds in ((8, 1058.9), (32, 261.3))),
    *(Speed("TPU v3 cores", cores, 128, seconds) for cores, seconds in ((8, 416.3), (32, 103.2))),
)
PUBLISHED = PublishedSpeeds(
    source=(
        "R. Cardoso, 3DGAN on Google Cloud, tfjobs_runs_reduced.csv"
        " (github.com/recardoso/ISC_HPC_3DGAN)"
    ),
    setting=(
        "Full networks on 51 × 51 × 25 cells. Each device has its own batch, so the global batch"
        " grows with the devices."
    ),
    images=124_987,
    speeds=SPEEDS,
)
ENTRY = WorkloadEntry(
    title="3DGAN (CERN)",
    summary=(
        "Showers in a calorimeter for a given energy and angle: three-dimensional convolutions,"
        " four updates a step."
    ),
    source=(
        "Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; Cardoso et al. 2021,"
        " doi:10.1051/epjconf/202125102073"
    ),
    module="gan_runtime.domains.showers.workload",
    options=ShowerGanOptions,
    networks=NETWORKS,
    metrics=WORKLOAD_METRICS,
    judgements=JUDGEMENTS,
    pictures=PICTURES,
    averaged=G,
    reads=reads,
    batches=lambda _options: 1,
    size=size,
    panels=PANELS,
    defaults={"optimizer": "rmsprop"},
    published=PUBLISHED,
    conditions=(
        Condition(ENERGY, "Energy", "GeV", *ENERGIES_GEV, 100.0, ENERGY_SCALE),
        Condition(ANGLE, "Angle", "°", *ANGLES_DEG, 90.0, math.pi / 180),
    ),
    rules=RULES,
)
