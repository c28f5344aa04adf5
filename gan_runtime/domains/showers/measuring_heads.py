"""What is measured on a shower without any weight: deposited energy and angle, float32, with a way back to the image.

Images: values (B, X, Y, Z, 1), float32, at least 0: (GeV · 50)^0.85. Inside, energies are in the unit of a cell, 20 MeV.
Source: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4; recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py, ecal_angle and ecal_sum.

The authors divide first and then choose (`where(sum == 0, 0, x / sum)`): the gradient of the branch that is not chosen is 0/0, so
one empty layer made NaN of all weights. Here what is divided by is guarded before.
"""

from __future__ import annotations

import math

from keras import ops

from gan_runtime.domains.showers.fields import POWER
from gan_runtime.workloads.contract import Tensor

EMPTY_ANGLE = 100.0  # of an image without energy, as the authors have it
# Sums up to here count as empty: 20 eV, which no layer of a detector could tell. A gradient grows as 1 / sum, so without a floor
# a layer that a network has all but emptied would drive every weight, and RMSprop would remember it for hundreds of steps.
NOTHING = 1e-6  # in 20 MeV, as in domains/showers/angle.py
LEAST_SQUARE = 1e-7  # of a distance, in cells: Keras' epsilon, as the authors have it


def energies(images: Tensor) -> Tensor:
    """value^(1/0.85): (B, X, Y, Z), in 20 MeV. Its slope at 0 is 0; what is below 0 counts as 0."""
    return ops.power(ops.maximum(ops.cast(images[..., 0], "float32"), 0.0), 1.0 / POWER)


def deposit(cells: Tensor) -> Tensor:
    """Sum over the cells (B, X, Y, Z) of each shower: (B,)."""
    return ops.sum(cells, axis=(1, 2, 3))


def measured_angle(cells: Tensor) -> Tensor:
    """Angles (B,) in rad, of cells (B, X, Y, Z); 100 for an empty shower. With places in cells, each at its middle (index + 0.5):

        m_z = ± (y_z − y_c) / √((x_z − x_c)² + (z − z_c)²),   minus where z < z_c
        angle = Σ_z z (π/2 − arctan m_z) / Σ_z z,   over the layers that hold energy

    (x_c, y_c, z_c): barycentre of the shower; (x_z, y_z): of layer z. For 51 × 51 × 25 cells: x_z, y_z, m_z (B, 25), the rest (B, 1).
    """
    layers, along_x, along_y = ops.sum(cells, axis=(1, 2)), ops.sum(cells, axis=2), ops.sum(cells, axis=1)
    total = ops.sum(layers, axis=1, keepdims=True)  # (B, 1)
    # (B, X, Z) by its places (X,) → (B, Z)
    x, y = (_quotient(_weighed(columns), layers) for columns in (along_x, along_y))
    x_center = _quotient(ops.sum(_weighed(along_x), axis=1, keepdims=True), total)
    y_center = _quotient(ops.sum(_weighed(along_y), axis=1, keepdims=True), total)
    z = _places(layers.shape[1])[None]  # (1, Z)
    z_center = _quotient(ops.sum(layers * z, axis=1, keepdims=True), total)
    distance = ops.sqrt(ops.maximum(ops.square(x - x_center) + ops.square(z - z_center), LEAST_SQUARE))
    slope = ops.where(z < z_center, -1.0, 1.0) * (y - y_center) / distance
    weight = ops.where(layers > NOTHING, z, 0.0)
    angles = _quotient(ops.sum(weight * (math.pi / 2 - ops.arctan(slope)), axis=1), ops.sum(weight, axis=1))
    return ops.where(total[:, 0] > NOTHING, angles, EMPTY_ANGLE)


def _places(count: int) -> Tensor:
    """The middles of so many cells: 0.5, 1.5, …"""
    return ops.arange(count, dtype="float32") + 0.5


def _weighed(columns: Tensor) -> Tensor:
    """Σ place · energy over a lateral axis: (B, X, Z) → (B, Z)."""
    return ops.sum(columns * _places(columns.shape[1])[None, :, None], axis=1)


def _quotient(above: Tensor, below: Tensor) -> Tensor:
    """0, with a slope of 0, where there is nothing to divide by."""
    filled = below > NOTHING
    return ops.where(filled, above / ops.where(filled, below, 1.0), 0.0)
