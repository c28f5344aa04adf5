"""What the workload shows for given inputs: the sample grids of an epoch, and any number of
rows on request.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import SAMPLES, chunks, fixed_inputs
from gan_runtime.engines.task import EngineTask
from gan_runtime.engines.tf.noise import TfRequestNoise
from gan_runtime.engines.tf.step import TfReplicaStep, replica_id
from gan_runtime.workloads.step_context import step_scope

Tensors = dict[str, tf.Tensor]


class TfSampler:
    """Asks the networks in equal chunks of at least SAMPLES rows, so that one graph serves
    every question.
    """

    def __init__(
        self,
        task: EngineTask,
        strategy: tf.distribute.Strategy,
        networks: dict[str, Any],
        step: TfReplicaStep,
        data: DataSet,
    ) -> None:
        self._task, self._strategy, self._networks, self._step = task, strategy, networks, step
        self._share = -(
            -SAMPLES // strategy.num_replicas_in_sync
        )  # rows of a chunk on each replica
        self._fixed = fixed_inputs(task.workload, task.options, data)
        # Nothing in it depends on a tensor's value: AutoGraph would rewrite its code in vain.
        self._call = tf.function(self._everywhere, autograph=False)

    def trace(self) -> None:
        """Builds the graph, so that the end of the first epoch does not have to."""
        chunk, _ = next(chunks(self._fixed, self._rows))
        self._call.get_concrete_function(_tensors(chunk), *_scalars(0, 0, 0))

    def sample(self, step: int) -> dict[str, NDArray[Any]]:
        """For the fixed inputs, after `step` steps: named arrays (64, …)."""
        return self.generate(self._fixed, step)

    def generate(
        self, inputs: dict[str, NDArray[Any]], step: int, seed: int = 0
    ) -> dict[str, NDArray[Any]]:
        """For any inputs (rows, …) of the names that the fixed ones have: named arrays (rows, …).

        `seed`: of what `show` draws.

        Raises:
            ValueError: other names.
        """
        if set(inputs) != set(self._fixed):
            raise ValueError(
                f"inputs are {', '.join(inputs)}, but needed are {', '.join(self._fixed)}."
            )
        typed = {name: inputs[name].astype(array.dtype) for name, array in self._fixed.items()}
        shown = [
            self._chunk(chunk, size, _scalars(place * self._rows, seed, step))
            for place, (chunk, size) in enumerate(chunks(typed, self._rows))
        ]
        return {name: np.concatenate([part[name] for part in shown]) for name in shown[0]}

    @property
    def _rows(self) -> int:
        return self._share * self._strategy.num_replicas_in_sync

    def _chunk(
        self, inputs: dict[str, NDArray[Any]], size: int, scalars: list[tf.Tensor]
    ) -> dict[str, NDArray[Any]]:
        shares = self._call(_tensors(inputs), *scalars)
        return {
            name: np.concatenate([share[name].numpy() for share in shares])[:size]
            for name in shares[0]
        }

    def _everywhere(self, inputs: Tensors, *scalars: tf.Tensor) -> tuple[Tensors, ...]:
        """What each replica of this process shows of its share of the inputs."""
        shown = self._strategy.run(self._on_replica, args=(inputs, *scalars))
        by_name = {
            name: self._strategy.experimental_local_results(value) for name, value in shown.items()
        }
        replicas = range(len(next(iter(by_name.values()))))
        return tuple(
            {name: values[replica] for name, values in by_name.items()} for replica in replicas
        )

    def _on_replica(
        self, inputs: Tensors, first: tf.Tensor, seed: tf.Tensor, step: tf.Tensor
    ) -> Tensors:
        begin = replica_id() * self._share
        own = {
            name: tf.ensure_shape(
                tf.slice(
                    value, [begin, *[0] * (len(value.shape) - 1)], [self._share, *value.shape[1:]]
                ),
                [self._share, *value.shape[1:]],
            )
            for name, value in inputs.items()
        }
        noise = TfRequestNoise(seed, replica_id(), first)
        with step_scope(self._step.context(noise, step)):
            shown = dict(self._task.workload.show(self._task.options, self._networks, own, noise))
        if self._task.spec.workers == 1:
            return shown
        # A worker has the rows of its own replicas only; so that the first can write the grid, all
        # go to everyone.
        return {name: _gathered(value) for name, value in shown.items()}


def _gathered(value: tf.Tensor) -> tf.Tensor:
    return tf.distribute.get_replica_context().all_gather(value, axis=0)


def _scalars(first: int, seed: int, step: int) -> list[tf.Tensor]:
    """The place of a chunk's first row; of a seed, all that an int32 from 0 holds; the steps
    done.
    """
    return [tf.constant(number, tf.int32) for number in (first, seed % 2**31, step)]


def _tensors(arrays: dict[str, NDArray[Any]]) -> Tensors:
    return {name: tf.constant(array) for name, array in arrays.items()}
