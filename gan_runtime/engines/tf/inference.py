"""Networks outside of training steps: the probe after each epoch, and samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from gan_runtime.base.metrics import SCORE, WEIGHT, histogram
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import ProbeResult
from gan_runtime.engines.inputs import SAMPLES, chunks, fixed_inputs
from gan_runtime.engines.probes import (
    SCORE_BINS,
    WEIGHT_BINS,
    ProbeClasses,
    gradient_names,
    probe_result,
    probe_rows_per_replica,
    score_range,
    variables_by_layer,
)
from gan_runtime.engines.task import EngineTask
from gan_runtime.engines.tf.inputs import Rows, TfRequestNoise, TfStepNoise, values_of
from gan_runtime.engines.tf.state import statistics
from gan_runtime.engines.tf.step import (
    Numbers,
    TfReplicaStep,
    mean_over_replicas,
    replica_id,
)
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Judged
from gan_runtime.workloads.step_context import step_scope

# Name → counts int (bins,), lowest and highest value (2,).
Counts = dict[str, tuple[tf.Tensor, tf.Tensor]]


class TfProbes:
    """Probes the networks of a run without changing them."""

    def __init__(
        self,
        task: EngineTask,
        strategy: tf.distribute.Strategy,
        networks: dict[str, Any],
        step: TfReplicaStep,
        data: DataSet,
    ) -> None:
        self._task, self._spec, self._strategy = task, task.spec, strategy
        self._networks, self._step = networks, step
        self._replicas = strategy.num_replicas_in_sync
        rows = data.read(
            np.arange(probe_rows_per_replica(data.rows, self._replicas) * self._replicas)
        )
        self._batch = self._distributed(rows)
        self._classes = ProbeClasses.of(task.fields, rows)
        # Without AutoGraph, which would rewrite the code to no effect for a second.
        self._probe_call = tf.function(self._probe_everywhere, autograph=False)

    def warm_up(self) -> None:
        """Builds the graph and runs it once, since the first run takes three to four times as long
        as later ones.
        """
        self._probe_call(self._batch, tf.constant(0, tf.int32))

    def probe(self, step: int) -> ProbeResult:
        """Probes the first rows of the set, after `step` steps."""
        counts, scores, judged = tf.nest.map_structure(
            lambda value: value.numpy(), self._probe_call(self._batch, tf.constant(step, tf.int32))
        )
        scores |= self._classes.means(judged)
        return probe_result(counts, scores, loss_scaled=self._task.is_loss_scaled)

    # ---- on all replicas -------------------------------------------------------------------------

    def _probe_everywhere(self, batch: Any, step: tf.Tensor) -> tuple[Counts, Numbers, Numbers]:
        """The numbers of this process's first replica, equal to those of all others."""
        everyone = self._strategy.run(self._probe_replica, args=(batch, step))
        first: tuple[Counts, Numbers, Numbers] = tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], everyone
        )
        return first

    def _distributed(self, rows: Mapping[str, NDArray[Any]]) -> Any:
        """Distributes the rows to the replicas, in order."""

        def of_replica(context: Any) -> Rows:
            place = context.replica_id_in_sync_group
            return {
                name: tf.constant(np.split(rows[name], self._replicas)[place])
                for name in self._task.fields
            }

        return self._strategy.experimental_distribute_values_from_function(of_replica)

    # ---- on one replica --------------------------------------------------------------------------

    def _probe_replica(self, rows: Rows, step: tf.Tensor) -> tuple[Counts, Numbers, Numbers]:
        """Histograms; single numbers; and scores of all rows, (rows,), if there are
        means by class.
        """
        with self._restored_statistics():
            judged = self._judged(rows, step)
        gradients, norms = self._gradients(rows, step)
        counts = {**self._score_histograms(judged), **gradients, **self._weight_histograms()}
        by_row = {
            name: _of_all_rows(values)
            for name, values in judged.values.items()
            if self._classes.names
        }
        return counts, {**_means(judged), **norms}, by_row

    @contextmanager
    def _restored_statistics(self) -> Iterator[None]:
        """Restores values that layers store, such as batch norm's statistics, after passes in
        training mode.
        """
        stored = statistics(self._networks)
        before = [tf.identity(variable) for variable in stored]
        yield
        for variable, value in zip(stored, before, strict=True):
            variable.assign(value)

    def _judged(self, rows: Rows, step: tf.Tensor) -> Judged:
        """Measures rows in plain Keras, without the kernels of a step."""
        task, noise = self._task, TfStepNoise(self._spec.seed, step, replica_id(), self._replicas)
        values = values_of(rows, task.fields)
        with step_scope(self._step.context(noise, step)):
            inputs = task.workload.inputs(task.options, task.fields, values, noise)
            return task.workload.judge(task.options, self._networks, values, inputs)

    def _gradients(self, rows: Rows, step: tf.Tensor) -> tuple[Counts, Numbers]:
        """Histograms and norms of each phase's unscaled gradients, on as many rows of the probe
        batch as a step has.
        """
        counts: Counts = {}
        norms: Numbers = {}
        scales = self._step.loss_scales()
        batch = {name: array[: self._spec.batch_size_per_replica] for name, array in rows.items()}
        for place, phase in enumerate(self._task.program.phases):
            # Each phase starts with the stored values from the end of training.
            with self._restored_statistics():
                scaled, _ = self._step.gradients(
                    place, batch, step, replica_id(), tf.constant(0), scales
                )
            for network, values in scaled.items():
                mean = _mean_gradients(values, self._spec)
                gradients = [value / tf.cast(scales[network], value.dtype) for value in mean]
                kind, norm = gradient_names(self._task.program, phase, network)
                counts |= self._histograms(kind, network, gradients)
                norms[norm] = tf.linalg.global_norm(gradients)
        return counts, norms

    def _weight_histograms(self) -> Counts:
        counts: Counts = {}
        for name, network in self._networks.items():
            weights = [tf.convert_to_tensor(variable) for variable in network.trainable_variables]
            counts |= self._histograms(WEIGHT, name, weights)
        return counts

    def _histograms(self, kind: str, network: str, values: list[tf.Tensor]) -> Counts:
        """Histograms of a network and of each of its layers. `values`: in the order of the
        trainable variables.

        Zeros on all replicas except the first, since values are equal on all and only the first is
        read.
        """
        tensors = {
            histogram(kind, part): [values[place] for place in places]
            for part, places in variables_by_layer(network, self._networks[network]).items()
        }
        return _on_the_first_replica(
            lambda: {part: range_counts(values, WEIGHT_BINS) for part, values in tensors.items()},
            dict.fromkeys(tensors, (tf.zeros([WEIGHT_BINS], tf.int32), tf.zeros([2]))),
        )

    def _score_histograms(self, judged: Judged) -> Counts:
        return {
            histogram(SCORE, name): _score_counts(values, score_range(self._task.entry, name))
            for name, values in judged.values.items()
        }


