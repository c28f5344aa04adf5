"""One training step on one replica as a pure function: forward passes, gradients, updates, and the numbers it reports.

Called inside `jax.shard_map`, where each replica has its own share of the batch and the same weights. Per phase there is one
all-reduce, of the gradients of all its networks together.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from gan_runtime.engines.jax.kernels import CpuKernels, JaxKernels
from gan_runtime.engines.jax.model import RATE_FACTOR, Model, State
from gan_runtime.engines.jax.noise import StepNoise
from gan_runtime.engines.jax.tpu_kernels import TpuKernels
from gan_runtime.engines.objective import objective_of
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Forward, Phase, Workload
from gan_runtime.workloads.step_context import StepContext, step_scope

AXIS = "replicas"  # of the mesh
Numbers = dict[str, jax.Array]


class ReplicaStep:
    """What a step does to the state of a run. `replicas`: over how many the batch is shared; `platform`: cpu, gpu or tpu."""

    def __init__(self, spec: RunSpec, workload: Workload, model: Model, replicas: int, platform: str) -> None:
        self._spec, self._model, self._replicas = spec, model, replicas
        self._parts = spec.accumulation_steps
        kernels = {"cpu": CpuKernels, "tpu": TpuKernels}.get(platform, JaxKernels)
        self._kernels = kernels(AXIS if spec.batch_norm == "synchronised" and replicas > 1 else None)
        self.phases = workload.phases(objective_of(spec))

    def __call__(self, state: State, images: jax.Array, step: jax.Array) -> tuple[State, Numbers]:
        """Trains on uint8 (batches of real images, share of the batch, …)."""
        numbers: Numbers = {}
        for phase in self.phases:
            gradients, statistics, found = self._accumulated(phase, state, images[phase.real_batch], step)
            state = state | statistics
            summed = self.exchanged(gradients)
            for update in phase.updates:
                numbers |= self._rates(update.network, state)
                state = state | self._updated(update.network, summed, state)
            numbers |= found
        return state | self._followed(state), {
            name: value.astype(jnp.float32) for name, value in numbers.items()
        }

    def gradients(
        self, phase: Phase, state: State, images: jax.Array, step: jax.Array, part: int | jax.Array = 0
    ) -> tuple[State, State, Numbers]:
        """Scaled gradients by name, batch-norm statistics, and numbers, of one part of this replica's share of the batch."""
        found: State = {}
        statistics: State = {}
        numbers: Numbers = {}
        for loss in dict.fromkeys(update.loss for update in phase.updates):
            networks = [update.network for update in phase.updates if update.loss == loss]
            factor = self.loss_scale(networks[0], state) / self._replicas
            weights = {name: state[name] for network in networks for name in self._model.trainable[network]}

            def scaled(
                weights: State, loss: str = loss, factor: Any = factor
            ) -> tuple[jax.Array, tuple[State, Numbers]]:
                forward, statistics = self._forward(phase, state | weights, images, step, part)
                return forward.losses[loss] * factor, (statistics, {**forward.losses, **forward.scalars})

            # A forward pass for each loss; XLA makes one of what they have in common.
            by_weight, (statistics, numbers) = jax.grad(scaled, has_aux=True)(weights)
            found |= by_weight
        return found, statistics, numbers

    def exchanged(self, gradients: State) -> State:
        """Those of a replica's share of the loss → those of the whole batch, float32."""
        if self._replicas == 1:  # a single replica sends nothing, so it rounds nothing
            return gradients
        with jax.named_scope("all_reduce_gradients"):
            narrow = jax.tree.map(lambda gradient: gradient.astype(self._spec.all_reduce_type), gradients)
            return jax.tree.map(lambda total: total.astype(jnp.float32), jax.lax.psum(narrow, AXIS))

    def loss_scale(self, network: str, state: State) -> jax.Array:
        """float32; 1 without loss scaling."""
        scale = getattr(self._model.optimizers[network], "dynamic_scale", None)
        return jnp.float32(1.0) if scale is None else state[f"optimizer_{network}/{scale.path}"]

    # ---- one forward pass ---------------------------------------------------------------------------------------

    def _forward(
        self, phase: Phase, state: State, images: jax.Array, step: jax.Array, part: int | jax.Array
    ) -> tuple[Forward, State]:
        share = jax.lax.axis_index(AXIS) * self._parts + part
        noise = StepNoise(self._spec.seed, step, share, self.phases.index(phase))
        context = StepContext(noise, self._kernels, input_gradient, weighted_gradient)
        with self._model.scope(state) as scope, step_scope(context):
            forward = phase.forward(self._model.networks, {"images": to_unit_range(images)}, noise)
        return forward, {
            name: scope.get_current_value(self._model.variables[name]) for name in self._model.statistics
        }

    def _accumulated(
        self, phase: Phase, state: State, images: jax.Array, step: jax.Array
    ) -> tuple[State, State, Numbers]:
        """Means over the parts of the batch, worked through one after another, so that memory holds one part at a time."""
        if self._parts == 1:
            return self.gradients(phase, state, images, step)
        parts = images.reshape(self._parts, -1, *images.shape[1:])

        def add(
            carried: tuple[State, Any], part: tuple[jax.Array, jax.Array]
        ) -> tuple[tuple[State, Any], None]:
            statistics, total = carried
            gradients, statistics, numbers = self.gradients(phase, state | statistics, part[0], step, part[1])
            return (statistics, jax.tree.map(jnp.add, total, (gradients, numbers))), None

        gradients, statistics, numbers = jax.eval_shape(lambda: self.gradients(phase, state, parts[0], step))
        nothing = jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), (gradients, numbers))
        before = {name: state[name] for name in statistics}
        (statistics, total), _ = jax.lax.scan(add, (before, nothing), (parts, jnp.arange(self._parts)))
        gradients, numbers = jax.tree.map(lambda value: value / self._parts, total)
        return gradients, statistics, numbers

    # ---- the updates --------------------------------------------------------------------------------------------

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
        """The rate, and in float16 the loss scale, of the update that comes next."""
        self._model.rate_factor = state[RATE_FACTOR]
        with self._model.scope(state):
            rate = jnp.asarray(self._model.optimizers[network].learning_rate)
        numbers = {f"learning_rate_{network}": rate}
        if self._spec.precision == "mixed_float16":
            numbers[f"loss_scale_{network}"] = self.loss_scale(network, state)
        return numbers

    def _followed(self, state: State) -> State:
        """Moves the averaged generator one step towards the one in training."""
        decay = self._spec.ema_decay
        live = self._model.trainable["generator"] if decay else []
        kept = {name: name.replace("generator", "average", 1) for name in live}
        return {
            average: state[average] * decay + state[name] * (1.0 - decay) for name, average in kept.items()
        }


