"""What layers and losses may ask of the engine during a training step: random numbers, fast
kernels, input gradients.

Keras' own SeedGenerator gives the same numbers on every replica (measured), so every replica would
drop the same units; and its plain operations are not the fastest on every device. The engine opens
a context of (seed, step, replica) around each forward pass, and layers read it from there. Outside
a step they fall back to plain Keras.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol

from keras import ops

from gan_runtime.workloads.contract import Noise, Tensor

Padding = str | tuple[tuple[int, int], ...]


class Kernels(Protocol):
    """The same mathematics as the Keras layers, written for the device at hand.

    Values: (B, …, channels) with one to three axes between; `strides`: a number for each of them;
    `padding`: "same" or "valid".
    """

    def convolution(
        self, values: Tensor, kernel: Tensor, strides: tuple[int, ...], padding: Padding
    ) -> Tensor:
        """`kernel`: (…, channels in, channels out). `padding` may also be zeros (before,
        after) along each axis.
        """
        ...

    def transposed_convolution(
        self, values: Tensor, kernel: Tensor, strides: tuple[int, ...], padding: str
    ) -> Tensor:
        """Along each axis size · stride, "valid" with kernel - stride more if that is positive.

        `kernel`: (…, channels out, in).
        """
        ...

    def elementwise(
        self, function: Callable[..., Tensor], values: Tensor, *of_channels: Tensor
    ) -> Tensor:
        """`function(values, *of_channels)`, where each outcome follows from the same place of the
        values and of each of `of_channels`, (channels,), alone. An engine may lay both out
        otherwise: the function sees (B, …, n), all of one n.
        """
        ...

    def enlarged_convolution(
        self, values: Tensor, kernel: Tensor, factors: tuple[int, ...]
    ) -> Tensor:
        """Of values enlarged by repeating each cell `factors` times along each axis: "valid",
        stride 1. `kernel`: as above.
        """
        ...

    def batch_norm(
        self, values: Tensor, gamma: Tensor, beta: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Of (B, …, channels), 2 to 5 axes, normalised over all but the last: (values, batch
        mean, biased batch variance).
        """
        ...


@dataclass(frozen=True)
class Progress:
    """How far the training is.

    `step`: int32 scalar, steps done before this one; `steps`: of the whole training.
    """

    step: Tensor
    steps: int

    @property
    def share(self) -> Tensor:
        """Share of the training that is done: float32 scalar, 0 in the first step, 1 after
        the last one.
        """
        return ops.minimum(ops.cast(self.step, "float32") / self.steps, 1.0)


TRAINED = Progress(1, 1)


@dataclass(frozen=True)
class StepContext:
    """`kernels`: None for plain Keras. `input_gradient(function, inputs)`: d sum(function(inputs))
    / d inputs, differentiable.

    `weighted_gradient(function, inputs, weight_of)`: outputs = function(inputs), (B, 1). On the way
    back, the gradient that reaches `inputs` is multiplied row by row with weight_of(outputs), (B,
    1); that of the function's own weights is not.

    `mean_over_replicas(tensor)`: of all workers, same shape, the same on each; not for the way
    back. `loss_scaling`: the engine multiplies each loss by a factor of its own, as float16 needs.
    `progress`: for penalties on a schedule and layers that fade in; nothing is computed of it
    unless it is read.
    """

    noise: Noise
    kernels: Kernels | None
    input_gradient: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
    weighted_gradient: Callable[
        [Callable[[Tensor], Tensor], Tensor, Callable[[Tensor], Tensor]], Tensor
    ]
    mean_over_replicas: Callable[[Tensor], Tensor]
    loss_scaling: bool = False
    progress: Progress = TRAINED


_current: ContextVar[StepContext] = ContextVar(
    "what the engine offers to the present step on the present replica"
)
_outside: ContextVar[Kernels | None] = ContextVar(
    "the engine's kernels outside a step", default=None
)


@contextmanager
def step_scope(context: StepContext) -> Iterator[None]:
    """Layers called inside use `context`."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> StepContext:
    """The context of the present step. Raises LookupError outside a step."""
    return _current.get()


def progress() -> Progress:
    """How far the training is; at its end outside of a step. For layers, which also work there."""
    context = _current.get(None)
    return context.progress if context else TRAINED


@contextmanager
def kernel_scope(kernels: Kernels | None) -> Iterator[None]:
    """Layers called inside use these kernels where no step is made: networks that are only
    asked need nothing else of an engine.
    """
    token = _outside.set(kernels)
    try:
        yield
    finally:
        _outside.reset(token)


def kernels() -> Kernels | None:
    """The engine's kernels; None outside of both scopes."""
    context = _current.get(None)
    return context.kernels if context else _outside.get()