def _mean_gradients(values: list[tf.Tensor], spec: RunSpec) -> list[tf.Tensor]:
    """The gradients of the whole batch. A replica's gradients are its share of the sum, or in local
    training the mean over its rows.
    """
    kind = "mean" if spec.sync_every_steps > 1 else "sum"
    return list(tf.distribute.get_replica_context().all_reduce(kind, values))


def _score_counts(
    values: tf.Tensor, ends: tuple[float, float] | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts of the rows of all replicas in fixed bins, or in bins from the lowest to the highest
    value.

    The ends are NaN if a value is not finite, which the first bin would count.
    """
    if ends is None:
        return range_counts([_of_all_rows(values)], SCORE_BINS)
    strange = tf.reduce_sum(tf.cast(~tf.math.is_finite(values), tf.int32))
    replica_counts = tf.concat([bin_counts(values, *ends, SCORE_BINS), [strange]], axis=0)
    counts = tf.distribute.get_replica_context().all_reduce("sum", replica_counts)
    return counts[:-1], tf.where(counts[-1] > 0, tf.constant(math.nan), tf.constant(ends))


def _of_all_rows(values: tf.Tensor) -> tf.Tensor:
    """(rows,) of one replica → (rows,) of all, in their order."""
    return tf.distribute.get_replica_context().all_gather(values, axis=0)


def _means(judged: Judged) -> Numbers:
    """The means of the judged scalars over the replicas, in one exchange."""
    if not judged.scalars:
        return {}
    values = tf.stack([tf.cast(value, tf.float32) for value in judged.scalars.values()])
    return dict(zip(judged.scalars, tf.unstack(mean_over_replicas(values)), strict=True))


def _on_the_first_replica(make: Callable[[], Counts], nothing: Counts) -> Counts:
    """`make()` on the first replica; `nothing` on the others. A TPU determines the replica's number
    only at run time.
    """
    number = tf.get_static_value(replica_id())
    if number is None:
        return dict(tf.cond(tf.equal(replica_id(), 0), make, lambda: nothing))
    return make() if number == 0 else nothing


# ----------------------------------------------------------------------
# Histograms counted on the device: the transfer to the host is bins + 2 numbers.


def bin_counts(values: tf.Tensor, low: float, high: float, bins: int) -> tf.Tensor:
    """int32 (bins,): counts of `values` in equal bins of [low, high]; outliers are in
    the end bins.
    """
    share = (tf.reshape(tf.cast(values, tf.float32), [-1]) - low) / (high - low)
    index = tf.clip_by_value(tf.cast(share * bins, tf.int32), 0, bins - 1)
    # 2 ms for 1.6 million values, where a sum by segments takes 33 (processor time; the bins take
    # 5).
    return tf.raw_ops.DenseBincount(input=index, size=bins, weights=tf.zeros([0], tf.int32))


def range_counts(tensors: list[tf.Tensor], bins: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts int32 (bins,) and [lowest, highest] float32 (2,) over all values of `tensors`."""
    flat = tf.concat([tf.reshape(tf.cast(tensor, tf.float32), [-1]) for tensor in tensors], axis=0)
    low, high = tf.reduce_min(flat), tf.reduce_max(flat)
    # Equal values, such as new biases, are in one bin. Its width must exceed a rounding of the
    # values.
    high = tf.maximum(high, low + tf.maximum(1e-12, 1e-5 * tf.abs(low)))
    return bin_counts(flat, low, high, bins), tf.stack([low, high])


# ---- samples -------------------------------------------------------------------------------------

Tensors = dict[str, tf.Tensor]


class TfSampler:
    """Runs the networks on equal chunks of at least SAMPLES rows, with one graph for all."""

    def __init__(
        self,
        task: EngineTask,
        strategy: tf.distribute.Strategy,
        networks: dict[str, Any],
        step: TfReplicaStep,
        data: DataSet,
    ) -> None:
        self._task, self._strategy, self._networks, self._step = task, strategy, networks, step
        # Rows of a chunk on each replica.
        self._share = -(-SAMPLES // strategy.num_replicas_in_sync)
        self._fixed = fixed_inputs(task.workload, task.options, data)
        # Without AutoGraph, which would rewrite the code to no effect.
        self._call = tf.function(self._everywhere, autograph=False)

    def sample(self, step: int) -> dict[str, NDArray[Any]]:
        """The outputs for the fixed inputs, after `step` steps: named arrays (64, …)."""
        return self.generate(self._fixed, step)

    def generate(
        self, inputs: dict[str, NDArray[Any]], step: int, seed: int = 0
    ) -> dict[str, NDArray[Any]]:
        """The outputs for inputs (rows, …) with the names of the fixed inputs: named arrays (rows,
        …).

        `seed`: seed of the noise of `Workload.show`.

        Raises:
            ValueError: the inputs have other names.
        """
        if set(inputs) != set(self._fixed):
            raise ValueError(f"the inputs are {', '.join(inputs)}: use {', '.join(self._fixed)}.")
        typed = {name: inputs[name].astype(array.dtype) for name, array in self._fixed.items()}
        chunked = [
            self._chunk(chunk, size, _scalars(place * self._rows, seed, step))
            for place, (chunk, size) in enumerate(chunks(typed, self._rows))
        ]
        return {name: np.concatenate([part[name] for part in chunked]) for name in chunked[0]}

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
        """The output of each replica of this process for its share of the inputs."""
        outputs = self._strategy.run(self._on_replica, args=(inputs, *scalars))
        by_name = {
            name: self._strategy.experimental_local_results(value)
            for name, value in outputs.items()
        }
        replicas = range(len(next(iter(by_name.values()))))
        return tuple(
            {name: values[replica] for name, values in by_name.items()} for replica in replicas
        )

    def _on_replica(
        self, inputs: Tensors, first: tf.Tensor, seed: tf.Tensor, step: tf.Tensor
    ) -> Tensors:
        begin = replica_id() * self._share
        replica_rows = {
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
            outputs = dict(
                self._task.workload.show(self._task.options, self._networks, replica_rows, noise)
            )
        if self._task.spec.workers == 1:
            return outputs
        # A worker has only its local replicas' rows, and the first worker writes the grid.
        return {name: _gathered(value) for name, value in outputs.items()}


def _gathered(value: tf.Tensor) -> tf.Tensor:
    return tf.distribute.get_replica_context().all_gather(value, axis=0)


def _scalars(first: int, seed: int, step: int) -> list[tf.Tensor]:
    """Scalars for the graph: the index of a chunk's first row, the seed as an int32 from 0, and the
    completed steps.
    """
    return [tf.constant(number, tf.int32) for number in (first, seed % 2**31, step)]


def _tensors(arrays: dict[str, NDArray[Any]]) -> Tensors:
    return {name: tf.constant(array) for name, array in arrays.items()}
