"""3DGAN: a step of four phases, D on real showers, D on generated ones, and G twice, each with an all-reduce of its own.

Showers: values (B, X, Y, Z, 1), float32; energy / 100 GeV, angle in rad (where the data has one) and deposited energy in 20 MeV: (B,).
Generated showers have the energies and angles of the batch's real ones, and are held against what those have deposited.
Source: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; recardoso/ISC_HPC_3DGAN, GPU_Version2.py. See docs/3dgan.md.
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
from gan_runtime.domains.showers import epoch_scores, measuring_heads, networks
from gan_runtime.domains.showers.entry import ShowerOptions
from gan_runtime.domains.showers.fields import ANGLE, BELIEF, DEPOSIT, ENERGY, SHOWERS
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
from gan_runtime.workloads.losses import bce, mean_absolute_error, mean_percentage_error, probability_real

GENERATOR, DISCRIMINATOR = "generator", "discriminator"
LATENTS = "latents"
LEAST_ENERGY, LEAST_DEPOSIT = (
    1e-3,
    1.0,
)  # what an error in per cent is taken of at least: 0.1 GeV, and 20 MeV deposited
CONDITIONS = (ENERGY, ANGLE)  # what a latent begins with, as far as the data has it


class Shower3dgan:
    """See `contract.Workload`."""

    def networks(self, options: ShowerOptions, fields: Fields) -> dict[str, Any]:
        """See `shower_networks`."""
        return networks.networks(options, fields)

    def program(self, options: ShowerOptions, fields: Fields) -> Program:  # noqa: ARG002
        """Each update sees what those before it have made of the networks, all of them the same batch."""
        on_real, on_fake = (Update(DISCRIMINATOR, f"loss_discriminator_{kind}") for kind in ("real", "fake"))
        return Program(
            (
                Phase("d_real", partial(real_phase, options), (on_real,)),
                Phase("d_fake", partial(fake_phase, options), (on_fake,)),
                *(
                    Phase(f"g_{number}", partial(generator_phase, options, number), (_of_generator(number),))
                    for number in (1, 2)
                ),
            )
        )

    def inputs(self, options: ShowerOptions, fields: Fields, rows: Batch, noise: Noise) -> Batch:  # noqa: ARG002
        """{"latents": normal (B, 254)}, and the energies and angles of the rows."""
        return asked(options, rows, noise)

    def fixed_inputs(
        self,
        options: ShowerOptions,
        fields: Fields,
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Energies and angles of held-out showers, which come again where there are fewer."""
        conditions = {name: np.resize(rows[name], count) for name in CONDITIONS if name in fields}
        latents = random.standard_normal((count, options.latent_size - len(conditions))).astype(np.float32)
        return {LATENTS: latents, **conditions}

    def show(
        self,
        options: ShowerOptions,
        networks: Networks,
        inputs: Batch,
        noise: Noise,  # noqa: ARG002
    ) -> Mapping[str, Tensor]:
        """{"showers": values (B, X, Y, Z, 1)}, and the energies and angles that were asked for."""
        conditions = {name: inputs[name] for name in CONDITIONS if name in inputs}
        return {SHOWERS: generated(options, networks, inputs, training=False), **conditions}

    def judge(self, options: ShowerOptions, networks: Networks, rows: Batch, inputs: Batch) -> Judged:
        """See `shower_scores`."""
        fake = generated(options, networks, inputs, training=False)
        logits = [networks[DISCRIMINATOR](showers, training=False)[0] for showers in (rows[SHOWERS], fake)]
        return epoch_scores.judged(rows, fake, *map(probability_real, logits))

    def read(self, options: ShowerOptions, networks: Networks, rows: Batch) -> Mapping[str, Tensor]:  # noqa: ARG002
        """D's belief that showers are real, 0 to 1, and the incident energy that it reads, in the unit of the field: (B,) each."""
        logits, energy = networks[DISCRIMINATOR](rows[SHOWERS], training=False)
        return {BELIEF: probability_real(logits), ENERGY: ops.cast(energy[:, 0], "float32")}


