"""The engine's services for layers and losses within a step: random numbers, fast kernels, input
gradients.

Keras' SeedGenerator gives the same numbers on every replica (measured), so every replica would drop
the same units. The engine therefore opens a context with (seed, step, replica) around each forward
pass; outside a step, layers are plain Keras.
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


class LayerKernels(Protocol):
    """The arithmetic of Keras layers, implemented for the device.

    Values: (B, …, channels) with one to three axes between; `strides`: one per axis; `padding`:
    "same" or "valid".
    """

    def convolution(
        self, values: Tensor, kernel: Tensor, strides: tuple[int, ...], padding: Padding
    ) -> Tensor:
        """`kernel`: (…, channels in, channels out). `padding`: "same", "valid", or zeros (before,
        after) per axis.
        """
        ...

    def transposed_convolution(
        self, values: Tensor, kernel: Tensor, strides: tuple[int, ...], padding: str
    ) -> Tensor:
        """Sizes: size · stride, plus kernel - stride if "valid" and positive.

        `kernel`: (…, channels out, channels in).
        """
        ...

    def elementwise(
        self, function: Callable[..., Tensor], values: Tensor, *of_channels: Tensor
    ) -> Tensor:
        """`function(values, *of_channels)`, elementwise; `of_channels`: each (channels,).

        An engine can use another layout: the function then gets (B, …, n) arrays, all with the same
        n.
        """
        ...

    def enlarged_convolution(
        self, values: Tensor, kernel: Tensor, factors: tuple[int, ...]
    ) -> Tensor:
        """A "valid" convolution, stride 1, of values whose cells are repeated `factors` times."""
        ...

    def batch_norm(
        self, values: Tensor, gamma: Tensor, beta: Tensor, epsilon: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, …, channels), 2 to 5 axes, normalized over all but the last: (values, batch
        mean, biased batch variance).
        """
        ...


@dataclass(frozen=True)
class TrainingProgress:
    """The progress of a training. `step`: int32 scalar, from 0; `steps`: number of steps of the
    whole training.
    """

    step: Tensor
    steps: int

    @property
    def share(self) -> Tensor:
        """The completed share of the training: float32 scalar, 0 in the first step, 1 after the
        last.
        """
        return ops.minimum(ops.cast(self.step, "float32") / self.steps, 1.0)


TRAINED = TrainingProgress(1, 1)


@dataclass(frozen=True)
class StepContext:
    """`kernels`: None for plain Keras. `input_gradient(function, inputs)`: d sum(function(inputs))
    / d inputs, differentiable.

    `weighted_gradient(function, inputs, weight_of)`: outputs = function(inputs), (B, 1); the
    backward pass multiplies the gradient of `inputs`, but not that of the function's weights, row
    by row by weight_of(outputs), (B, 1).

    `mean_over_replicas(tensor)`: the mean over the replicas of all workers, same shape, not
    differentiable. `loss_scaling`: whether the engine scales each loss separately, as float16
    needs. `progress`: computed only if read.
    """

    noise: Noise
    kernels: LayerKernels | None
    input_gradient: Callable[[Callable[[Tensor], Tensor], Tensor], Tensor]
    weighted_gradient: Callable[
        [Callable[[Tensor], Tensor], Tensor, Callable[[Tensor], Tensor]], Tensor
    ]
    mean_over_replicas: Callable[[Tensor], Tensor]
    loss_scaling: bool = False
    progress: TrainingProgress = TRAINED


_current: ContextVar[StepContext] = ContextVar("context of the current step on the current replica")
_outside: ContextVar[LayerKernels | None] = ContextVar(
    "the engine's kernels outside a step", default=None
)


@contextmanager
def step_scope(context: StepContext) -> Iterator[None]:
    """Layers called within this block use `context`."""
    token = _current.set(context)
    try:
        yield
    finally:
        _current.reset(token)


def current() -> StepContext:
    """The context of the current step. Raises LookupError outside a step."""
    return _current.get()


def progress() -> TrainingProgress:
    """The training progress, for layers; outside a step that of a finished training."""
    context = _current.get(None)
    return context.progress if context else TRAINED


@contextmanager
def kernel_scope(kernels: LayerKernels | None) -> Iterator[None]:
    """Layers called within this block use these kernels outside a step, for networks in
    inference.
    """
    token = _outside.set(kernels)
    try:
        yield
    finally:
        _outside.reset(token)


def kernels() -> LayerKernels | None:
    """The engine's kernels; None outside both scopes."""
    context = _current.get(None)
    return context.kernels if context else _outside.get()
