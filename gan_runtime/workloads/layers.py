"""Keras layers that use what the engine offers during a step (see step_context) and are plain Keras layers otherwise."""

from __future__ import annotations

import keras
from keras import ops

from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Tensor


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution(keras.layers.Conv2D):
    """Conv2D with padding "same" and equal strides."""

    def convolution_op(self, inputs: Tensor, kernel: Tensor) -> Tensor:
        """The part that Keras' layer leaves to its subclasses; bias and activation follow in the layer."""
        kernels = step_context.kernels()
        if kernels is None:
            return super().convolution_op(inputs, kernel)
        return kernels.convolution(inputs, ops.convert_to_tensor(kernel), self.strides[0])


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution(keras.layers.Conv2DTranspose):
    """Conv2DTranspose with padding "same", equal strides, no bias and no activation."""

    def call(self, inputs: Tensor) -> Tensor:
        """(B, height · stride, width · stride, filters)."""
        kernels = step_context.kernels()
        if kernels is None:
            return super().call(inputs)
        return kernels.transposed_convolution(inputs, ops.convert_to_tensor(self.kernel), self.strides[0])


@keras.saving.register_keras_serializable("gan_runtime")
class BatchNorm(keras.layers.BatchNormalization):
    """BatchNormalization over the last axis; the engine decides whether over one replica or all of them."""

    def call(self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None) -> Tensor:
        """Same shape and dtype as `inputs`. Training moves the stored statistics."""
        kernels = step_context.kernels()
        if not training or kernels is None:
            return super().call(inputs, training=training, mask=mask)
        outputs, mean, variance = kernels.batch_norm(inputs, self.gamma, self.beta, self.epsilon)
        for stored, fresh in ((self.moving_mean, mean), (self.moving_variance, variance)):
            stored.assign(stored * self.momentum + fresh * (1.0 - self.momentum))
        return outputs


@keras.saving.register_keras_serializable("gan_runtime")
class ReplicaDropout(keras.layers.Layer):
    """Dropout whose mask differs between steps and replicas. Identity outside training.

    Raises:
        LookupError: called in training outside a step.
    """

    def __init__(self, rate: float, **layer: object) -> None:
        super().__init__(**layer)
        self.rate = rate

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Same shape and dtype as `inputs`."""
        return step_context.current().noise.dropout(inputs, self.rate) if training else inputs

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        return {**super().get_config(), "rate": self.rate}
