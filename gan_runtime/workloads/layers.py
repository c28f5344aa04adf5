"""The layers for workloads: convolutions, batch norm, spectral norm and dropout.

Within a step they use the engine's kernels and noise (step_context); otherwise they are plain Keras
layers.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Tensor
from gan_runtime.workloads.convolutions import (
    Convolution,
    Convolution1D,
    Convolution3D,
    EnlargedConvolution,
    EnlargedConvolution1D,
    EnlargedConvolution3D,
    Shape,
    TransposedConvolution,
    TransposedConvolution1D,
    TransposedConvolution3D,
    plain_layer,
    refuse_ignored_settings,
)

__all__ = [
    "DROPOUT_LEVELS",
    "BatchNorm",
    "ConditionalBatchNorm",
    "Convolution",
    "Convolution1D",
    "Convolution3D",
    "EnlargedConvolution",
    "EnlargedConvolution1D",
    "EnlargedConvolution3D",
    "ReplicaDropout",
    "Shape",
    "SpectralNorm",
    "TransposedConvolution",
    "TransposedConvolution1D",
    "TransposedConvolution3D",
    "plain_layer",
    "standard_network",
]


@keras.saving.register_keras_serializable("gan_runtime")
class BatchNorm(keras.layers.BatchNormalization):
    """BatchNormalization of (B, …, channels) over all axes but the last. The engine decides whether
    the statistics cover one replica or all.

        y = gamma · (x - mean) / √(variance + epsilon) + beta    (Ioffe and Szegedy 2015,
        arXiv:1502.03167, algorithm 1)

    For x (32, 14, 14, 128), mean and biased variance are over 32 · 14 · 14 numbers each, and all
    four vectors are (128,). Training moves the stored statistics by stored ← momentum · stored + (1
    - momentum) · batch; inference and a frozen layer (trainable=False) normalize by them.
    """

    def __init__(self, **settings: object) -> None:
        super().__init__(**settings)
        refuse_ignored_settings(self)

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Same shape and dtype as `inputs`.

        Raises:
            ValueError: a mask is given within a step.
        """
        kernels = step_context.kernels()
        if kernels is None:
            return super().call(inputs, training=training, mask=mask)
        gamma = ops.ones(inputs.shape[-1]) if self.gamma is None else self.gamma
        beta = ops.zeros(inputs.shape[-1]) if self.beta is None else self.beta
        if not training or not self.trainable:
            scale = gamma * ops.rsqrt(self.moving_variance + self.epsilon)
            return kernels.elementwise(_scaled, inputs, scale, beta - self.moving_mean * scale)
        if mask is not None:
            raise ValueError(
                f"{self.name}: engines normalize all values and take no mask: leave it out."
            )
        outputs, mean, variance = kernels.batch_norm(inputs, gamma, beta, self.epsilon)
        for stored, fresh in ((self.moving_mean, mean), (self.moving_variance, variance)):
            stored.assign(stored * self.momentum + fresh * (1.0 - self.momentum))
        return outputs

    def standard(self, inputs: Tensor) -> Tensor:
        """By Keras' layer."""
        return plain_layer(self, inputs)


