"""How a layer inside a network gets at the step's random numbers.

Keras' own SeedGenerator gives the same numbers on every replica (measured), so every replica would drop the same units.
The engine opens a scope with the noise of (seed, step, replica) around each forward pass; layers read it from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import keras

from gan_runtime.workloads.contract import Noise, Tensor

_current: ContextVar[Noise] = ContextVar("noise of the present step and replica")


@contextmanager
def noise_scope(noise: Noise) -> Iterator[None]:
    """Layers called inside draw from `noise`."""
    token = _current.set(noise)
    try:
        yield
    finally:
        _current.reset(token)


@keras.saving.register_keras_serializable("gan_runtime")
class ReplicaDropout(keras.layers.Layer):
    """Dropout whose mask differs between steps and replicas. Identity outside training.

    Raises:
        LookupError: called in training outside a `noise_scope`.
    """

    def __init__(self, rate: float, **layer: object) -> None:
        super().__init__(**layer)
        self.rate = rate

    def call(self, inputs: Tensor, training: bool = False) -> Tensor:
        """Same shape and dtype as `inputs`."""
        return _current.get().dropout(inputs, self.rate) if training else inputs

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        """The shape stays as it is."""
        return input_shape

    def get_config(self) -> dict[str, object]:
        """For saving the model."""
        return {**super().get_config(), "rate": self.rate}
