"""Keras layers that use what the engine offers during a step (see step_context) and are plain Keras
layers otherwise.

Values are (B, …, channels): series (B, length, channels), images (B, height, width, channels),
volumes (B, depth, height, width, channels), of any sizes. What the engine's kernels do not cover –
dilation, groups, causal or output padding – is computed as the plain layer does it, in a step too.
What an engine would leave out without a word is refused when the layer is made: channels that are
not last, and regularizers, since a step follows the losses of its phase and no others.
"""

from __future__ import annotations

from operator import add

import keras
from keras import ops

from gan_runtime.workloads import step_context
from gan_runtime.workloads.contract import Tensor

Shape = tuple[int | None, ...]
Zeros = tuple[tuple[int, int], ...]

_TERM = "no step adds a layer's own losses; add the term to the loss of its phase"
# What these layers take and engines would leave out: its only value here, and what to do.
_ONLY: dict[str, tuple[object, str]] = {
    "data_format": (
        "channels_last",
        "values are (B, …, channels); give data_format='channels_last'",
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


def _refuse_what_is_ignored(layer: keras.layers.Layer) -> None:
    for name, (allowed, advice) in _ONLY.items():
        given = getattr(layer, name, allowed)
        if given != allowed:
            shown = repr(given) if isinstance(given, str | int) else type(given).__name__
            raise ValueError(
                f"{layer.name}: {name} is {shown}, but allowed is {allowed!r}: {advice}."
            )


# ---- convolutions --------------------------------------------------------------------------------


class _OfTheEngine(keras.layers.Layer):
    """Stands before one of Keras' convolutions in a class's bases."""

    def __init__(self, *given: object, **named: object) -> None:
        super().__init__(*given, **named)
        _refuse_what_is_ignored(self)

    @property
    def _kernels(self) -> step_context.Kernels | None:
        """The engine's, if they cover this layer."""
        strange = (
            max(self.dilation_rate) > 1
            or getattr(self, "groups", 1) > 1
            or getattr(self, "output_padding", None) is not None
            or self.padding not in {"same", "valid"}
        )
        return None if strange else step_context.kernels()

    def _finished(self, values: Tensor, kernels: step_context.Kernels) -> Tensor:
        """With bias and activation."""
        if self.use_bias:
            values = kernels.elementwise(add, values, ops.convert_to_tensor(self.bias))
        return values if self.activation is None else self._activated(values, kernels)

    def _activated(self, values: Tensor, kernels: step_context.Kernels) -> Tensor:
        """ReLU is as it is for numbers that lie otherwise; others, such as a softmax, may
        look at all channels of a cell.
        """
        alone = self.activation is keras.activations.relu
        return kernels.elementwise(self.activation, values) if alone else self.activation(values)


class _Convolution(_OfTheEngine):
    """`zeros`: how many stand (before, after) the values along each axis, for padding "valid".

    Raises:
        ValueError: zeros that are not one pair of whole numbers from 0 for each axis; zeros with
            another padding.
    """

    def __init__(self, *given: object, zeros: Zeros = (), **named: object) -> None:
        super().__init__(*given, **named)
        self.zeros = tuple((before, after) for before, after in zeros)
        if zeros and (
            len(zeros) != self.rank or min(map(min, zeros)) < 0 or self.padding != "valid"
        ):
            raise ValueError(
                f"{self.name}: zeros are {self.zeros} and padding is {self.padding!r}, but allowed"
                f" are pairs of whole numbers from 0, one for each of {self.rank} axes, and"
                " 'valid': give either zeros or another padding."
            )

    def call(self, inputs: Tensor) -> Tensor:
        """(B, …, filters); along each axis size / stride, rounded up, with padding "same"."""
        kernels = self._kernels
        if kernels is None:
            return super().call(self._among_zeros(inputs) if self.zeros else inputs)
        kernel, padding = ops.convert_to_tensor(self.kernel), self.zeros or self.padding
        return self._finished(kernels.convolution(inputs, kernel, self.strides, padding), kernels)

    def _among_zeros(self, inputs: Tensor) -> Tensor:
        return ops.pad(inputs, [(0, 0), *self.zeros, (0, 0)])

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Of the values among their zeros."""
        batch, *sizes, channels = input_shape
        along = zip(sizes, self.zeros or ((0, 0),) * self.rank, strict=True)
        padded = (None if size is None else size + sum(ends) for size, ends in along)
        return super().compute_output_shape((batch, *padded, channels))

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        return {**super().get_config(), "zeros": self.zeros}


class _TransposedConvolution(_OfTheEngine):
    def call(self, inputs: Tensor) -> Tensor:
        """(B, …, filters); along each axis size · stride with padding "same"."""
        kernels = self._kernels
        if kernels is None:
            return super().call(inputs)
        kernel = ops.convert_to_tensor(self.kernel)
        return self._finished(
            kernels.transposed_convolution(inputs, kernel, self.strides, self.padding), kernels
        )


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution(_Convolution, keras.layers.Conv2D):
    """Conv2D: images. All that Keras' layer takes, but for what the module's text refuses."""


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution1D(_Convolution, keras.layers.Conv1D):
    """Conv1D: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class Convolution3D(_Convolution, keras.layers.Conv3D):
    """Conv3D: volumes."""


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution(_TransposedConvolution, keras.layers.Conv2DTranspose):
    """Conv2DTranspose: images.

    All that Keras' layer takes, but for what the module's text refuses.
    """


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution1D(_TransposedConvolution, keras.layers.Conv1DTranspose):
    """Conv1DTranspose: series."""


@keras.saving.register_keras_serializable("gan_runtime")
class TransposedConvolution3D(_TransposedConvolution, keras.layers.Conv3DTranspose):
    """Conv3DTranspose: volumes."""


# ---- batch norm ----------------------------------------------------------------------------------


@keras.saving.register_keras_serializable("gan_runtime")
class BatchNorm(keras.layers.BatchNormalization):
    """BatchNormalization of (B, …, channels) over all axes but the last; the engine decides whether
    over one replica or all.

        y = gamma · (x - mean) / √(variance + epsilon) + beta    (Ioffe and Szegedy 2015,
        arXiv:1502.03167, algorithm 1)

    For x (32, 14, 14, 128) mean and variance (biased) are of 32 · 14 · 14 numbers each, and all
    four are (128,). The stored statistics move by stored ← momentum · stored + (1 - momentum) ·
    fresh, and inference norms by them. A frozen one (trainable=False) normalises by its stored
    statistics, as Keras' layer does.
    """

    def __init__(self, **named: object) -> None:
        super().__init__(**named)
        _refuse_what_is_ignored(self)

    def call(
        self, inputs: Tensor, training: bool | None = None, mask: Tensor | None = None
    ) -> Tensor:
        """Same shape and dtype as `inputs`. Training moves the stored statistics.

        Raises:
            ValueError: a mask in a step.
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
                f"{self.name}: a mask is given, but engines norm all values: take it off."
            )
        outputs, mean, variance = kernels.batch_norm(inputs, gamma, beta, self.epsilon)
        for stored, fresh in ((self.moving_mean, mean), (self.moving_variance, variance)):
            stored.assign(stored * self.momentum + fresh * (1.0 - self.momentum))
        return outputs


def _scaled(values: Tensor, scale: Tensor, offset: Tensor) -> Tensor:
    return ops.cast(ops.cast(values, "float32") * scale + offset, values.dtype)


@keras.saving.register_keras_serializable("gan_runtime")
class ConditionalBatchNorm(keras.layers.Layer):
    """Batch norm with a scale and an offset for each class:

        z = gamma[y] · (x - mean) / √(variance + epsilon) + beta[y]    (Dumoulin et al. 2017,
        arXiv:1610.07629, eq. 5)

    For x (32, 8, 8, 256) and 10 classes gamma and beta are (10, 256); the rows of the labels y
    (32,) are (32, 256) of them, reshaped to (32, 1, 1, 256). Called with [values (B, …, channels),
    labels (B,)]: `ConditionalBatchNorm(len(fields["labels"].classes))([values, labels])`. The
    statistics are those of all rows together, as of a `BatchNorm`. Labels are whole numbers from 0
    to classes - 1, which the door checks; any other number has a scale and an offset of 0. For
    GANs: Miyato and Koyama 2018, arXiv:1802.05637, section 6.

    Raises:
        ValueError: no class; labels that are not one number a row.
    """

    def __init__(
        self, classes: int, momentum: float = 0.99, epsilon: float = 1e-3, **layer: object
    ) -> None:
        super().__init__(**layer)
        if classes < 1:
            raise ValueError(
                f"{self.name}: classes is {classes}, but allowed is 1 or more: take BatchNorm"
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
        _refuse_what_is_ignored(self)

    def build(self, input_shape: tuple[Shape, Shape]) -> None:
        """Gamma and beta: (classes, channels), float32."""
        values, labels = input_shape
        if len(labels) != 1:
            raise ValueError(
                f"{self.name}: labels have the shape {tuple(labels)}, but allowed is (B,): give a"
                " number a row."
            )
        of_classes = {"shape": (self.classes, values[-1]), "autocast": False}
        self.gamma = self.add_weight(name="gamma", initializer="ones", **of_classes)
        self.beta = self.add_weight(name="beta", initializer="zeros", **of_classes)
        self.norm.build(values)

    def call(self, inputs: tuple[Tensor, Tensor], training: bool | None = None) -> Tensor:
        """Same shape and dtype as the values."""
        values, labels = inputs
        # A product, not a look-up: its gradient is an array as large as the weight, which any
        # engine can exchange.
        chosen = ops.one_hot(labels, self.classes, dtype="float32")  # (B, classes)
        by_row = (-1, *(1,) * (len(values.shape) - 2), values.shape[-1])
        gamma, beta = (
            ops.cast(ops.reshape(ops.matmul(chosen, table), by_row), self.compute_dtype)
            for table in (self.gamma, self.beta)
        )
        return self.norm(values, training=training) * gamma + beta

    def compute_output_shape(self, input_shape: tuple[Shape, Shape]) -> Shape:
        """That of the values."""
        return input_shape[0]

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        own = {
            "classes": self.classes,
            "momentum": self.norm.momentum,
            "epsilon": self.norm.epsilon,
        }
        return {**super().get_config(), **own}


# ---- dropout -------------------------------------------------------------------------------------

DROPOUT_LEVELS = 256  # engines compare bytes


@keras.saving.register_keras_serializable("gan_runtime")
class ReplicaDropout(keras.layers.Layer):
    """Dropout of values of any shape, each unit by itself; the mask differs between steps and
    replicas. Identity outside training.

    Raises:
        ValueError: a rate that the masks, which know 256ths, would make 0 or 1.
        LookupError: called in training outside a step.
    """

    def __init__(self, rate: float, **layer: object) -> None:
        super().__init__(**layer)
        if rate != 0 and not 0 < round((1.0 - rate) * DROPOUT_LEVELS) < DROPOUT_LEVELS:
            raise ValueError(
                f"{self.name}: rate is {rate}, but allowed is 0 or 0.002 to 0.998: masks are"
                " rounded to 256ths."
            )
        self.rate = rate
        _refuse_what_is_ignored(self)

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Same shape and dtype as `inputs`."""
        return step_context.current().noise.dropout(inputs, self.rate) if training else inputs

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        return {**super().get_config(), "rate": self.rate}
