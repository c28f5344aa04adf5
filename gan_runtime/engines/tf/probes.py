"""What is looked at once an epoch: what the workload judges, and histograms of weights and
gradients.
"""

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
from gan_runtime.engines.probing import (
    SCORE_BINS,
    WEIGHT_BINS,
    ProbedClasses,
    gradient_names,
    parts,
    probe_share,
    probed,
    score_range,
)
from gan_runtime.engines.task import EngineTask
from gan_runtime.engines.tf.noise import TfStepNoise
from gan_runtime.engines.tf.state import statistics
from gan_runtime.engines.tf.step import (
    Numbers,
    Rows,
    TfReplicaStep,
    mean_over_replicas,
    replica_id,
    values_of,
)
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Judged
from gan_runtime.workloads.step_context import step_scope

Counts = dict[
    str, tuple[tf.Tensor, tf.Tensor]
]  # by name: int (bins,), lowest and highest value (2,)


class TfProbes:
    """Looks at the networks of a run without changing them.

    Built and called like the engine that owns it.
    """

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
        rows = data.read(np.arange(probe_share(data.rows, self._replicas) * self._replicas))
        self._batch = self._distributed(rows)
        self._classes = ProbedClasses.of(task.fields, rows)
        # Nothing in it depends on a tensor's value: AutoGraph would rewrite its code in vain, which
        # takes a second.
        self._probe_call = tf.function(self._probe_everywhere, autograph=False)

    def trace(self) -> None:
        """Builds the graph, so that the end of the first epoch does not have to."""
        self._probe_call.get_concrete_function(self._batch, tf.constant(0, tf.int32))

    def warm_up(self) -> None:
        """Runs the graph once for nothing: the first time takes three to four times as long
        as any other.
        """
        self._probe_call(self._batch, tf.constant(0, tf.int32))

    def probe(self, step: int) -> ProbeResult:
        """On the first rows of the set, after `step` steps."""
        counts, scores, judged = tf.nest.map_structure(
            lambda value: value.numpy(), self._probe_call(self._batch, tf.constant(step, tf.int32))
        )
        scores |= self._classes.means(judged)
        return probed(counts, scores, loss_scaled=self._task.is_loss_scaled)

    # ---- on all replicas -------------------------------------------------------------------------

    def _probe_everywhere(self, batch: Any, step: tf.Tensor) -> tuple[Counts, Numbers, Numbers]:
        """What the first replica of this process found: all have the same numbers."""
        everyone = self._strategy.run(self._probe_replica, args=(batch, step))
        first: tuple[Counts, Numbers, Numbers] = tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], everyone
        )
        return first

    def _distributed(self, rows: Mapping[str, NDArray[Any]]) -> Any:
        """Each replica's share of the rows, in their order."""

        def of_replica(context: Any) -> Rows:
            place = context.replica_id_in_sync_group
            return {
                name: tf.constant(np.split(rows[name], self._replicas)[place])
                for name in self._task.fields
            }

        return self._strategy.experimental_distribute_values_from_function(of_replica)

    # ---- on one replica --------------------------------------------------------------------------

    def _probe_replica(self, rows: Rows, step: tf.Tensor) -> tuple[Counts, Numbers, Numbers]:
        """Histograms; single numbers; what was judged of all rows, (rows,), where it is told
        class by class.
        """
        with self._stored_as_before():
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
    def _stored_as_before(self) -> Iterator[None]:
        """What layers store, such as batch norm's statistics, is afterward what it was:
        passes in training mode move it.
        """
        stored = statistics(self._networks)
        before = [tf.identity(variable) for variable in stored]
        yield
        for variable, value in zip(stored, before, strict=True):
            variable.assign(value)

    def _judged(self, rows: Rows, step: tf.Tensor) -> Judged:
        """Outside of a step's kernels, so in plain Keras."""
        task, noise = self._task, TfStepNoise(self._spec.seed, step, replica_id(), self._replicas)
        values = values_of(rows, task.fields)
        with step_scope(self._step.context(noise, step)):
            inputs = task.workload.inputs(task.options, task.fields, values, noise)
            return task.workload.judge(task.options, self._networks, values, inputs)

    def _gradients(self, rows: Rows, step: tf.Tensor) -> tuple[Counts, Numbers]:
        """Histograms and norms of each phase's gradients, unscaled, of as many rows of the
        probe batch as a step sees.
        """
        counts: Counts = {}
        norms: Numbers = {}
        scales = self._step.loss_scales()
        own = {name: array[: self._spec.batch_size_per_replica] for name, array in rows.items()}
        for place, phase in enumerate(self._task.program.phases):
            # Each phase begins with what the layers had stored at the end of training.
            with self._stored_as_before():
                scaled, _ = self._step.gradients(
                    place, own, step, replica_id(), tf.constant(0), scales
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
        """Of a network as a whole and of each of its layers; `values` in the order of its trainable
        variables.

        Zeros on all replicas but the first, whose numbers are the ones that are read: all have the
        same values.
        """
        wanted = {
            histogram(kind, part): [values[place] for place in places]
            for part, places in parts(network, self._networks[network]).items()
        }
        return _on_the_first_replica(
            lambda: {part: ranged(tensors, WEIGHT_BINS) for part, tensors in wanted.items()},
            dict.fromkeys(wanted, (tf.zeros([WEIGHT_BINS], tf.int32), tf.zeros([2]))),
        )

    def _score_histograms(self, judged: Judged) -> Counts:
        return {
            histogram(SCORE, name): _score_counts(values, score_range(self._task.entry, name))
            for name, values in judged.values.items()
        }


def _mean_gradients(values: list[tf.Tensor], spec: RunSpec) -> list[tf.Tensor]:
    """Each replica's gradients are its share of the sum, or in local training the mean over
    its own rows.
    """
    kind = "mean" if spec.sync_every_steps > 1 else "sum"
    return list(tf.distribute.get_replica_context().all_reduce(kind, values))


def _score_counts(
    values: tf.Tensor, ends: tuple[float, float] | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts of the rows of all replicas in fixed bins, or in bins from the lowest to the highest
    value.

    A value that is no number would be counted in the first bin: the ends are none either then.
    """
    if ends is None:
        return ranged([_of_all_rows(values)], SCORE_BINS)
    strange = tf.reduce_sum(tf.cast(~tf.math.is_finite(values), tf.int32))
    own = tf.concat([fixed(values, *ends, SCORE_BINS), [strange]], axis=0)
    counts = tf.distribute.get_replica_context().all_reduce("sum", own)
    return counts[:-1], tf.where(counts[-1] > 0, tf.constant(math.nan), tf.constant(ends))


def _of_all_rows(values: tf.Tensor) -> tf.Tensor:
    """(rows,) of one replica → (rows,) of all, in their order."""
    return tf.distribute.get_replica_context().all_gather(values, axis=0)


def _means(judged: Judged) -> Numbers:
    """The judged scalars, each the mean over the replicas, in one exchange."""
    if not judged.scalars:
        return {}
    own = tf.stack([tf.cast(value, tf.float32) for value in judged.scalars.values()])
    return dict(zip(judged.scalars, tf.unstack(mean_over_replicas(own)), strict=True))


def _on_the_first_replica(make: Callable[[], Counts], nothing: Counts) -> Counts:
    """What `make` gives, on the first replica; `nothing` on the others.

    A TPU learns only when it runs which replica it is.
    """
    known = tf.get_static_value(replica_id())
    if known is None:
        return dict(tf.cond(tf.equal(replica_id(), 0), make, lambda: nothing))
    return make() if known == 0 else nothing


# ----------------------------------------------------------------------
# Histograms whose counts are made on the device: only bins + 2 numbers travel to the host.


def fixed(values: tf.Tensor, low: float, high: float, bins: int) -> tf.Tensor:
    """int32 (bins,): how many `values` fall into each of `bins` equal bins of [low, high];
    outliers go to the end bins.
    """
    share = (tf.reshape(tf.cast(values, tf.float32), [-1]) - low) / (high - low)
    index = tf.clip_by_value(tf.cast(share * bins, tf.int32), 0, bins - 1)
    # 2 ms for 1.6 million values, where a sum by segments takes 33 (processor time, beside 5 ms for
    # the bins).
    return tf.raw_ops.DenseBincount(input=index, size=bins, weights=tf.zeros([0], tf.int32))


def ranged(tensors: list[tf.Tensor], bins: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts int32 (bins,) and [lowest, highest] float32 (2,) over all values of `tensors`."""
    flat = tf.concat([tf.reshape(tf.cast(tensor, tf.float32), [-1]) for tensor in tensors], axis=0)
    low, high = tf.reduce_min(flat), tf.reduce_max(flat)
    # All values equal, such as new biases: one bin takes them all. A bin's width must be more than
    # a rounding of the values.
    high = tf.maximum(high, low + tf.maximum(1e-12, 1e-5 * tf.abs(low)))
    return fixed(flat, low, high, bins), tf.stack([low, high])
