"""The losses of a GAN as functions of its weights, on fixed training rows and fixed noise, float32.

Each is the loss that the network follows in a step. Batch norm uses the statistics of these rows,
since points off the path have no stored statistics; dropout is off. Loads Keras.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import host_values
from gan_runtime.engines.task import task_of
from gan_runtime.engines.tf.step import input_gradient, weighted_gradient
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Phase, Tensor, Workload
from gan_runtime.workloads.step_context import StepContext, step_scope

IMAGES = 256
# Forward passes per network. Passes over the fixed rows recur at every point of another network's
# surface.
_MOST_CACHED = 4


class FixedNoise:
    """A `workloads.contract.Noise` with the same draws at every point and without dropout."""

    def __init__(self) -> None:
        self._drawn: list[Tensor] = []
        self._next = 0

    def begin(self) -> None:
        """The next call returns the first draw again."""
        self._next = 0

    def normal(self, rows: int, *shape: int) -> Tensor:
        """float32 (rows, *shape), standard normal."""
        return self._draw(lambda random: random.standard_normal((rows, *shape)))

    def uniform(self, rows: int, *shape: int) -> Tensor:
        """float32 (rows, *shape), from 0 to below 1."""
        return self._draw(lambda random: random.random_sample((rows, *shape)))

    def dropout(self, values: Tensor, rate: float) -> Tensor:  # noqa: ARG002
        """`values` unchanged."""
        return values

    def _draw(self, numbers_of: Callable[[np.random.RandomState], NDArray[np.float64]]) -> Tensor:
        if self._next == len(self._drawn):
            numbers = numbers_of(np.random.RandomState(self._next)).astype(np.float32)
            self._drawn.append(ops.convert_to_tensor(numbers))
        self._next += 1
        return self._drawn[self._next - 1]


class CachedNetwork:
    """A network that caches its forward passes until its weights change."""

    def __init__(self, network: Any) -> None:
        self._network = network
        self._passes: OrderedDict[tuple[int, ...], tuple[Any, Tensor]] = OrderedDict()

    def __call__(self, inputs: Any, training: bool = False) -> Tensor:
        """The output of the network."""
        key = (int(training), *(id(tensor) for tensor in keras.tree.flatten(inputs)))
        if key not in self._passes:
            # The inputs are stored too, so that no new tensor reuses their ids.
            self._passes[key] = inputs, self._network(inputs, training=training)
            if len(self._passes) > _MOST_CACHED:
                self._passes.popitem(last=False)
        self._passes.move_to_end(key)
        return self._passes[key][1]

    def moved(self) -> None:
        """Clears the cache, since the weights have changed."""
        self._passes.clear()


class Landscape:
    """The networks of a workload, which can be set to any weights."""

    def __init__(self, spec: RunSpec, workload: Workload, data: DataSet) -> None:
        """`data`: with the fields that the workload reads; its first 256 rows are used."""
        self._task = task_of(spec, workload, data.fields, data.rows)
        self.networks = self._task.networks()
        self._cached = {name: CachedNetwork(network) for name, network in self.networks.items()}
        self.rows = min(IMAGES, data.rows)
        values = host_values(data.read(np.arange(self.rows)), data.fields)
        self._batch = {name: ops.convert_to_tensor(value) for name, value in values.items()}
        self._noise = FixedNoise()

    @property
    def trained(self) -> tuple[str, ...]:
        """The networks that a step changes, in the workload's order."""
        return tuple(name for name in self.networks if name in self._task.plan.updates)

    def filter_axes(self, network: str) -> dict[str, int]:
        """Kernel name → axis of output channels, for each kernel of a network."""
        axes: dict[str, int] = {}
        for layer in self.networks[network].layers:
            kernels = [
                variable for variable in layer.trainable_variables if len(variable.shape) > 1
            ]
            axis = (
                -2
                if isinstance(layer, (keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose))
                else -1
            )
            axes |= {f"{network}/{kernel.path}": axis for kernel in kernels}
        return axes

    def place(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Sets the networks to these weights; weights without a name in `arrays` are unchanged."""
        for name, network in self.networks.items():
            for variable in network.variables:
                if (array := arrays.get(f"{name}/{variable.path}")) is not None:
                    variable.assign(array)
                    self._cached[name].moved()

    def loss(self, network: str) -> float:
        """The loss that a network follows, or the mean of all losses that it follows in a step."""
        phases = {
            update.followed(loss_scaling=True): phase
            for phase in reversed(self._task.program.phases_of(network))
            for update in phase.updates
            if update.network == network
        }
        return float(np.mean([self._loss_in(phase, loss) for loss, phase in phases.items()]))

    def _loss_in(self, phase: Phase, loss: str) -> float:
        self._noise.begin()
        context = StepContext(
            self._noise, None, input_gradient, weighted_gradient, lambda tensor: tensor
        )
        with step_scope(context):
            forward = phase.forward(self._cached, self._batch, self._noise)
        return float(ops.convert_to_numpy(forward.losses[loss]))
