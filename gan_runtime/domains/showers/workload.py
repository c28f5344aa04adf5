"""3DGAN: a step of four phases, D on real showers, D on generated ones, and G twice, each with an
all-reduce of its own.

Showers: values (B, X, Y, Z, 1), float32; energy / 100 GeV, angle in rad (where the data has one)
and deposited energy in 20 MeV: (B,). Generated showers have the energies and angles of the batch's
real ones, and are held against what those have deposited.
Source: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; recardoso/ISC_HPC_3DGAN,
GPU_Version2.py. See docs/3dgan.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields
from gan_runtime.domains.showers import networks as shower_networks
from gan_runtime.domains.showers.entry import ShowerGanOptions
from gan_runtime.domains.showers.fields import (
    ANGLE,
    BELIEF,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    ENERGY_SCALE,
    SHOWERS,
)
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import (
    Arrays,
    Batch,
    Forward,
    Judged,
    Networks,
    Noise,
    Phase,
    Program,
    Tensor,
    Update,
)
from gan_runtime.workloads.losses import (
    bce,
    mean_absolute_error,
    mean_percentage_error,
    probability_real,
)
from gan_runtime.workloads.pair import UNDECIDED, spread

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
LATENTS = "latents"
LEAST_ENERGY, LEAST_DEPOSIT = (
    1e-3,
    1.0,
)  # what an error in per cent is taken of at least: 0.1 GeV, and 20 MeV deposited
CONDITIONS = (ENERGY, ANGLE)  # what a latent begins with, as far as the data has it


class Shower3dgan:
    """See `contract.Workload`."""

    def networks(self, options: ShowerGanOptions, fields: Fields) -> dict[str, Any]:
        """See `shower_networks`."""
        return shower_networks.networks(options, fields)

    def program(self, options: ShowerGanOptions, fields: Fields) -> Program:  # noqa: ARG002
        """Each update sees what those before it have made of the networks, all of them the
        same batch.
        """
        on_real, on_fake = (
            Update(DISCRIMINATOR, f"loss_discriminator_{kind}") for kind in ("real", "fake")
        )
        return Program(
            (
                Phase("d_real", partial(real_phase, options), (on_real,)),
                Phase("d_fake", partial(fake_phase, options), (on_fake,)),
                *(
                    Phase(
                        f"g_{number}",
                        partial(generator_phase, options, number),
                        (_of_generator(number),),
                    )
                    for number in (1, 2)
                ),
            )
        )

    def inputs(self, options: ShowerGanOptions, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """{"latents": normal (B, 254)}, and the energies and angles of the rows."""
        return asked(options, rows, noise)

    def fixed_inputs(
        self,
        options: ShowerGanOptions,
        fields: Fields,
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Energies and angles of held-out showers, which come again where there are fewer."""
        conditions = {name: np.resize(rows[name], count) for name in CONDITIONS if name in fields}
        latents = random.standard_normal((count, options.latent_size - len(conditions))).astype(
            np.float32
        )
        return {LATENTS: latents, **conditions}

    def show(
        self,
        options: ShowerGanOptions,
        networks: Networks,
        inputs: Batch,
        noise: Noise,  # noqa: ARG002
    ) -> Mapping[str, Tensor]:
        """{"showers": values (B, X, Y, Z, 1)}, and the energies and angles that were asked for."""
        conditions = {name: inputs[name] for name in CONDITIONS if name in inputs}
        return {SHOWERS: generated(options, networks, inputs, training=False), **conditions}

    def judge(
        self, options: ShowerGanOptions, networks: Networks, rows: Batch, inputs: Batch
    ) -> Judged:
        """See `shower_scores`."""
        fake = generated(options, networks, inputs, training=False)
        logits = [
            networks[DISCRIMINATOR](showers, training=False)[0] for showers in (rows[SHOWERS], fake)
        ]
        return judged(rows, fake, *map(probability_real, logits))

    def read(
        self,
        options: ShowerGanOptions,  # noqa: ARG002
        networks: Networks,
        rows: Batch,
    ) -> Mapping[str, Tensor]:
        """D's belief that showers are real, 0 to 1, and the incident energy that it reads, in
        the unit of the field: (B,) each.
        """
        logits, energy = networks[DISCRIMINATOR](rows[SHOWERS], training=False)
        return {BELIEF: probability_real(logits), ENERGY: ops.cast(energy[:, 0], "float32")}


