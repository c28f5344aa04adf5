"""Spectral normalization, as a layer that computes with a changed copy of its weights and
never assigns them.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.layers import Shape


@keras.saving.register_keras_serializable("gan_runtime")
class SpectralNorm(keras.layers.Layer):
    """A dense layer or convolution whose weights are divided by their largest singular value:

        y = W x / σ(W) + b,  σ(W) = vᵀ W u,  v ← W u / ‖W u‖,  u ← Wᵀ v / ‖Wᵀ v‖    (Miyato et al.
        2018, arXiv:1802.05957, algorithm 1)

    For a kernel (4, 4, 64, 128), W is (1024, 128), v (1024,) and u (128,). Each pass in training
    makes one iteration and stores u; no gradient follows u and v. `layer`: without bias and
    activation, which come after the division: `SpectralNorm(Convolution(128, 4, use_bias=False))`.
    Keras' SpectralNormalization assigns the kernel itself, which engines refuse.

    Raises:
        ValueError: the layer has a bias or an activation.
    """

    def __init__(self, layer: keras.layers.Layer, use_bias: bool = True, **own: object) -> None:
        super().__init__(**own)
        if layer.use_bias or layer.activation is not keras.activations.linear:
            raise ValueError(
                f"{self.name}: {layer.name} has a bias or an activation, but allowed is a layer"
                " with neither: give use_bias=False and no activation; the norm adds a bias of its"
                " own."
            )
        self.layer, self.use_bias = layer, use_bias

    def build(self, input_shape: Shape) -> None:
        """Bias and u: (filters,), float32."""
        if not self.layer.built:  # a saved model makes it first
            self.layer.build(input_shape)
        filters = self.layer.kernel.shape[-1]
        self.direction = self.add_weight(
            name="direction",
            shape=(filters,),
            initializer="random_normal",
            trainable=False,
            autocast=False,
        )
        self.bias = (
            self.add_weight(name="bias", shape=(filters,), initializer="zeros")
            if self.use_bias
            else None
        )

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """(B, …, filters), as of the layer."""
        kernel = ops.cast(ops.convert_to_tensor(self.layer.kernel), "float32")
        matrix = ops.reshape(kernel, (-1, kernel.shape[-1]))
        fixed = ops.stop_gradient(matrix)
        outward = _unit(ops.matmul(fixed, ops.convert_to_tensor(self.direction)))  # v
        inward = _unit(ops.matmul(outward, fixed))  # u
        if training:
            self.direction.assign(inward)
        spread = ops.sum(outward * ops.matmul(matrix, inward))  # σ
        outputs = self.layer(inputs) / ops.cast(spread, self.compute_dtype)
        return outputs if self.bias is None else outputs + self.bias

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """That of the layer."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        layer = keras.saving.serialize_keras_object(self.layer)
        return {**super().get_config(), "layer": layer, "use_bias": self.use_bias}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SpectralNorm:
        """From a saved model."""
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


def _unit(vector: Tensor) -> Tensor:
    return vector / (ops.norm(vector) + 1e-12)
