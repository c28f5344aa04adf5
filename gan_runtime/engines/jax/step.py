"""One training step on one replica as a pure function: forward passes, gradients, updates, numbers.

Called inside `jax.shard_map`, where each replica has one share of the batch and the same weights.
Each phase has one all-reduce, of the gradients of all its networks together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import keras

from gan_runtime.base.metrics import LEARNING_RATE, LOSS_SCALE, of_network
from gan_runtime.engines.contract import RATE_FACTOR
from gan_runtime.engines.inputs import host_values
from gan_runtime.engines.jax.devices import AXIS
from gan_runtime.engines.jax.gpu_kernels import GpuKernels
from gan_runtime.engines.jax.inputs import JaxStepNoise, Rows
from gan_runtime.engines.jax.kernels import JaxCpuKernels
from gan_runtime.engines.jax.model import JaxModel, State
from gan_runtime.engines.jax.tpu_kernels import TpuKernels
from gan_runtime.engines.step_profile import PHASE_SCOPE
from gan_runtime.engines.task import EngineTask, forbid_weight_assignment
from gan_runtime.workloads.contract import Forward
from gan_runtime.workloads.step_context import (
    LayerKernels,
    StepContext,
    TrainingProgress,
    step_scope,
)

Numbers = dict[str, jax.Array]
Function = Callable[[jax.Array], jax.Array]


class JaxReplicaStep:
    """Changes the state of a run by one step.

    `replicas`: number of shares of the batch. `platform`: cpu, gpu or tpu.
    """

    def __init__(self, task: EngineTask, model: JaxModel, replicas: int, platform: str) -> None:
        self._task, self._spec, self._model, self._replicas = task, task.spec, model, replicas
        self._parts = task.spec.accumulation_steps
        kernels = {"cpu": JaxCpuKernels, "gpu": GpuKernels, "tpu": TpuKernels}[platform]
        self._kernels = kernels(
            AXIS if task.spec.batch_norm == "synchronised" and replicas > 1 else None
        )

    def __call__(self, state: State, rows: Rows, step: jax.Array) -> tuple[State, Numbers]:
        """Trains on stored rows (batches of the step, share of the batch, *shape) by field."""
        numbers: Numbers = {}
        for place, phase in enumerate(self._task.program.phases):
            batch = {name: array[phase.batch] for name, array in rows.items()}
            with jax.named_scope(PHASE_SCOPE.format(place)):
                gradients, statistics, reported = self._accumulated(place, state, batch, step)
            state = state | statistics
            summed = self.all_reduced(gradients)
            for update in phase.updates:
                numbers |= self._rates(update.network, state)
                state = state | self._updated(update.network, summed, state)
            numbers |= reported
        return state | self._updated_averages(state), {
            name: value.astype(jnp.float32) for name, value in numbers.items()
        }

    def gradients(
        self, place: int, state: State, rows: Rows, step: jax.Array, part: int | jax.Array = 0
    ) -> tuple[State, State, Numbers]:
        """The results of phase number `place`: scaled gradients by name, values that layers store,
        and numbers.

        `rows`: one part of this replica's share of the batch, as stored.
        """
        followers: dict[str, list[str]] = {}
        for update in self._task.program.phases[place].updates:
            followers.setdefault(update.followed(self._task.is_loss_scaled), []).append(
                update.network
            )
        gradients: State = {}
        statistics: State = {}
        numbers: Numbers = {}
        for loss, networks in followers.items():
            factor = self.loss_scale(networks[0], state) / self._replicas
            weights = {
                name: state[name] for network in networks for name in self._model.trainable[network]
            }

            def scaled(
                weights: State, loss: str = loss, factor: Any = factor
            ) -> tuple[jax.Array, tuple[State, Numbers]]:
                forward, statistics = self._forward(place, state | weights, rows, step, part)
                return forward.losses[loss] * factor, (
                    statistics,
                    {**forward.losses, **forward.scalars},
                )

            # A forward pass per loss; XLA merges their common parts.
            by_weight, (statistics, numbers) = jax.grad(scaled, has_aux=True)(weights)
            gradients |= by_weight
        return gradients, statistics, numbers

    def all_reduced(self, gradients: State) -> State:
        """Sums the gradients of the replicas' shares into those of the whole batch, float32."""
        if self._replicas == 1:  # a single replica sends nothing, so it rounds nothing
            return gradients
        with jax.named_scope("all_reduce_gradients"):
            narrow = jax.tree.map(
                lambda gradient: gradient.astype(self._spec.all_reduce_type), gradients
            )
            return jax.tree.map(lambda total: total.astype(jnp.float32), jax.lax.psum(narrow, AXIS))

    def loss_scale(self, network: str, state: State) -> jax.Array:
        """float32; 1 without loss scaling."""
        scale = getattr(self._model.optimizers[network], "dynamic_scale", None)
        return jnp.float32(1.0) if scale is None else state[f"optimizer_{network}/{scale.path}"]

    def context(
        self,
        scope: keras.StatelessScope,
        noise: JaxStepNoise,
        step: jax.Array,
        kernels: LayerKernels | None = None,
    ) -> StepContext:
        """The services for layers and losses inside `scope`. `step`: int32 from 0."""
        return StepContext(
            noise=noise,
            kernels=kernels,
            input_gradient=partial(self._input_gradient, scope),
            weighted_gradient=weighted_gradient,
            mean_over_replicas=lambda values: jax.lax.pmean(jax.lax.stop_gradient(values), AXIS),
            loss_scaling=self._task.is_loss_scaled,
            progress=TrainingProgress(step, self._task.steps),
        )

    # ---- one forward pass ------------------------------------------------------------------------

    def _forward(
        self, place: int, state: State, rows: Rows, step: jax.Array, part: int | jax.Array
    ) -> tuple[Forward, State]:
        share = jax.lax.axis_index(AXIS) * self._parts + part
        noise = JaxStepNoise(self._spec.seed, step, share, place)
        batch = host_values(rows, self._task.fields)
        with (
            self._model.scope(state) as scope,
            step_scope(self.context(scope, noise, step, self._kernels)),
        ):
            with forbid_weight_assignment(self._model.networks):
                forward = self._task.program.phases[place].forward(
                    self._model.networks, batch, noise
                )
            return forward, self._stored(scope)

    def _stored(self, scope: keras.StatelessScope) -> State:
        """The values that layers have stored in a scope."""
        return {
            name: scope.get_current_value(self._model.variables[name])
            for name in self._model.statistics
        }

    def _input_gradient(
        self, scope: keras.StatelessScope, function: Function, inputs: jax.Array
    ) -> jax.Array:
        """Values that layers store are returned by the differentiated function and then written to
        `scope`, as JAX requires.
        """
        outside = {
            name: scope.get_current_value(variable)
            for name, variable in self._model.variables.items()
        }

        def total(values: jax.Array) -> tuple[jax.Array, State]:
            with self._model.scope(outside) as inside:
                return function(values).astype(jnp.float32).sum(), self._stored(inside)

        gradient, stored = jax.grad(total, has_aux=True)(inputs)
        for name, value in stored.items():
            scope.add_update((self._model.variables[name], value))
        return gradient

    def _accumulated(
        self, place: int, state: State, rows: Rows, step: jax.Array
    ) -> tuple[State, State, Numbers]:
        """Means over the parts of the batch, computed one after another, so that memory holds one
        part.
        """
        if self._parts == 1:
            return self.gradients(place, state, rows, step)
        parts = jax.tree.map(lambda array: array.reshape(self._parts, -1, *array.shape[1:]), rows)

        def add(
            carried: tuple[State, Any], part: tuple[Rows, jax.Array]
        ) -> tuple[tuple[State, Any], None]:
            statistics, total = carried
            gradients, statistics, numbers = self.gradients(
                place, state | statistics, part[0], step, part[1]
            )
            return (statistics, jax.tree.map(jnp.add, total, (gradients, numbers))), None

        first = {name: array[0] for name, array in parts.items()}
        gradients, statistics, numbers = jax.eval_shape(
            lambda: self.gradients(place, state, first, step)
        )
        nothing = jax.tree.map(
            lambda shape: jnp.zeros(shape.shape, shape.dtype), (gradients, numbers)
        )
        before = {name: state[name] for name in statistics}
        (statistics, total), _ = jax.lax.scan(
            add, (before, nothing), (parts, jnp.arange(self._parts))
        )
        gradients, numbers = jax.tree.map(lambda value: value / self._parts, total)
        return gradients, statistics, numbers

    # ---- the updates -----------------------------------------------------------------------------

    def _updated(self, network: str, gradients: State, state: State) -> State:
        names, slots = self._model.trainable[network], self._model.slots[network]
        self._model.rate_factor = state[RATE_FACTOR]
        with jax.named_scope(f"optimizer_{network}"):
            weights, values = self._model.optimizers[network].stateless_apply(
                [state[name] for name in slots],
                [gradients[name] for name in names],
                [state[name] for name in names],
            )
        return dict(zip(names, weights, strict=True)) | dict(zip(slots, values, strict=True))

    def _rates(self, network: str, state: State) -> Numbers:
        """The rate, and in float16 the loss scale, of the next update."""
        self._model.rate_factor = state[RATE_FACTOR]
        with self._model.scope(state):
            rate = jnp.asarray(self._model.optimizers[network].learning_rate)
        numbers = {of_network(LEARNING_RATE, network): rate}
        if self._task.is_loss_scaled:
            numbers[of_network(LOSS_SCALE, network)] = self.loss_scale(network, state)
        return numbers

    def _updated_averages(self, state: State) -> State:
        """average ← decay · average + (1 - decay) · live, for every averaged weight."""
        decay = self._spec.ema_decay
        live = [
            name
            for network in self._task.averages
            for name in self._model.trainable.get(network, [])
        ]
        return {
            average: state[average] * decay + state[name] * (1.0 - decay)
            for name, average in self._model.in_average(live).items()
        }


def weighted_gradient(function: Function, inputs: jax.Array, weight_of: Function) -> jax.Array:
    """Assignments in `function` are lost: it must contain no batch norm."""
    whole, closed_over = jax.closure_convert(function, inputs)

    @jax.custom_vjp
    def outputs_of(inputs: jax.Array, *closed_over: jax.Array) -> jax.Array:
        return whole(inputs, *closed_over)

    def forward(inputs: jax.Array, *closed_over: jax.Array) -> tuple[jax.Array, Any]:
        outputs, way_back = jax.vjp(whole, inputs, *closed_over)
        return outputs, (outputs, way_back)

    def backward(residuals: Any, upstream: jax.Array) -> tuple[jax.Array, ...]:
        outputs, way_back = residuals
        by_inputs, *further = way_back(upstream)
        weights = weight_of(outputs).reshape(-1, *[1] * (by_inputs.ndim - 1))
        return (by_inputs * weights.astype(by_inputs.dtype), *further)

    outputs_of.defvjp(forward, backward)
    return outputs_of(inputs, *closed_over)
