"""The generator and the discriminator of 3DGAN on a grid of any size, and its measuring heads.

Latents: float32 (B, 256), energy / 100 GeV, angle in rad, then standard normal numbers. Showers:
float32 (B, X, Y, Z, 1), at least 0. Source: Khattak et al. 2022,
doi:10.1140/epjc/s10052-022-10258-4; recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py.
"""

from __future__ import annotations

import math
from typing import Any

import keras
from keras import layers, ops

from gan_runtime.base.fields import Fields
from gan_runtime.domains.showers.entry import POWER, SHOWERS, ShowerGanOptions
from gan_runtime.domains.showers.entry import layers as layers_of
from gan_runtime.domains.showers.features import EMPTY_ANGLE, LEAST_SQUARE
from gan_runtime.domains.showers.layer_tables import POOL, Around, ConvolutionPlan, LayerPlan
from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import (
    BatchNorm,
    Convolution3D,
    EnlargedConvolution3D,
    ReplicaDropout,
    Shape,
    plain_layer,
)

LEAK = 0.3  # default slope of Keras' LeakyReLU
EPSILON = 1e-6  # of batch norm, as in the authors' code
NORMED = 5  # convolutions of the generator with batch norm; the last two have none
HE = "he_uniform"


def networks(options: ShowerGanOptions, fields: Fields) -> dict[str, keras.Model]:
    """Generator latents → showers; discriminator showers → [logit (B, 1), energy / 100 GeV
    (B, 1)].
    """
    plan, showers = layers_of(options, fields), fields[SHOWERS]
    return {
        "generator": _generator(plan, showers.periodic, options),
        "discriminator": _discriminator(plan, showers.periodic, showers.shape, options),
    }


def _generator(
    plan: LayerPlan, periodic: tuple[int, ...], options: ShowerGanOptions
) -> keras.Model:
    """Each convolution is followed by ReLU, and only then by batch norm.

    Shapes: of the authors' grid.
    """
    latents = keras.Input((options.latent_size,), name="latents")  # 256
    cells = (*plan.cells, plan.cell_channels)  # 9 × 9 × 8 × 8
    values = layers.Dense(math.prod(cells), name="dense")(latents)  # 5,184
    values = layers.Reshape(cells, name="cells")(values)
    first, *middle, last = plan.generator
    values = _around(values, first.around, periodic, "pad_1")
    values = EnlargedConvolution3D(
        first.filters,
        first.kernel,
        factors=plan.factors,
        activation="relu",
        kernel_initializer=HE,
        name="conv_1",
    )(values)  # of 54 × 54 × 48 × 8: 49 × 49 × 41 × 8
    if any(map(any, first.cut)):
        values = layers.Cropping3D(first.cut, name="cut_1")(values)
    values = _normed(values, 1, options)
    # 50 × 50 × 38, 51 × 51 × 35, 52 × 52 × 32, 28, 26, all × 6
    hidden = {"activation": "relu", "kernel_initializer": HE}
    for number, layer in enumerate(middle, start=2):
        values = _convolved(values, layer, periodic, number, **hidden)
        if number <= NORMED:
            values = _normed(values, number, options)
    number = len(plan.generator)  # then 51 × 51 × 25 × 1
    values = _convolved(values, last, periodic, number, kernel_initializer="glorot_normal")
    showers = layers.ReLU(dtype="float32", name="showers")(values)
    return keras.Model(latents, showers, name="generator")