def real_phase(options: ShowerOptions, networks: Networks, batch: Batch, noise: Noise) -> Forward:
    """D on real showers: L = 3 · BCE(real, "real", with flips) + 0.1 · MAPE(its energy, E)."""
    logits, energy = networks[DISCRIMINATOR](batch[SHOWERS], training=True)
    return _of_discriminator(options, "real", batch, (logits, energy), 1.0 - flips(options, batch, noise))


def fake_phase(options: ShowerOptions, networks: Networks, batch: Batch, noise: Noise) -> Forward:
    """D on showers that G makes by its stored batch-norm statistics: the same with "generated"."""
    fake = ops.stop_gradient(generated(options, networks, asked(options, batch, noise), training=False))
    outputs = networks[DISCRIMINATOR](fake, training=True)
    return _of_discriminator(options, "fake", batch, outputs, flips(options, batch, noise))


def generator_phase(
    options: ShowerOptions, number: int, networks: Networks, batch: Batch, noise: Noise
) -> Forward:
    """G, with new noise: L = 3 · BCE("real") + 0.1 · MAPE(energy that D reads) + 25 · MAE(angle) + 0.1 · MAPE(deposit).

    D is in training mode here too (dropout, batch norm over the batch), as the authors have it.
    """
    fake = generated(options, networks, asked(options, batch, noise), training=True)  # (B, X, Y, Z, 1)
    logits, energy = networks[DISCRIMINATOR](fake, training=True)  # (B, 1) each
    cells = measuring_heads.energies(fake)  # (B, X, Y, Z), 20 MeV
    surely = bce(logits, 1.0)
    energy_error = mean_percentage_error(energy[:, 0], batch[ENERGY], LEAST_ENERGY)
    deposit_error = mean_percentage_error(measuring_heads.deposit(cells), batch[DEPOSIT], LEAST_DEPOSIT)
    loss = (
        options.weight_real * surely
        + options.weight_energy * energy_error
        + options.weight_deposit * deposit_error
    )
    terms = {"bce_generator": surely, "energy_error_fake": energy_error, "deposit_error": deposit_error}
    if ANGLE in batch:
        terms["angle_error"] = mean_absolute_error(measuring_heads.measured_angle(cells), batch[ANGLE])
        loss = loss + options.weight_angle * terms["angle_error"]
    # Both updates name their terms alike, so those of the second, which a step leaves behind, are recorded.
    return Forward({_of_generator(number).loss: loss}, terms)


def asked(options: ShowerOptions, rows: Batch, noise: Noise) -> Batch:
    """What G makes showers from: noise, and the energies and angles of the rows."""
    conditions = {name: rows[name] for name in CONDITIONS if name in rows}
    latents = noise.normal(rows[ENERGY].shape[0], options.latent_size - len(conditions))
    return {LATENTS: latents, **conditions}


def generated(options: ShowerOptions, networks: Networks, inputs: Batch, training: bool) -> Tensor:
    """Values float32 (B, X, Y, Z, 1). A latent is energy, angle, noise: (B, 1), (B, 1), (B, 254) → (B, 256)."""
    conditions = {name: ops.cast(inputs[name], "float32")[:, None] for name in CONDITIONS if name in inputs}
    if ANGLE in conditions and options.angle_gain:
        conditions[ANGLE] = options.angle_gain * (conditions[ANGLE] - math.pi / 2)
    latents = ops.concatenate([*conditions.values(), inputs[LATENTS]], axis=-1)
    return ops.cast(networks[GENERATOR](latents, training=training), "float32")


def flips(options: ShowerOptions, batch: Batch, noise: Noise) -> Tensor:
    """1 for the showers that D is told the opposite of, else 0: (B, 1), drawn on the device in each step."""
    drawn = noise.uniform(batch[ENERGY].shape[0], 1)
    return ops.cast(drawn < options.flip_share, "float32")


def _of_discriminator(
    options: ShowerOptions, kind: str, batch: Batch, outputs: tuple[Tensor, Tensor], targets: Tensor
) -> Forward:
    """The authors add the terms of angle and deposited energy here as well. They have no weight to move, so they are left out."""
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
