"""UpSampling and convolution as one layer, which an engine computes where the values are still
small (engines/taps.py).

The outcome is that of Keras' `UpSampling` (nearest) by `factors`, followed by a "valid" convolution
with stride 1; weights are those of the convolution, under its names. Outside a step both are
computed as they stand here.
"""

from __future__ import annotations

import keras
from keras import ops

from gan_runtime.workloads import layers
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import Shape


class _Enlarged(keras.layers.Layer):
    """Stands before one of our convolutions in a class's bases.

    `factors`: how many times each cell is repeated along each axis.

    Raises:
        ValueError: factors that are not one whole number from 1 for each axis; strides, or a
            padding other than "valid".
    """

    def __init__(self, *given: object, factors: tuple[int, ...], **named: object) -> None:
        super().__init__(*given, **named)
        self.factors = tuple(factors)
        if len(self.factors) != self.rank or min(self.factors) < 1:
            raise ValueError(
                f"{self.name}: factors are {self.factors}, but allowed are whole numbers from 1,"
                f" one for each of {self.rank} axes."
            )
        if max(self.strides) > 1 or self.padding != "valid" or self.zeros:
            raise ValueError(
                f"{self.name}: strides are {self.strides}, padding is {self.padding!r} and zeros"
                f" are {self.zeros}, but allowed are 1, 'valid' and none: take UpSampling and a"
                " convolution."
            )

    def call(self, inputs: Tensor) -> Tensor:
        """(B, …, filters); along each axis size · factor - kernel + 1."""
        kernels = self._kernels
        if kernels is None:
            for axis, factor in enumerate(self.factors, start=1):
                inputs = ops.repeat(inputs, factor, axis)
            return super().call(inputs)
        kernel = ops.convert_to_tensor(self.kernel)
        return self._finished(kernels.enlarged_convolution(inputs, kernel, self.factors), kernels)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """That of the convolution of the enlarged values."""
        batch, *sizes, channels = input_shape
        along = zip(sizes, self.factors, strict=True)
        enlarged = (None if size is None else size * factor for size, factor in along)
        return super().compute_output_shape((batch, *enlarged, channels))

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        return {**super().get_config(), "factors": self.factors}


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution(_Enlarged, layers.Convolution):
    """UpSampling2D and Conv2D: images."""


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution1D(_Enlarged, layers.Convolution1D):
    """UpSampling1D and Conv1D: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class EnlargedConvolution3D(_Enlarged, layers.Convolution3D):
    """UpSampling3D and Conv3D: volumes."""