def _discriminator(
    plan: LayerPlan, periodic: tuple[int, ...], shape: tuple[int, ...], options: ShowerGanOptions
) -> keras.Model:
    """The other two heads, angle and deposited energy, have no weights: they are measured on the
    shower, below.
    """
    showers = keras.Input(shape, name="showers")  # 51 × 51 × 25 × 1
    values = showers
    for number, layer in enumerate(plan.discriminator, 1):  # 51 × 51 × 25 × 16 … 39 × 36 × 14 × 8
        values = _convolved(values, layer, periodic, number)
        values = LeakyReLU(LEAK, name=f"leaky_{number}")(values)
        if number > 1:
            values = _normed(values, number, options)
        values = ReplicaDropout(options.dropout, name=f"dropout_{number}")(values)
    values = layers.AveragePooling3D(POOL, name="pool")(values)  # 19 × 18 × 7 × 8
    features = layers.Flatten(name="flatten")(values)  # 19,152
    heads = [layers.Dense(1, dtype="float32", name=name)(features) for name in ("logit", "energy")]
    return keras.Model(showers, heads, name="discriminator")


def _normed(values: Tensor, number: int, options: ShowerGanOptions) -> Tensor:
    return BatchNorm(momentum=options.norm_momentum, epsilon=EPSILON, name=f"norm_{number}")(values)


def _convolved(
    values: Tensor,
    layer: ConvolutionPlan,
    periodic: tuple[int, ...],
    number: int,
    **convolution: Any,
) -> Tensor:
    """A convolution with the padding of the plan: the convolution adds zeros, periodic cells are
    added before it.
    """
    if periodic:
        values = _around(values, layer.around, periodic, f"pad_{number}")
    zeros = () if periodic else layer.around
    return Convolution3D(
        layer.filters, layer.kernel, zeros=zeros, name=f"conv_{number}", **convolution
    )(values)


def _around(values: Tensor, around: Around, periodic: tuple[int, ...], name: str) -> Tensor:
    return PeriodicPadding(around, periodic, name=name)(values) if any(map(any, around)) else values


@keras.saving.register_keras_serializable("gan_runtime")
class LeakyReLU(layers.LeakyReLU):  # type: ignore[misc]
    """Keras' layer, by the engine's kernels, which can have another layout of volumes."""

    def call(self, inputs: Tensor) -> Tensor:
        """max(x, slope · x): same shape and dtype as `inputs`."""
        kernels = step_context.kernels()
        return (
            super().call(inputs) if kernels is None else kernels.elementwise(super().call, inputs)
        )

    def standard(self, inputs: Tensor) -> Tensor:
        """The same from Keras' layer."""
        return plain_layer(self, inputs)