def real_phase(
    options: ShowerGanOptions, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D on real showers: L = 3 · BCE(real, "real", with flips) + 0.1 · MAPE(its energy, E)."""
    logits, energy = networks[DISCRIMINATOR](batch[SHOWERS], training=True)
    return _of_discriminator(
        options, "real", batch, (logits, energy), 1.0 - flips(options, batch, noise)
    )


def fake_phase(
    options: ShowerGanOptions, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D on showers that G makes by its stored batch-norm statistics: the same with "generated"."""
    fake = ops.stop_gradient(
        generated(options, networks, asked(options, batch, noise), training=False)
    )
    outputs = networks[DISCRIMINATOR](fake, training=True)
    return _of_discriminator(options, "fake", batch, outputs, flips(options, batch, noise))


def generator_phase(
    options: ShowerGanOptions, number: int, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """G, with new noise: L = 3 · BCE("real") + 0.1 · MAPE(energy that D reads) + 25 · MAE(angle) +
    0.1 · MAPE(deposit).

    D is in training mode here too (dropout, batch norm over the batch), as the authors have it.
    """
    fake = generated(
        options, networks, asked(options, batch, noise), training=True
    )  # (B, X, Y, Z, 1)
    logits, energy = networks[DISCRIMINATOR](fake, training=True)  # (B, 1) each
    cells = shower_networks.energies(fake)  # (B, X, Y, Z), 20 MeV
    surely = bce(logits, 1.0)
    energy_error = mean_percentage_error(energy[:, 0], batch[ENERGY], LEAST_ENERGY)
    deposit_error = mean_percentage_error(
        shower_networks.deposit(cells), batch[DEPOSIT], LEAST_DEPOSIT
    )
    loss = (
        options.weight_real * surely
        + options.weight_energy * energy_error
        + options.weight_deposit * deposit_error
    )
    terms = {
        "bce_generator": surely,
        "energy_error_fake": energy_error,
        "deposit_error": deposit_error,
    }
    if ANGLE in batch:
        terms["angle_error"] = mean_absolute_error(
            shower_networks.measured_angle(cells), batch[ANGLE]
        )
        loss = loss + options.weight_angle * terms["angle_error"]
    # Both updates name their terms alike, so those of the second, which a step leaves behind, are
    # recorded.
    return Forward({_of_generator(number).loss: loss}, terms)


def asked(options: ShowerGanOptions, rows: Batch, noise: Noise) -> Batch:
    """What G makes showers from: noise, and the energies and angles of the rows."""
    conditions = {name: rows[name] for name in CONDITIONS if name in rows}
    latents = noise.normal(rows[ENERGY].shape[0], options.latent_size - len(conditions))
    return {LATENTS: latents, **conditions}


def generated(
    options: ShowerGanOptions, networks: Networks, inputs: Batch, training: bool
) -> Tensor:
    """Values float32 (B, X, Y, Z, 1).

    A latent is energy, angle, noise: (B, 1), (B, 1), (B, 254) → (B, 256).
    """
    conditions = {
        name: ops.cast(inputs[name], "float32")[:, None] for name in CONDITIONS if name in inputs
    }
    if ANGLE in conditions and options.angle_gain:
        conditions[ANGLE] = options.angle_gain * (conditions[ANGLE] - math.pi / 2)
    latents = ops.concatenate([*conditions.values(), inputs[LATENTS]], axis=-1)
    return ops.cast(networks[GENERATOR](latents, training=training), "float32")


def flips(options: ShowerGanOptions, batch: Batch, noise: Noise) -> Tensor:
    """1 for the showers that D is told the opposite of, else 0: (B, 1), drawn on the device
    in each step.
    """
    drawn = noise.uniform(batch[ENERGY].shape[0], 1)
    return ops.cast(drawn < options.flip_share, "float32")


def _of_discriminator(
    options: ShowerGanOptions,
    kind: str,
    batch: Batch,
    outputs: tuple[Tensor, Tensor],
    targets: Tensor,
) -> Forward:
    """The authors add the terms of angle and deposited energy here as well.

    They have no weight to move, so they are left out.
    """
    logits, energy = outputs
    surely = bce(logits, targets)
    error = mean_percentage_error(energy[:, 0], batch[ENERGY], LEAST_ENERGY)
    loss = options.weight_real * surely + options.weight_energy * error
    scalars = {f"d_{kind}": ops.mean(probability_real(logits)), f"bce_{kind}": surely}
    if kind == "real":
        scalars["energy_error_real"] = error
    return Forward({f"loss_discriminator_{kind}": loss}, scalars)


def _of_generator(number: int) -> Update:
    return Update(GENERATOR, f"loss_generator_{number}")


WORKLOAD = Shower3dgan()


# ---- epoch scores --------------------------------------------------------------------------------
# What an epoch's look says of generated showers beside real ones of the same energies and angles,
# over the rows of all replicas.
#
# Sources: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; svalleco/3Dgan, branch
# Anglegan, analysis. Definitions: docs/3dgan.md.

# Ends of the bins of the incident energy, in units of 100 GeV: the authors' set ends at 5, the
# CaloChallenge's at 10.
ENERGY_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
EMPTY_SHARE = 0.01  # of the real deposit; below it a shower counts as empty
AXES = {
    "x": (0, 2, 3),
    "y": (0, 1, 3),
    "z": (0, 1, 2),
}  # what is summed over for the profile along each
PERCENT_A_UNIT = (
    100 * ENERGY_SCALE / CELL_UNITS
)  # deposit in 20 MeV over energy in 100 GeV, as a share in per cent


def judged(rows: Batch, fake: Tensor, score_real: Tensor, score_fake: Tensor) -> Judged:
    """`rows`: real showers with energies, deposits and perhaps angles.

    `fake`: generated beside them; scores: of D, (B,).
    """
    real = ops.cast(rows[SHOWERS], "float32")
    cells, made = shower_networks.energies(real), shower_networks.energies(fake)
    deposited = {"real": rows[DEPOSIT], "fake": shower_networks.deposit(made)}
    scores = {"real": score_real, "fake": score_fake}
    right = {"real": score_real > UNDECIDED, "fake": score_fake < UNDECIDED}
    sampled = {kind: PERCENT_A_UNIT * each / rows[ENERGY] for kind, each in deposited.items()}
    scalars = {
        **{
            f"d_accuracy_{kind}": ops.mean(ops.cast(hits, "float32"))
            for kind, hits in right.items()
        },
        **{f"probe_score_{kind}": ops.mean(score) for kind, score in scores.items()},
        **{"spread_real": spread(real), "spread_fake": spread(fake)},
        **_of_deposits(deposited["real"], deposited["fake"]),
        "sampling_fraction_error": sampling_fraction_error(
            rows[ENERGY], sampled["real"], sampled["fake"]
        ),
        **_of_profiles(cells, made),
    }
    if ANGLE in rows:
        scalars["probe_angle_error"] = mean_absolute_error(
            shower_networks.measured_angle(made), rows[ANGLE]
        )
    return Judged(
        {**scores, **{f"sampled_{kind}": values for kind, values in sampled.items()}}, scalars
    )


def sampling_fraction_error(energies: Tensor, real: Tensor, fake: Tensor) -> Tensor:
    """Mean over bins of the energy of |⟨SF_real⟩ - ⟨SF_generated⟩| / ⟨SF_real⟩, bins without a
    shower left out; scalar, 0 to infinity.

    All (B,). For 256 showers and 12 bins: `bins` (256, 12), the sums over the showers of all
    replicas (12,).
    """
    place = ops.sum(
        ops.cast(energies[:, None] >= ops.convert_to_tensor(ENERGY_ENDS), "int32"), axis=1
    )
    bins = ops.one_hot(place, len(ENERGY_ENDS) + 1, dtype="float32")
    own = ops.stack(
        [ops.sum(bins * values[:, None], axis=0) for values in (ops.ones_like(real), real, fake)]
    )
    showers, of_real, of_fake = ops.unstack(step_context.current().mean_over_replicas(own), 3)
    filled = ops.cast((showers > 0.0) & (of_real > 0.0), "float32")
    errors = ops.abs(of_real - of_fake) / ops.where(of_real > 0.0, of_real, 1.0)
    return ops.sum(errors * filled) / ops.maximum(ops.sum(filled), 1.0)


def profile_errors(cells: Tensor, made: Tensor) -> dict[str, Tensor]:
    """Along each axis Σ |S - Ŝ| / Σ S, with the summed energies S, Ŝ in each of its places over all
    showers: 0 to infinity, 1 for nothing at all. The authors take the mean over places of |S - Ŝ| /
    S, which counts the empty border as much as the core.
    """
    errors = {}
    for axis, others in AXES.items():
        own = ops.stack([ops.sum(cells, axis=others), ops.sum(made, axis=others)])
        real, fake = ops.unstack(step_context.current().mean_over_replicas(own), 2)
        errors[axis] = ops.sum(ops.abs(real - fake)) / ops.maximum(
            ops.sum(real), shower_networks.NOTHING
        )
    return errors


def _of_profiles(cells: Tensor, made: Tensor) -> Mapping[str, Tensor]:
    errors = profile_errors(cells, made)
    return {
        "profile_error": ops.mean(ops.stack(list(errors.values()))),
        **{f"profile_error_{axis}": error for axis, error in errors.items()},
    }


def _of_deposits(real: Tensor, fake: Tensor) -> Mapping[str, Tensor]:
    """Generated over real energy, all showers together; and the share of generated ones that
    are empty.
    """
    own = ops.stack([ops.mean(fake), ops.mean(real)])
    of_fake, of_real = ops.unstack(step_context.current().mean_over_replicas(own), 2)
    return {
        "energy_response": of_fake / ops.maximum(of_real, shower_networks.NOTHING),
        "empty_showers": ops.mean(ops.cast(fake <= EMPTY_SHARE * real, "float32")),
    }
