"""Networks outside of training steps: the probe after each epoch, and samples.

The passes of a probe run on all replicas. Weights and gradients are equal on all devices, so the
first device counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from numpy.typing import NDArray

from gan_runtime.base.metrics import SCORE, WEIGHT, histogram
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.contract import ProbeResult
from gan_runtime.engines.inputs import SAMPLES, chunks, fixed_inputs, host_values
from gan_runtime.engines.jax.devices import AXIS, on_first_device, put_on_devices
from gan_runtime.engines.jax.inputs import REPLICATED, JaxRequestNoise, JaxStepNoise, Rows
from gan_runtime.engines.jax.model import JaxModel, State
from gan_runtime.engines.jax.step import JaxReplicaStep, Numbers
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
from gan_runtime.workloads.step_context import step_scope

BY_REPLICA = PartitionSpec(AXIS)
RangeCounts = tuple[
    jax.Array, jax.Array
]  # counts int32 (bins,), lowest and highest value float32 (2,)


class JaxProbes:
    """Probes the state of a run without changing it."""

    def __init__(
        self, task: EngineTask, mesh: Mesh, model: JaxModel, step: JaxReplicaStep, data: DataSet
    ) -> None:
        self._task, self._spec, self._model, self._step = task, task.spec, model, step
        first = data.read(np.arange(probe_rows_per_replica(data.rows, mesh.size) * mesh.size))
        self._classes = ProbeClasses.of(task.fields, first)
        self._rows: Rows = put_on_devices(
            {name: first[name] for name in task.fields}, NamedSharding(mesh, BY_REPLICA)
        )

        def mapped(function: Callable[..., Any], *specs: PartitionSpec) -> Any:
            return jax.jit(
                jax.shard_map(
                    function, mesh=mesh, in_specs=specs, out_specs=REPLICATED, check_vma=False
                )
            )

        self._probe_call = mapped(self._probe_replica, REPLICATED, BY_REPLICA, REPLICATED)
        self._summary_call = jax.jit(self._summarised)

    def probe(self, state: State, step: int) -> ProbeResult:
        """Probes the first rows of the set, after `step` steps."""
        by_row, gradients, scalars = self._probe_call(state, self._rows, np.int32(step))
        judged = {name: np.asarray(values) for name, values in by_row.items()}
        counts = {
            histogram(SCORE, name): self._scored(name, values) for name, values in judged.items()
        }
        weights = {name: state[name] for name in self._trained()}
        summaries, norms = self._summary_call(
            on_first_device(weights), [on_first_device(by_phase) for by_phase in gradients]
        )
        counts |= {
            part: (np.asarray(bins), np.asarray(ends)) for part, (bins, ends) in summaries.items()
        }
        scores = {**scalars, **norms, **self._classes.means(judged)}
        return probe_result(counts, scores, loss_scaled=self._task.is_loss_scaled)

    # ---- on the host -----------------------------------------------------------------------------

    def _scored(self, name: str, judged: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """The counts of the rows' scores, and the ends of the bins, which are NaN if a value is not
        finite.
        """
        if not np.isfinite(judged).all():
            return np.zeros(SCORE_BINS, int), np.full(2, np.nan)
        low, high = score_range(self._task.entry, name) or _ends(judged)
        return bin_counts(judged, low, high), np.array([low, high])

    def _trained(self) -> Iterable[str]:
        return (name for names in self._model.trainable.values() for name in names)

    # ---- on the first device ---------------------------------------------------------------------

    def _summarised(
        self, weights: State, gradients: list[State]
    ) -> tuple[dict[str, RangeCounts], Numbers]:
        """Histograms of each network and of each of its layers, and norms of gradients, by name.

        All are in one call, since one compilation per shape would take longer.
        """
        summaries: dict[str, RangeCounts] = {}
        norms: Numbers = {}
        for network in self._model.trainable:
            summaries |= self._by_layer(WEIGHT, network, weights)
        for phase, by_phase in zip(self._task.program.phases, gradients, strict=True):
            for update in phase.updates:
                kind, norm = gradient_names(self._task.program, phase, update.network)
                summaries |= self._by_layer(kind, update.network, by_phase)
                norms[norm] = _norm(
                    [by_phase[name] for name in self._model.trainable[update.network]]
                )
        return summaries, norms

    def _by_layer(self, kind: str, network: str, arrays: State) -> dict[str, RangeCounts]:
        names = self._model.trainable[network]
        return {
            f"{kind}/{part}": range_counts([arrays[names[place]] for place in places])
            for part, places in variables_by_layer(network, self._model.networks[network]).items()
        }

    # ---- on one replica --------------------------------------------------------------------------

    def _probe_replica(
        self, state: State, rows: Rows, step: jax.Array
    ) -> tuple[Numbers, list[State], Numbers]:
        """Scores of all rows; unscaled gradients of the whole batch, by phase; and
        single numbers.
        """
        task, noise = self._task, JaxStepNoise(self._spec.seed, step, jax.lax.axis_index(AXIS))
        values = host_values(rows, task.fields)
        with self._model.scope(state) as scope, step_scope(self._step.context(scope, noise, step)):
            inputs = task.workload.inputs(task.options, task.fields, values, noise)
            judged = task.workload.judge(task.options, self._model.networks, values, inputs)
        gathered = {
            name: jax.lax.all_gather(value.astype(jnp.float32), AXIS, tiled=True)
            for name, value in judged.values.items()
        }
        scalars = {name: value.astype(jnp.float32) for name, value in judged.scalars.items()}
        share = {name: array[: self._spec.batch_size_per_replica] for name, array in rows.items()}
        return gathered, self._gradients(state, share, step), jax.lax.pmean(scalars, AXIS)

    def _gradients(self, state: State, rows: Rows, step: jax.Array) -> list[State]:
        gradients = []
        for place, phase in enumerate(self._task.program.phases):
            scaled, _, _ = self._step.gradients(place, state, rows, step)
            summed = jax.lax.psum(scaled, AXIS)
            unscaled: State = {}
            for update in phase.updates:
                scale = self._step.loss_scale(update.network, state)
                unscaled |= {
                    name: summed[name] / scale for name in self._model.trainable[update.network]
                }
            gradients.append(unscaled)
        return gradients


def range_counts(tensors: list[jax.Array]) -> RangeCounts:
    """Counts and range over all values, as `range_counts` of tf/inference.py."""
    flat = jnp.concatenate([tensor.reshape(-1).astype(jnp.float32) for tensor in tensors])
    low, high = flat.min(), flat.max()
    high = jnp.maximum(high, low + jnp.maximum(1e-12, 1e-5 * jnp.abs(low)))
    bins = jnp.clip(
        ((flat - low) / (high - low) * WEIGHT_BINS).astype(jnp.int32), 0, WEIGHT_BINS - 1
    )
    # One pass per bin, since accelerators are slow at scattering millions of values into a few
    # bins.
    at_least = jax.lax.map(lambda number: (bins >= number).sum(), jnp.arange(WEIGHT_BINS + 1))
    return at_least[:-1] - at_least[1:], jnp.stack([low, high])


def bin_counts(values: NDArray[Any], low: float, high: float) -> NDArray[Any]:
    """int (bins,): scores in each bin."""
    bins = np.clip(((values - low) / (high - low) * SCORE_BINS).astype(int), 0, SCORE_BINS - 1)
    return np.bincount(bins, minlength=SCORE_BINS)


def _ends(values: NDArray[Any]) -> tuple[float, float]:
    """The lowest and the highest value, slightly apart if all are equal."""
    low = float(values.min())
    return low, max(float(values.max()), low + max(1e-12, 1e-5 * abs(low)))


def _norm(tensors: list[jax.Array]) -> jax.Array:
    return jnp.sqrt(sum(jnp.square(tensor).sum() for tensor in tensors))


# ---- samples -------------------------------------------------------------------------------------

Arrays = dict[str, NDArray[Any]]


class JaxSampler:
    """Runs the networks on equal chunks of at least SAMPLES rows, with one program for all."""

    def __init__(
        self, task: EngineTask, mesh: Mesh, model: JaxModel, step: JaxReplicaStep, data: DataSet
    ) -> None:
        self._task, self._model, self._step = task, model, step
        self._rows = SAMPLES + -SAMPLES % mesh.size
        self._fixed = fixed_inputs(task.workload, task.options, data)
        by_replica = PartitionSpec(AXIS)
        self._shared = NamedSharding(mesh, by_replica)
        specs = (REPLICATED, by_replica, *[REPLICATED] * 3)
        self._call = jax.jit(
            jax.shard_map(
                self._on_replica, mesh=mesh, in_specs=specs, out_specs=REPLICATED, check_vma=False
            )
        )

    def sample(self, state: State, step: int) -> Arrays:
        """The outputs for the fixed inputs, after `step` steps: named arrays (64, …)."""
        return self.generate(state, self._fixed, step)

    def generate(
        self, state: State, inputs: Mapping[str, NDArray[Any]], step: int, seed: int = 0
    ) -> Arrays:
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
            self._chunk(state, chunk, size, (place * self._rows, seed % 2**31, step))
            for place, (chunk, size) in enumerate(chunks(typed, self._rows))
        ]
        return {name: np.concatenate([part[name] for part in chunked]) for name in chunked[0]}

    def _chunk(self, state: State, inputs: Arrays, size: int, scalars: tuple[int, ...]) -> Arrays:
        outputs = self._call(state, put_on_devices(inputs, self._shared), *map(np.int32, scalars))
        return {name: np.asarray(array)[:size] for name, array in outputs.items()}

    def _on_replica(
        self, state: State, inputs: Rows, first: jax.Array, seed: jax.Array, step: jax.Array
    ) -> Numbers:
        task, networks = self._task, self._model.networks
        if task.spec.samples_from == "ema":
            networks = {**networks, **self._model.averages}
        noise = JaxRequestNoise(seed, jax.lax.axis_index(AXIS), first)
        with self._model.scope(state) as scope, step_scope(self._step.context(scope, noise, step)):
            outputs = task.workload.show(task.options, networks, inputs, noise)
        return {
            name: jax.lax.all_gather(array, AXIS, tiled=True) for name, array in outputs.items()
        }