def input_gradient(function: Callable[[jax.Array], jax.Array], inputs: jax.Array) -> jax.Array:
    """See `step_context.StepContext`."""
    return jax.grad(lambda values: function(values).astype(jnp.float32).sum())(inputs)


def weighted_gradient(
    function: Callable[[jax.Array], jax.Array], inputs: jax.Array, weight_of: Callable[[jax.Array], jax.Array]
) -> jax.Array:
    """See `step_context.StepContext`. What `function` assigns to variables is lost: no batch norm may stand in it."""
    whole, closed_over = jax.closure_convert(function, inputs)

    @jax.custom_vjp
    def outputs_of(inputs: jax.Array, *closed_over: jax.Array) -> jax.Array:
        return whole(inputs, *closed_over)

    def forward(inputs: jax.Array, *closed_over: jax.Array) -> tuple[jax.Array, Any]:
        outputs, way_back = jax.vjp(whole, inputs, *closed_over)
        return outputs, (outputs, way_back)

    def backward(kept: Any, upstream: jax.Array) -> tuple[jax.Array, ...]:
        outputs, way_back = kept
        by_inputs, *others = way_back(upstream)
        weights = weight_of(outputs).reshape(-1, *[1] * (by_inputs.ndim - 1))
        return (by_inputs * weights.astype(by_inputs.dtype), *others)

    outputs_of.defvjp(forward, backward)
    return outputs_of(inputs, *closed_over)


def to_unit_range(images: jax.Array) -> jax.Array:
    """uint8 0 to 255 → float32 -1 to 1, on the device, so that a quarter of the bytes travels."""
    return images.astype(jnp.float32) / 127.5 - 1.0
