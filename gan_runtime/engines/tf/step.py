"""One training step on one replica: forward passes, gradients, updates, and the numbers that the
step reports.

Measured (TensorFlow 2.21, Keras 3.15): the optimizers sum over the replicas, so each loss is
divided by their number, once; XLA cannot compile the update of several CPU replicas, so it compiles
only the forward and backward passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, cast

import tensorflow as tf

from gan_runtime.base.metrics import LEARNING_RATE, LOSS_SCALE, of_network
from gan_runtime.engines.step_profile import PHASE_SCOPE
from gan_runtime.engines.task import EngineTask, forbid_weight_assignment
from gan_runtime.engines.tf.inputs import Rows, TfStepNoise, values_of
from gan_runtime.engines.tf.kernels import layer_kernels
from gan_runtime.engines.tf.optimizers import shared_overflow
from gan_runtime.engines.tf.strategy import NO_CLOCK, WaitClock
from gan_runtime.workloads.contract import Noise, Phase
from gan_runtime.workloads.step_context import (
    LayerKernels,
    StepContext,
    TrainingProgress,
    step_scope,
)

# Profiles classify operations by these names (step_profile.py).
FORWARD_SCOPE, GRADIENT_SCOPE = "forward", "gradients"
Gradients = dict[str, list[tf.Tensor]]
Numbers = dict[str, tf.Tensor]


class TfReplicaStep:
    """Changes the networks of a run by one step. Called in replica context."""

    def __init__(
        self,
        task: EngineTask,
        networks: dict[str, Any],
        optimizers: dict[str, Any],
        replicas: int,
        accelerator: str,
        clock: WaitClock = NO_CLOCK,
    ) -> None:
        self._task, self._spec, self._clock = task, task.spec, clock
        self._networks, self._optimizers, self._replicas = networks, optimizers, replicas
        self._parts = task.spec.accumulation_steps
        self._kernels = layer_kernels(task.spec, replicas, accelerator)
        # Without an exchange each replica uses the mean over its share of the batch; with one, the
        # sum over replicas is the global mean.
        self._share = 1.0 if task.spec.sync_every_steps > 1 else 1.0 / replicas
        self.gradient_functions = [
            self._compiled(place) for place in range(len(task.program.phases))
        ]
        self.metrics: list[str] = []  # in the order of the numbers; empty until the step is traced

    def __call__(self, rows: Rows, step: tf.Tensor) -> tf.Tensor:
        """Trains on stored rows (batches of a step · share of the batch, …) by field; returns
        float32 (metrics,).
        """
        numbers: Numbers = {}
        for place, (phase, gradients_of) in enumerate(
            zip(self._task.program.phases, self.gradient_functions, strict=True)
        ):
            gradients, phase_numbers = self._accumulated(
                gradients_of, self.batch_of(rows, phase), step
            )
            # Otherwise, on replicas in one memory, a weight that only a reported number needs, and
            # no gradient, can be read after the update (measured with the loss of a Wasserstein
            # critic, whose gradient does not depend on its value).
            with tf.control_dependencies(list(phase_numbers.values())):
                gradients = tf.nest.map_structure(tf.identity, gradients)
            self._clock.set_own_work(tf.nest.flatten(gradients))
            for update in phase.updates:
                numbers |= self._rates(update.network)
                with tf.name_scope(PHASE_SCOPE.format(place)):
                    self._apply(update.network, gradients[update.network])
            numbers |= phase_numbers
        self.metrics = sorted(numbers)
        return self._clock.after_own_work(
            tf.stack([tf.cast(numbers[metric], tf.float32) for metric in self.metrics])
        )

    def batch_of(self, rows: Rows, phase: Phase) -> Rows:
        """The replica's share of the training batch of a phase."""
        share = self._spec.batch_size_per_replica
        begin = phase.batch * share
        return {name: array[begin : begin + share] for name, array in rows.items()}

    def context(
        self, noise: Noise, step: tf.Tensor, kernels: LayerKernels | None = None
    ) -> StepContext:
        """The services for layers and losses in this step. `step`: int32 from 0."""
        scaled, progress = self._task.is_loss_scaled, TrainingProgress(step, self._task.steps)
        slopes = input_gradient, weighted_gradient
        return StepContext(noise, kernels, *slopes, mean_over_replicas, scaled, progress)

    def gradients(
        self,
        place: int,
        rows: Rows,
        step: tf.Tensor,
        replica: tf.Tensor,
        part: tf.Tensor,
        scales: Numbers,
    ) -> tuple[Gradients, Numbers]:
        """The scaled gradients by network, and the numbers, of phase number `place`.

        `rows`: one part of this replica's share of the batch, as stored. `scales`: of
        `loss_scales`.
        """
        phase, share = self._task.program.phases[place], replica * self._parts + part
        noise = TfStepNoise(self._spec.seed, step, share, self._replicas * self._parts, place)
        context = self.context(noise, step, self._kernels)
        followers: dict[str, list[str]] = {}
        for update in phase.updates:
            followers.setdefault(update.followed(context.loss_scaling), []).append(update.network)
        # One tape per loss: a common tape would follow D's loss back through G as well, and an
        # exchange there (synchronized batch norm) is never pruned from a graph, so that pass would
        # be computed for nothing.
        scope = PHASE_SCOPE.format(place)
        with ExitStack() as stack, step_scope(context), tf.name_scope(f"{scope}/{FORWARD_SCOPE}"):
            tapes = {
                loss: stack.enter_context(self._tape(networks))
                for loss, networks in followers.items()
            }
            stack.enter_context(forbid_weight_assignment(self._networks))
            forward = phase.forward(self._networks, values_of(rows, self._task.fields), noise)
            losses = {
                loss: forward.losses[loss] * scales[networks[0]] * self._share
                for loss, networks in followers.items()
            }
        gradients: Gradients = {}
        with tf.name_scope(f"{scope}/{GRADIENT_SCOPE}"):
            for loss, networks in followers.items():
                weights = {name: self._networks[name].trainable_variables for name in networks}
                by_network = tapes[loss].gradient(losses[loss], weights)
                gradients |= {
                    name: [
                        _dense(*pair) for pair in zip(by_network[name], weights[name], strict=True)
                    ]
                    for name in networks
                }
        return gradients, {**forward.losses, **forward.scalars}

    def compiled_texts(self) -> Iterator[tuple[str, str]]:
        """XLA's text of each phase's forward and backward pass on one replica, before and after
        optimization. Compiles each phase once more; empty without xla=jit.
        """
        if self._spec.xla != "jit":
            return
        count = self._spec.batch_size_per_replica // self._parts
        rows = {
            name: tf.zeros([count, *field.shape], field.dtype)
            for name, field in self._task.fields.items()
        }
        zero, scales = tf.constant(0), {name: tf.constant(1.0) for name in self._optimizers}
        for gradients in self.gradient_functions:
            text_of = gradients.experimental_get_compiler_ir(rows, zero, zero, zero, scales)  # type: ignore[attr-defined]
            yield text_of(stage="hlo"), text_of(stage="optimized_hlo")

    @contextmanager
    def _tape(self, networks: list[str]) -> Iterator[tf.GradientTape]:
        """Records operations on the weights of these networks."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            for name in networks:
                tape.watch(
                    [variable.value for variable in self._networks[name].trainable_variables]
                )
            yield tape

    def loss_scales(self) -> Numbers:
        """The loss scale by network, float32; 1 without loss scaling."""
        return {
            name: tf.convert_to_tensor(getattr(optimizer, "dynamic_scale", 1.0), tf.float32)
            for name, optimizer in self._optimizers.items()
        }

    def _accumulated(
        self, gradients_of: Callable[..., Any], rows: Rows, step: tf.Tensor
    ) -> tuple[Gradients, Numbers]:
        """Means over the parts of the batch, computed one after another, so that memory holds one
        part.
        """
        size = self._spec.batch_size_per_replica // self._parts
        total: tuple[Gradients, Numbers] | None = None
        for part in range(self._parts):
            before = [] if total is None else tf.nest.flatten(total)
            with tf.control_dependencies(before):
                part_rows = {
                    name: tf.identity(array[part * size : (part + 1) * size])
                    for name, array in rows.items()
                }
            # A tensor, not a number: XLA would compile the phase again for each number.
            result = gradients_of(
                part_rows, step, replica_id(), tf.constant(part), self.loss_scales()
            )
            total = result if total is None else tf.nest.map_structure(tf.add, total, result)
        mean = (
            total
            if self._parts == 1
            else tf.nest.map_structure(lambda value: value / self._parts, total)
        )
        return cast(tuple[Gradients, Numbers], mean)

    def _compiled(self, place: int) -> Callable[..., Any]:
        def gradients(
            rows: Rows, step: tf.Tensor, replica: tf.Tensor, part: tf.Tensor, scales: Numbers
        ) -> Any:
            return self.gradients(place, rows, step, replica, part, scales)

        return (
            tf.function(gradients, jit_compile=True, autograph=False)
            if self._spec.xla == "jit"
            else gradients
        )

    def _apply(self, network: str, gradients: list[tf.Tensor]) -> None:
        if self._task.is_loss_scaled:
            local_gradients = gradients
            gradients = self._clock.timed(lambda: shared_overflow(local_gradients, network))
        self._optimizers[network].apply(gradients, self._networks[network].trainable_variables)

    def _rates(self, network: str) -> Numbers:
        """The rate, and in float16 the loss scale, of the next update."""
        optimizer = self._optimizers[network]
        numbers = {of_network(LEARNING_RATE, network): optimizer.learning_rate}
        if self._task.is_loss_scaled:
            numbers[of_network(LOSS_SCALE, network)] = tf.convert_to_tensor(optimizer.dynamic_scale)
        return numbers


def input_gradient(function: Callable[[tf.Tensor], tf.Tensor], inputs: tf.Tensor) -> tf.Tensor:
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(tf.cast(function(inputs), tf.float32))
    return tape.gradient(total, inputs)


def weighted_gradient(
    function: Callable[[tf.Tensor], tf.Tensor],
    inputs: tf.Tensor,
    weight_of: Callable[[tf.Tensor], tf.Tensor],
) -> tf.Tensor:

    @tf.custom_gradient
    def entrance(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def backward(upstream: tf.Tensor) -> tf.Tensor:
            weights = tf.reshape(weight_of(outputs), [-1] + [1] * (len(inputs.shape) - 1))
            return upstream * tf.cast(weights, upstream.dtype)

        return tf.identity(inputs), backward

    outputs = function(entrance(inputs))
    return outputs


def _dense(gradient: Any, variable: Any) -> tf.Tensor:
    """The gradient as a dense tensor. An embedding's gradient is slices, and None means no
    influence on the loss.
    """
    if gradient is None:
        return tf.zeros(variable.shape, variable.dtype)
    return gradient if isinstance(gradient, tf.Tensor) else tf.convert_to_tensor(gradient)


def mean_over_replicas(tensor: tf.Tensor) -> tf.Tensor:
    return tf.distribute.get_replica_context().all_reduce("mean", tensor)


def replica_id() -> tf.Tensor:
    """The int32 index of this replica among all."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)
