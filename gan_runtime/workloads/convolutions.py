"""Keras convolutions that use the engine's kernels within a step and are plain Keras otherwise.

Values are (B, …, channels): series (B, length, channels), images (B, height, width, channels),
volumes (B, depth, height, width, channels). Settings that the kernels do not cover (dilation,
groups, causal or output padding) always use Keras. Settings that engines would silently ignore are
refused: channels first, and regularizers, since a step follows only the losses of its phase.
"""

from __future__ import annotations

from operator import add
from typing import Any

import keras
from keras import ops

from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Tensor

Shape = tuple[int | None, ...]
Zeros = tuple[tuple[int, int], ...]

_TERM = "no step adds a layer's own losses; add the term to the loss of its phase"
# Settings that engines ignore: the only value allowed, and what to do.
_ONLY: dict[str, tuple[object, str]] = {
    "data_format": (
        "channels_last",
        "values are (B, …, channels); use data_format='channels_last'",
    ),
    "axis": (
        -1,
        "values are (B, …, channels), and each channel has its own statistics; leave axis out",
    ),
    "synchronized": (
        False,
        "the run's option batch_norm says whether replicas share their statistics; leave it out",
    ),
    "renorm": (False, "no engine has it; leave it out"),
    **dict.fromkeys(
        ("kernel_regularizer", "bias_regularizer", "activity_regularizer"), (None, _TERM)
    ),
    **dict.fromkeys(("gamma_regularizer", "beta_regularizer"), (None, _TERM)),
}


def refuse_ignored_settings(layer: keras.layers.Layer) -> None:
    """Raises ValueError for a setting that engines would ignore."""
    for name, (allowed, advice) in _ONLY.items():
        value = getattr(layer, name, allowed)
        if value != allowed:
            text = repr(value) if isinstance(value, str | int) else type(value).__name__
            raise ValueError(
                f"{layer.name}: {name} is {text}, but allowed is {allowed!r}: {advice}."
            )


def plain_layer(layer: keras.layers.Layer, inputs: Tensor, *own: str, **changes: Any) -> Tensor:
    """The outputs of the plain Keras layer from which `layer` derives, with the same weights.

    `own`: settings that only `layer` has, which are dropped; `changes`: settings to replace, such
    as a name.
    """
    kind: Any = next(kind for kind in type(layer).__mro__ if kind.__module__.startswith("keras."))
    config = {name: value for name, value in layer.get_config().items() if name not in own}
    twin = kind.from_config({**config, **changes})
    outputs = twin(inputs)
    twin.set_weights(layer.get_weights())
    return outputs


def _of_rank(name: str, rank: int) -> type[keras.layers.Layer]:
    kind: type[keras.layers.Layer] = getattr(keras.layers, f"{name}{rank}D")
    return kind


class _EngineConvolution(keras.layers.Layer):
    """Mixin, inherited before one of Keras' convolutions."""

    def __init__(self, *args: object, **settings: object) -> None:
        super().__init__(*args, **settings)
        refuse_ignored_settings(self)

    @property
    def _kernels(self) -> step_context.LayerKernels | None:
        """The engine's kernels; None if they do not cover this layer."""
        is_uncovered = (
            max(self.dilation_rate) > 1
            or getattr(self, "groups", 1) > 1
            or getattr(self, "output_padding", None) is not None
            or self.padding not in {"same", "valid"}
        )
        return None if is_uncovered else step_context.kernels()

    def _finished(self, values: Tensor, kernels: step_context.LayerKernels) -> Tensor:
        """Adds the bias and applies the activation."""
        if self.use_bias:
            values = kernels.elementwise(add, values, ops.convert_to_tensor(self.bias))
        if self.activation is None:
            return values
        # Other activations, such as a softmax, can read all channels of a cell.
        if self.activation is keras.activations.relu:
            return kernels.elementwise(self.activation, values)
        return self.activation(values)