@keras.saving.register_keras_serializable("gan_runtime")
class PeriodicPadding(keras.layers.Layer):
    """Pads values (B, X, Y, Z, channels) by `around` cells before and after along each axis:
    periodically along those of `periodic`, with zeros elsewhere. 16 cells with (2, 3) around: cells
    14, 15, 0, 1, …, 15, 0, 1, 2.
    """

    def __init__(self, around: Around, periodic: tuple[int, ...], **layer: object) -> None:
        super().__init__(**layer)
        self.around, self.periodic = tuple(map(tuple, around)), tuple(periodic)

    def call(self, inputs: Tensor) -> Tensor:
        """Larger by `around`."""
        zeros = [(0, 0), *self.around, (0, 0)]
        for place in self.periodic:
            axis = place + 1
            size, (before, after) = inputs.shape[axis], zeros[axis]
            order = [index % size for index in range(-before, size + after)]
            inputs, zeros[axis] = ops.take(inputs, order, axis=axis), (0, 0)
        return ops.pad(inputs, zeros) if any(map(any, zeros)) else inputs

    def standard(self, inputs: Tensor) -> Tensor:
        """The same from Keras' operations."""
        return self.call(inputs)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Larger by `around`."""
        batch, *sizes, channels = input_shape
        along = zip(sizes, self.around, strict=True)
        grown = (None if size is None else size + sum(ends) for size, ends in along)
        return (batch, *grown, channels)

    def get_config(self) -> dict[str, object]:
        """The settings, for saving the model."""
        return {**super().get_config(), "around": self.around, "periodic": self.periodic}


# ---- measuring heads -----------------------------------------------------------------------------
# Deposited energy and angle of a shower, float32, differentiable and without weights.
#
# Showers: values (B, X, Y, Z, 1), float32, at least 0: (GeV · 50)^0.85. Energies are in the unit of
# a cell, 20 MeV. Source: Khattak et al. 2022, doi:10.1140/epjc/s10052-022-10258-4;
# recardoso/ISC_HPC_3DGAN, AngleArch3dGAN.py, ecal_angle and ecal_sum.
#
# The authors divide first and then select (`where(sum == 0, 0, x / sum)`): the gradient of the
# other branch is 0/0, so one empty layer made all weights NaN. Here the denominator is guarded
# before.

# Sums up to here count as empty: 20 eV, below any detector. A gradient grows as 1 / sum, so without
# a floor a nearly empty layer would dominate every weight, and RMSprop for hundreds of steps.
NOTHING = 1e-6  # in 20 MeV, as in domains/showers/features.py


def energies(images: Tensor) -> Tensor:
    """value^(1/0.85): (B, X, Y, Z), in 20 MeV. Its slope at 0 is 0; negative values count as 0."""
    return ops.power(ops.maximum(ops.cast(images[..., 0], "float32"), 0.0), 1.0 / POWER)


def deposit(cells: Tensor) -> Tensor:
    """Sum over the cells (B, X, Y, Z) of each shower: (B,)."""
    return ops.sum(cells, axis=(1, 2, 3))


def measured_angle(cells: Tensor) -> Tensor:
    """Angles (B,) in rad, of cells (B, X, Y, Z); 100 for an empty shower.

    With places in cells (index + 0.5):

        m_z = ± (y_z − y_c) / √((x_z − x_c)² + (z − z_c)²),   minus where z < z_c
        angle = Σ_z z (π/2 − arctan m_z) / Σ_z z,   over the layers that hold energy

    (x_c, y_c, z_c): barycenter of the shower; (x_z, y_z): of layer z. For 51 × 51 × 25 cells: x_z,
    y_z, m_z (B, 25), the rest (B, 1).
    """
    layers, along_x, along_y = (
        ops.sum(cells, axis=(1, 2)),
        ops.sum(cells, axis=2),
        ops.sum(cells, axis=1),
    )
    total = ops.sum(layers, axis=1, keepdims=True)  # (B, 1)
    # (B, X, Z) by its places (X,) → (B, Z)
    x, y = (_quotient(_weighted(columns), layers) for columns in (along_x, along_y))
    x_center = _quotient(ops.sum(_weighted(along_x), axis=1, keepdims=True), total)
    y_center = _quotient(ops.sum(_weighted(along_y), axis=1, keepdims=True), total)
    z = _places(layers.shape[1])[None]  # (1, Z)
    z_center = _quotient(ops.sum(layers * z, axis=1, keepdims=True), total)
    distance = ops.sqrt(
        ops.maximum(ops.square(x - x_center) + ops.square(z - z_center), LEAST_SQUARE)
    )
    slope = ops.where(z < z_center, -1.0, 1.0) * (y - y_center) / distance
    weight = ops.where(layers > NOTHING, z, 0.0)
    angles = _quotient(
        ops.sum(weight * (math.pi / 2 - ops.arctan(slope)), axis=1), ops.sum(weight, axis=1)
    )
    return ops.where(total[:, 0] > NOTHING, angles, EMPTY_ANGLE)


def _places(count: int) -> Tensor:
    """The centers of `count` cells: 0.5, 1.5, …"""
    return ops.arange(count, dtype="float32") + 0.5


def _weighted(columns: Tensor) -> Tensor:
    """Σ place · energy over a lateral axis: (B, X, Z) → (B, Z)."""
    return ops.sum(columns * _places(columns.shape[1])[None, :, None], axis=1)


def _quotient(numerator: Tensor, denominator: Tensor) -> Tensor:
    """The quotient; 0, with a slope of 0, where the denominator is empty."""
    filled = denominator > NOTHING
    return ops.where(filled, numerator / ops.where(filled, denominator, 1.0), 0.0)
