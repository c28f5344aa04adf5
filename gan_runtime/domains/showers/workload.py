"""3DGAN: a step of four phases, D on simulated showers, D on generated showers, and G twice, each
with a separate all-reduce.

Showers: values (B, X, Y, Z, 1), float32; energy / 100 GeV, angle in rad (if the data has it) and
deposited energy in 20 MeV: (B,). Generated showers have the energies and angles of the batch's
simulated ones, and their deposits as targets.
Source: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; recardoso/ISC_HPC_3DGAN,
GPU_Version2.py.
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
from gan_runtime.domains.showers.entry import (
    ANGLE,
    BELIEF,
    CELL_UNITS,
    DEPOSIT,
    ENERGY,
    ENERGY_SCALE,
    SHOWERS,
    ShowerGanOptions,
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
# Least denominators of errors in percent: 0.1 GeV, and 20 MeV deposited.
LEAST_ENERGY, LEAST_DEPOSIT = 1e-3, 1.0
CONDITIONS = (ENERGY, ANGLE)  # at the begin of a latent, if the data has them


class Shower3dgan:
    """Implements `contract.Workload` and `contract.Reads`."""

    def networks(self, options: ShowerGanOptions, fields: Fields) -> dict[str, Any]:
        """Generator and discriminator."""
        return shower_networks.networks(options, fields)

    def program(self, options: ShowerGanOptions, fields: Fields) -> Program:  # noqa: ARG002
        """Four updates in turn, all on one batch."""
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
        return generator_inputs(options, rows, noise)

    def fixed_inputs(
        self,
        options: ShowerGanOptions,
        fields: Fields,
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Energies and angles of held-out showers, repeated if there are fewer."""
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
        """{"showers": values (B, X, Y, Z, 1)}, and the requested energies and angles."""
        conditions = {name: inputs[name] for name in CONDITIONS if name in inputs}
        return {SHOWERS: generated(options, networks, inputs, training=False), **conditions}

    def judge(
        self, options: ShowerGanOptions, networks: Networks, rows: Batch, inputs: Batch
    ) -> Judged:
        """D's scores, and the numbers of an epoch."""
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
        """D's probability that showers are simulated, and the incident energy that it reads, in the
        unit of the field: (B,) each.
        """
        logits, energy = networks[DISCRIMINATOR](rows[SHOWERS], training=False)
        return {BELIEF: probability_real(logits), ENERGY: ops.cast(energy[:, 0], "float32")}