class _Convolution(_EngineConvolution):
    """A convolution with optional zero padding. `zeros`: numbers of zeros (before, after) along
    each axis, for padding "valid".

    Raises:
        ValueError: `zeros` is not one pair of whole numbers from 0 for each axis, or another
            padding is set too.
    """

    def __init__(self, *args: object, zeros: Zeros = (), **settings: object) -> None:
        super().__init__(*args, **settings)
        self.zeros = tuple((before, after) for before, after in zeros)
        if zeros and (
            len(zeros) != self.rank or min(map(min, zeros)) < 0 or self.padding != "valid"
        ):
            raise ValueError(
                f"{self.name}: zeros are {self.zeros} and padding is {self.padding!r}, but allowed"
                f" are 'valid' and {self.rank} pairs of whole numbers from 0: use either zeros or"
                " another padding."
            )

    def call(self, inputs: Tensor) -> Tensor:
        """Values (B, …, filters). With padding "same", each axis has size / stride cells, rounded
        up.
        """
        kernels = self._kernels
        if kernels is None:
            padded = ops.pad(inputs, [(0, 0), *self.zeros, (0, 0)]) if self.zeros else inputs
            return super().call(padded)
        kernel, padding = ops.convert_to_tensor(self.kernel), self.zeros or self.padding
        return self._finished(kernels.convolution(inputs, kernel, self.strides, padding), kernels)

    def standard(self, inputs: Tensor) -> Tensor:
        """The same from Keras' padding and convolution."""
        if self.zeros:
            around = self.zeros[0] if self.rank == 1 else self.zeros
            inputs = _of_rank("ZeroPadding", self.rank)(around, name=f"{self.name}_zeros")(inputs)
        return plain_layer(self, inputs, "zeros", "factors")

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The output shape for the padded values."""
        batch, *sizes, channels = input_shape
        along = zip(sizes, self.zeros or ((0, 0),) * self.rank, strict=True)
        padded = (None if size is None else size + sum(ends) for size, ends in along)
        return super().compute_output_shape((batch, *padded, channels))

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "zeros": self.zeros}


class _TransposedConvolution(_EngineConvolution):
    def call(self, inputs: Tensor) -> Tensor:
        """Values (B, …, filters). With padding "same", each axis has size · stride cells."""
        kernels = self._kernels
        if kernels is None:
            return super().call(inputs)
        kernel = ops.convert_to_tensor(self.kernel)
        return self._finished(
            kernels.transposed_convolution(inputs, kernel, self.strides, self.padding), kernels
        )

    def standard(self, inputs: Tensor) -> Tensor:
        """By Keras' layer."""
        return plain_layer(self, inputs)


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution(_Convolution, keras.layers.Conv2D):
    """Conv2D: images."""


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution1D(_Convolution, keras.layers.Conv1D):
    """Conv1D: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution3D(_Convolution, keras.layers.Conv3D):
    """Conv3D: volumes."""


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution(_TransposedConvolution, keras.layers.Conv2DTranspose):
    """Conv2DTranspose: images."""


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution1D(_TransposedConvolution, keras.layers.Conv1DTranspose):
    """Conv1DTranspose: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution3D(_TransposedConvolution, keras.layers.Conv3DTranspose):
    """Conv3DTranspose: volumes."""


class _Enlarged(keras.layers.Layer):
    """Nearest-neighbor UpSampling by `factors` and a "valid" convolution with stride 1, as one
    layer.

    An engine computes the layer from the small values (engines/convolutions.py). The weights are
    those of the convolution. Mixin, inherited before a convolution.

    Raises:
        ValueError: `factors` is not one whole number from 1 for each axis, or strides, zeros, or a
            padding other than "valid" are set.
    """

    def __init__(self, *args: object, factors: tuple[int, ...], **settings: object) -> None:
        super().__init__(*args, **settings)
        self.factors = tuple(factors)
        if len(self.factors) != self.rank or min(self.factors) < 1:
            raise ValueError(
                f"{self.name}: factors are {self.factors}, but allowed are whole numbers from 1,"
                f" one for each of {self.rank} axes."
            )
        if max(self.strides) > 1 or self.padding != "valid" or self.zeros:
            raise ValueError(
                f"{self.name}: strides are {self.strides}, padding is {self.padding!r} and zeros"
                f" are {self.zeros}, but allowed are 1, 'valid' and (): use UpSampling and a"
                " convolution."
            )

    def call(self, inputs: Tensor) -> Tensor:
        """Values (B, …, filters); each axis has size · factor - kernel + 1 cells."""
        kernels = self._kernels
        if kernels is None:
            for axis, factor in enumerate(self.factors, start=1):
                inputs = ops.repeat(inputs, factor, axis)
            return super().call(inputs)
        kernel = ops.convert_to_tensor(self.kernel)
        return self._finished(kernels.enlarged_convolution(inputs, kernel, self.factors), kernels)

    def standard(self, inputs: Tensor) -> Tensor:
        """The same from Keras' UpSampling and convolution."""
        factors = self.factors[0] if self.rank == 1 else self.factors
        name = f"{self.name}_enlarged"
        return super().standard(_of_rank("UpSampling", self.rank)(factors, name=name)(inputs))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The output shape for the enlarged values."""
        batch, *sizes, channels = input_shape
        along = zip(sizes, self.factors, strict=True)
        enlarged = (None if size is None else size * factor for size, factor in along)
        return super().compute_output_shape((batch, *enlarged, channels))

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "factors": self.factors}


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution(_Enlarged, Convolution):
    """UpSampling2D and Conv2D: images."""


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution1D(_Enlarged, Convolution1D):
    """UpSampling1D and Conv1D: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution3D(_Enlarged, Convolution3D):
    """UpSampling3D and Conv3D: volumes."""