def _scaled(values: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
    return ops.cast(ops.cast(values, "float32") * scale + offset, values.dtype)


@keras.saving.register_keras_serializable("gan_runtime")
class ConditionalBatchNorm(keras.layers.Layer):
    """Batch norm with a scale and an offset for each class:

        z = gamma[y] · (x - mean) / √(variance + epsilon) + beta[y]    (Dumoulin et al. 2017,
        arXiv:1610.07629, eq. 5)

    For x (32, 8, 8, 256) and 10 classes, gamma and beta are (10, 256); gamma[y] and beta[y] for the
    labels y (32,) are (32, 256), reshaped to (32, 1, 1, 256). Called with [values (B, …, channels),
    labels (B,)]: `ConditionalBatchNorm(len(fields["labels"].classes))([values, labels])`. The
    statistics are over all rows, as in `BatchNorm`. Labels are from 0 to classes - 1; any other
    label gives 0. For GANs: Miyato and Koyama 2018, arXiv:1802.05637, section 6.

    Raises:
        ValueError: there is no class, or labels are not one number per row.
    """

    def __init__(
        self, classes: int, momentum: float = 0.99, epsilon: float = 1e-3, **settings: object
    ) -> None:
        super().__init__(**settings)
        if classes < 1:
            raise ValueError(
                f"{self.name}: classes is {classes}, but allowed is 1 or more: use BatchNorm"
                " without labels."
            )
        self.classes = classes
        self.norm = BatchNorm(
            momentum=momentum,
            epsilon=epsilon,
            center=False,
            scale=False,
            dtype=self.dtype_policy,
            name="norm",
        )
        refuse_ignored_settings(self)

    def build(self, input_shape: tuple[Shape, Shape]) -> None:
        """Creates gamma and beta: float32 (classes, channels)."""
        values, labels = input_shape
        if len(labels) != 1:
            raise ValueError(
                f"{self.name}: labels have the shape {tuple(labels)}, but allowed is (B,): use one"
                " number per row."
            )
        of_classes = {"shape": (self.classes, values[-1]), "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **of_classes)
        self.beta = self.add_weight(name="beta", initializer="zeros", **of_classes)
        self.norm.build(values)

    def call(self, inputs: tuple[Tensor, Tensor], training: bool | None = None) -> Tensor:
        """Same shape and dtype as the values."""
        values, labels = inputs
        # A product, not a lookup: its gradient is a dense array, which any engine can exchange.
        one_hot = ops.one_hot(labels, self.classes, dtype="float32")  # (B, classes)
        by_row = (-1, *(1,) * (len(values.shape) - 2), values.shape[-1])
        gamma, beta = (
            ops.cast(ops.reshape(ops.matmul(one_hot, table), by_row), self.compute_dtype)
            for table in (self.gamma, self.beta)
        )
        return self.norm(values, training=training) * gamma + beta

    def standard(self, inputs: tuple[Tensor, Tensor]) -> Tensor:
        """The same from Keras' batch norm, and one embedding of the labels each for
        gamma and beta.
        """
        values, labels = inputs
        by_row = (*(1,) * (len(values.shape) - 2), values.shape[-1])
        values = plain_layer(self.norm, values, name=f"{self.name}_norm")
        for name, table, joined in (
            ("gamma", self.gamma, keras.layers.Multiply),
            ("beta", self.beta, keras.layers.Add),
        ):
            rows = keras.layers.Embedding(*table.shape, name=f"{self.name}_{name}")
            of_labels = keras.layers.Reshape(by_row, name=f"{self.name}_{name}_rows")(rows(labels))
            rows.set_weights([table])
            values = joined(name=f"{self.name}_with_{name}")([values, of_labels])
        return values

    def compute_output_shape(self, input_shape: tuple[Shape, Shape]) -> Shape:
        """The shape of the values."""
        return input_shape[0]

    def get_config(self) -> dict[str, object]:
        config = {
            "classes": self.classes,
            "momentum": self.norm.momentum,
            "epsilon": self.norm.epsilon,
        }
        return {**super().get_config(), **config}


@keras.saving.register_keras_serializable("gan_runtime")
class SpectralNorm(keras.layers.Layer):
    """A dense layer or convolution whose weights are divided by their largest singular value:

        y = W x / σ(W) + b,  σ(W) = vᵀ W u,  v ← W u / ‖W u‖,  u ← Wᵀ v / ‖Wᵀ v‖    (Miyato et al.
        2018, arXiv:1802.05957, algorithm 1)

    For a kernel (4, 4, 64, 128), W is (1024, 128), v (1024,) and u (128,). Each training pass makes
    one power iteration and stores u; no gradient passes through u and v. `layer` must have no bias
    and no activation, since these come after the division: `SpectralNorm(Convolution(128, 4,
    use_bias=False))`. Keras' SpectralNormalization assigns the kernel itself, which engines refuse.

    Raises:
        ValueError: the layer has a bias or an activation.
    """

    def __init__(
        self, layer: keras.layers.Layer, use_bias: bool = True, **settings: object
    ) -> None:
        super().__init__(**settings)
        if layer.use_bias or layer.activation is not keras.activations.linear:
            raise ValueError(
                f"{self.name}: {layer.name} has a bias or an activation: use a layer with"
                " use_bias=False and no activation; the norm adds its own bias."
            )
        self.layer, self.use_bias = layer, use_bias

    def build(self, input_shape: Shape) -> None:
        """Creates the bias and u: float32 (filters,)."""
        if not self.layer.built:  # loading a saved model builds it first
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
        """Values (B, …, filters), as the wrapped layer gives."""
        spread, inward = self._largest_singular_value()
        if training:
            self.direction.assign(inward)
        outputs = self.layer(inputs) / ops.cast(spread, self.compute_dtype)
        return outputs if self.bias is None else outputs + self.bias

    def _largest_singular_value(self) -> tuple[Tensor, Tensor]:
        """σ, a scalar, and u (filters,) after one iteration."""
        kernel = ops.cast(ops.convert_to_tensor(self.layer.kernel), "float32")
        matrix = ops.reshape(kernel, (-1, kernel.shape[-1]))
        fixed = ops.stop_gradient(matrix)
        outward = _unit(ops.matmul(fixed, ops.convert_to_tensor(self.direction)))  # v
        inward = _unit(ops.matmul(outward, fixed))  # u
        return ops.sum(outward * ops.matmul(matrix, inward)), inward

    def standard(self, inputs: Tensor) -> Tensor:
        """The same from the plain layer, divided by σ, plus the bias."""
        spread, _ = self._largest_singular_value()
        bias = 0.0 if self.bias is None else ops.convert_to_numpy(self.bias).tolist()
        scaled = keras.layers.Rescaling(1.0 / float(spread), bias, name=f"{self.name}_by_norm")
        return scaled(_standard_outputs(self.layer, inputs))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The output shape of the wrapped layer."""
        return self.layer.compute_output_shape(input_shape)

    def get_config(self) -> dict[str, object]:
        layer = keras.saving.serialize_keras_object(self.layer)
        return {**super().get_config(), "layer": layer, "use_bias": self.use_bias}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SpectralNorm:
        layer = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})


def _unit(vector: Tensor) -> Tensor:
    return vector / (ops.norm(vector) + 1e-12)


DROPOUT_LEVELS = 256  # engines compare random bytes with the rate


@keras.saving.register_keras_serializable("gan_runtime")
class ReplicaDropout(keras.layers.Layer):
    """Dropout of single units; the mask differs between steps and replicas. Identity outside
    training.

    Raises:
        ValueError: `rate` rounds to 0 or 1 in the masks' steps of 1/256.
        LookupError: called in training outside a step.
    """

    def __init__(self, rate: float, **settings: object) -> None:
        super().__init__(**settings)
        if rate != 0 and not 0 < round((1.0 - rate) * DROPOUT_LEVELS) < DROPOUT_LEVELS:
            raise ValueError(
                f"{self.name}: rate is {rate}, but allowed is 0 or 0.002 to 0.998: masks are"
                " rounded to 256ths."
            )
        self.rate = rate
        refuse_ignored_settings(self)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Same shape and dtype as `inputs`."""
        return step_context.current().noise.dropout(inputs, self.rate) if training else inputs

    def standard(self, inputs: Tensor) -> Tensor:
        """Unchanged."""
        return inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The same shape."""
        return input_shape

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "rate": self.rate}


# ---- the same without this project ---------------------------------------------------------------


def standard_network(network: keras.Model) -> keras.Model:
    """A copy with the same weights, built from Keras' layers only, so that it loads without this
    project.

    It gives the same outputs in inference. Every custom layer offers `standard(inputs)`, which
    builds these outputs from symbolic inputs.

    Raises:
        ValueError: a custom layer offers no `standard`.
    """
    if isinstance(network, keras.Sequential):
        network = keras.Model(network.inputs[0], network.outputs[0], name=network.name)
    return keras.models.clone_model(
        network, clone_function=lambda layer: layer, call_function=_standard_outputs
    )


def _standard_outputs(layer: keras.layers.Layer, *inputs: Tensor, **settings: Any) -> Tensor:
    if hasattr(layer, "standard"):
        return layer.standard(*inputs)
    if not isinstance(layer, keras.layers.Layer):  # an operation, such as a sum of tensors
        return layer(*inputs, **settings)
    if not type(layer).__module__.startswith("keras."):
        raise ValueError(
            f"{layer.name}: {type(layer).__name__} is not a Keras layer: give it a method"
            " standard(inputs) that builds the same from Keras' layers."
        )
    return plain_layer(layer, *inputs)