def real_phase(
    options: ShowerGanOptions, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D on simulated showers: L = 3 · BCE(D, 1, with flips) + 0.1 · MAPE(its energy, E)."""
    logits, energy = networks[DISCRIMINATOR](batch[SHOWERS], training=True)
    return _of_discriminator(
        options, "real", batch, (logits, energy), 1.0 - flips(options, batch, noise)
    )


def fake_phase(
    options: ShowerGanOptions, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """D on showers that G generates with its stored batch-norm statistics, with label 0."""
    fake = ops.stop_gradient(
        generated(options, networks, generator_inputs(options, batch, noise), training=False)
    )
    outputs = networks[DISCRIMINATOR](fake, training=True)
    return _of_discriminator(options, "fake", batch, outputs, flips(options, batch, noise))


def generator_phase(
    options: ShowerGanOptions, number: int, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """G, with new noise: L = 3 · BCE(D, 1) + 0.1 · MAPE(energy that D reads) + 25 · MAE(angle) +
    0.1 · MAPE(deposit).

    D is in training mode here too (dropout, batch norm over the batch), as in the authors' code.
    """
    inputs = generator_inputs(options, batch, noise)
    fake = generated(options, networks, inputs, training=True)  # (B, X, Y, Z, 1)
    logits, energy = networks[DISCRIMINATOR](fake, training=True)  # (B, 1) each
    cells = shower_networks.energies(fake)  # (B, X, Y, Z), 20 MeV
    cross_entropy = bce(logits, 1.0)
    energy_error = mean_percentage_error(energy[:, 0], batch[ENERGY], LEAST_ENERGY)
    deposit_error = mean_percentage_error(
        shower_networks.deposit(cells), batch[DEPOSIT], LEAST_DEPOSIT
    )
    loss = (
        options.weight_real * cross_entropy
        + options.weight_energy * energy_error
        + options.weight_deposit * deposit_error
    )
    terms = {
        "bce_generator": cross_entropy,
        "energy_error_fake": energy_error,
        "deposit_error": deposit_error,
    }
    if ANGLE in batch:
        terms["angle_error"] = mean_absolute_error(
            shower_networks.measured_angle(cells), batch[ANGLE]
        )
        loss = loss + options.weight_angle * terms["angle_error"]
    # Terms of both updates have the same names, so the terms of the second update are recorded.
    return Forward({_of_generator(number).loss: loss}, terms)


def generator_inputs(options: ShowerGanOptions, rows: Batch, noise: Noise) -> Batch:
    """Noise, and the energies and angles of the rows."""
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
    """(B, 1): 1 for showers with an inverted label, else 0; drawn on the device in each step."""
    draws = noise.uniform(batch[ENERGY].shape[0], 1)
    return ops.cast(draws < options.flip_share, "float32")


def _of_discriminator(
    options: ShowerGanOptions,
    kind: str,
    batch: Batch,
    outputs: tuple[Tensor, Tensor],
    targets: Tensor,
) -> Forward:
    """The loss of D without the authors' terms for angle and deposited energy, which have no
    gradient here.
    """
    logits, energy = outputs
    cross_entropy = bce(logits, targets)
    error = mean_percentage_error(energy[:, 0], batch[ENERGY], LEAST_ENERGY)
    loss = options.weight_real * cross_entropy + options.weight_energy * error
    scalars = {f"d_{kind}": ops.mean(probability_real(logits)), f"bce_{kind}": cross_entropy}
    if kind == "real":
        scalars["energy_error_real"] = error
    return Forward({f"loss_discriminator_{kind}": loss}, scalars)


def _of_generator(number: int) -> Update:
    return Update(GENERATOR, f"loss_generator_{number}")


WORKLOAD = Shower3dgan()


# ---- epoch scores --------------------------------------------------------------------------------
# Numbers of an epoch: generated showers against simulated ones of the same energies and angles,
# over the rows of all replicas.
#
# Sources: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; svalleco/3Dgan, branch
# Anglegan, analysis. Definitions: docs/3dgan.md.

# Ends of the bins of the incident energy, in units of 100 GeV: the authors' data set ends at 5, the
# CaloChallenge's at 10.
ENERGY_ENDS = (0.05, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 10.0)
EMPTY_SHARE = 0.01  # of the simulated deposit; below it a shower counts as empty
AXES = {"x": (0, 2, 3), "y": (0, 1, 3), "z": (0, 1, 2)}  # to sum over for the profile along each
PERCENT_A_UNIT = 100 * ENERGY_SCALE / CELL_UNITS  # deposit in 20 MeV over energy in 100 GeV, in %


def judged(rows: Batch, fake: Tensor, score_real: Tensor, score_fake: Tensor) -> Judged:
    """`rows`: simulated showers with energies, deposits and possibly angles; `fake`: generated
    ones; scores: of D, (B,).
    """
    real = ops.cast(rows[SHOWERS], "float32")
    cells, fake_cells = shower_networks.energies(real), shower_networks.energies(fake)
    deposited = {"real": rows[DEPOSIT], "fake": shower_networks.deposit(fake_cells)}
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
        **_of_profiles(cells, fake_cells),
    }
    if ANGLE in rows:
        scalars["probe_angle_error"] = mean_absolute_error(
            shower_networks.measured_angle(fake_cells), rows[ANGLE]
        )
    return Judged(
        {**scores, **{f"sampled_{kind}": values for kind, values in sampled.items()}}, scalars
    )


def sampling_fraction_error(energies: Tensor, real: Tensor, fake: Tensor) -> Tensor:
    """Mean over non-empty bins of the energy of |⟨SF⟩ - ⟨SF_generated⟩| / ⟨SF⟩; scalar, 0 to
    infinity.

    All (B,). For 256 showers and 12 bins: `bins` (256, 12), the sums over the showers of all
    replicas (12,).
    """
    place = ops.sum(
        ops.cast(energies[:, None] >= ops.convert_to_tensor(ENERGY_ENDS), "int32"), axis=1
    )
    bins = ops.one_hot(place, len(ENERGY_ENDS) + 1, dtype="float32")
    means = ops.stack(
        [ops.sum(bins * values[:, None], axis=0) for values in (ops.ones_like(real), real, fake)]
    )
    showers, of_real, of_fake = ops.unstack(step_context.current().mean_over_replicas(means), 3)
    filled = ops.cast((showers > 0.0) & (of_real > 0.0), "float32")
    errors = ops.abs(of_real - of_fake) / ops.where(of_real > 0.0, of_real, 1.0)
    return ops.sum(errors * filled) / ops.maximum(ops.sum(filled), 1.0)


def profile_errors(cells: Tensor, fake_cells: Tensor) -> dict[str, Tensor]:
    """Along each axis Σ |S - Ŝ| / Σ S, with the summed energies S, Ŝ in each place over all
    showers: 0 to infinity, 1 for empty showers. The authors' mean over places of |S - Ŝ| / S counts
    the empty border as much as the core.
    """
    errors = {}
    for axis, summed_axes in AXES.items():
        profiles = ops.stack(
            [ops.sum(cells, axis=summed_axes), ops.sum(fake_cells, axis=summed_axes)]
        )
        real, fake = ops.unstack(step_context.current().mean_over_replicas(profiles), 2)
        errors[axis] = ops.sum(ops.abs(real - fake)) / ops.maximum(
            ops.sum(real), shower_networks.NOTHING
        )
    return errors


def _of_profiles(cells: Tensor, fake_cells: Tensor) -> Mapping[str, Tensor]:
    errors = profile_errors(cells, fake_cells)
    return {
        "profile_error": ops.mean(ops.stack(list(errors.values()))),
        **{f"profile_error_{axis}": error for axis, error in errors.items()},
    }


def _of_deposits(real: Tensor, fake: Tensor) -> Mapping[str, Tensor]:
    """The ratio of generated to simulated energy over all showers, and the share of empty generated
    showers.
    """
    means = ops.stack([ops.mean(fake), ops.mean(real)])
    of_fake, of_real = ops.unstack(step_context.current().mean_over_replicas(means), 2)
    return {
        "energy_response": of_fake / ops.maximum(of_real, shower_networks.NOTHING),
        "empty_showers": ops.mean(ops.cast(fake <= EMPTY_SHARE * real, "float32")),
    }
