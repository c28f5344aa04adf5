"""One training step on one replica: forward passes, gradients, updates, and the numbers that the step reports.

Measured traps that shape it (TensorFlow 2.21, Keras 3.15): the optimizers sum over the replicas, so each loss is divided by
their number, once; XLA cannot compile the update of several CPU replicas, so only forward and backward are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import tensorflow as tf

from gan_runtime.engines.objective import objective_of
from gan_runtime.engines.tf.kernels import CpuKernels, PlainKernels
from gan_runtime.engines.tf.noise import StepNoise
from gan_runtime.engines.tf.optimizers import shared_overflow
from gan_runtime.engines.tf.workers import NO_CLOCK, WaitClock
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Phase, Workload
from gan_runtime.workloads.step_context import Kernels, StepContext, step_scope

FORWARD_SCOPE, GRADIENT_SCOPE = (
    "forward",
    "gradients",
)  # profiles tell by them what an operation is for (step_profile.py)
Gradients = dict[str, list[tf.Tensor]]
Numbers = dict[str, tf.Tensor]


class ReplicaStep:
    """The networks and optimizers of a run, and what a step does to them. Called in replica context."""

    def __init__(
        self,
        spec: RunSpec,
        workload: Workload,
        networks: dict[str, Any],
        optimizers: dict[str, Any],
        replicas: int,
        accelerator: str,
        clock: WaitClock = NO_CLOCK,
    ) -> None:
        self._clock = clock
        self._spec, self._networks, self._optimizers, self._replicas = spec, networks, optimizers, replicas
        self._parts = spec.accumulation_steps
        self._kernels = _kernels(spec, replicas, accelerator)
        # Replicas that train alone follow the mean of their own share; otherwise the exchange adds up to the global mean.
        self._share = 1.0 if spec.sync_every_steps > 1 else 1.0 / replicas
        self.phases = workload.phases(objective_of(spec))
        self._gradients = [self._compiled(phase) for phase in self.phases]
        self.metrics: list[str] = []  # the order of the numbers; known once the step is traced

    def __call__(self, images: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        """Trains on uint8 (batches of real images · share of the batch, …); returns float32 (metrics,)."""
        numbers: Numbers = {}
        for phase, gradients_of in zip(self.phases, self._gradients, strict=True):
            gradients, phase_numbers = self._accumulated(gradients_of, self.real_batch(images, phase), step)
            self._clock.computed(tf.nest.flatten(gradients))
            for update in phase.updates:
                numbers |= self._rates(update.network)
                self._apply(update.network, gradients[update.network])
            numbers |= phase_numbers
        self.metrics = sorted(numbers)
        return self._clock.at_the_end(
            tf.stack([tf.cast(numbers[metric], tf.float32) for metric in self.metrics])
        )

    def real_batch(self, images: tf.Tensor, phase: Phase) -> tf.Tensor:
        """The replica's share of the batch of real images that belongs to a phase."""
        share = self._spec.batch_size_per_replica
        return images[phase.real_batch * share : (phase.real_batch + 1) * share]

    def gradients(
        self,
        phase: Phase,
        images: tf.Tensor,
        step: tf.Tensor,
        replica: tf.Tensor,
        part: tf.Tensor,
        scales: Numbers,
    ) -> tuple[Gradients, Numbers]:
        """Scaled gradients by network, and the phase's numbers, of one part of this replica's share of the batch."""
        share, number = replica * self._parts + part, self.phases.index(phase)
        noise = StepNoise(self._spec.seed, step, share, self._replicas * self._parts, number)
        context = StepContext(noise, self._kernels, input_gradient, weighted_gradient)
        followers = {
            item.loss: [other.network for other in phase.updates if other.loss == item.loss]
            for item in phase.updates
        }
        # A tape for each loss: one for all would follow D's loss back through G as well, and what exchanges numbers there
        # (synchronised batch norm) is never pruned from a graph, so that all of it would be computed for nothing.
        with ExitStack() as stack, step_scope(context), tf.name_scope(FORWARD_SCOPE):
            tapes = {loss: stack.enter_context(self._tape(networks)) for loss, networks in followers.items()}
            forward = phase.forward(self._networks, {"images": to_unit_range(images)}, noise)
            losses = {
                loss: forward.losses[loss] * scales[networks[0]] * self._share
                for loss, networks in followers.items()
            }
        found: Gradients = {}
        with tf.name_scope(GRADIENT_SCOPE):
            for loss, networks in followers.items():
                found |= tapes[loss].gradient(
                    losses[loss], {name: self._networks[name].trainable_variables for name in networks}
                )
        return found, {**forward.losses, **forward.scalars}

    def compiled_texts(self, image_shape: tuple[int, ...]) -> Iterator[tuple[str, str]]:
        """XLA's text of each phase's forward and backward pass on one replica: as handed to XLA, and as optimized by it.

        Compiles each phase once more. Nothing comes without xla=jit.
        """
        if self._spec.xla != "jit":
            return
        images = tf.zeros([self._spec.batch_size_per_replica // self._parts, *image_shape], tf.uint8)
        zero, scales = tf.constant(0), {name: tf.constant(1.0) for name in self._optimizers}
        for gradients in self._gradients:
            text_of = gradients.experimental_get_compiler_ir(images, zero, zero, zero, scales)  # type: ignore[attr-defined]
            yield text_of(stage="hlo"), text_of(stage="optimized_hlo")

    @contextmanager
    def _tape(self, networks: list[str]) -> Iterator[tf.GradientTape]:
        """Records what depends on the weights of these networks."""
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            for name in networks:
                tape.watch([variable.value for variable in self._networks[name].trainable_variables])
            yield tape

    def loss_scales(self) -> Numbers:
        """float32 by network; 1 without loss scaling."""
        return {
            name: tf.convert_to_tensor(getattr(optimizer, "dynamic_scale", 1.0), tf.float32)
            for name, optimizer in self._optimizers.items()
        }

    def _accumulated(
        self, gradients_of: Callable[..., Any], images: tf.Tensor, step: tf.Tensor
    ) -> tuple[Gradients, Numbers]:
        """Means over the parts of the batch, worked through one after another, so that memory holds one part at a time."""
        size = images.shape[0] // self._parts
        total: tuple[Gradients, Numbers] | None = None
        for part in range(self._parts):
            before = [] if total is None else tf.nest.flatten(total)
            with tf.control_dependencies(before):
                own = tf.identity(images[part * size : (part + 1) * size])
            # A tensor, not a number: XLA would compile the phase anew for each number.
            found = gradients_of(own, step, replica_id(), tf.constant(part), self.loss_scales())
            total = found if total is None else tf.nest.map_structure(tf.add, total, found)
        return total if self._parts == 1 else tf.nest.map_structure(lambda value: value / self._parts, total)  # type: ignore[return-value]

    def _compiled(self, phase: Phase) -> Callable[..., Any]:
        def gradients(
            images: tf.Tensor, step: tf.Tensor, replica: tf.Tensor, part: tf.Tensor, scales: Numbers
        ) -> Any:
            return self.gradients(phase, images, step, replica, part, scales)

        return tf.function(gradients, jit_compile=True) if self._spec.xla == "jit" else gradients

    def _apply(self, network: str, gradients: list[tf.Tensor]) -> None:
        if self._spec.precision == "mixed_float16":
            own = gradients
            gradients = self._clock.around(lambda: shared_overflow(own, network))
        self._optimizers[network].apply(gradients, self._networks[network].trainable_variables)

    def _rates(self, network: str) -> Numbers:
        """The rate, and in float16 the loss scale, of the update that comes next."""
        optimizer = self._optimizers[network]
        numbers = {f"learning_rate_{network}": optimizer.learning_rate}
        if self._spec.precision == "mixed_float16":
            numbers[f"loss_scale_{network}"] = tf.convert_to_tensor(optimizer.dynamic_scale)
        return numbers


def input_gradient(function: Callable[[tf.Tensor], tf.Tensor], inputs: tf.Tensor) -> tf.Tensor:
    """See `step_context.StepContext`."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        total = tf.reduce_sum(tf.cast(function(inputs), tf.float32))
    return tape.gradient(total, inputs)


def weighted_gradient(
    function: Callable[[tf.Tensor], tf.Tensor], inputs: tf.Tensor, weight_of: Callable[[tf.Tensor], tf.Tensor]
) -> tf.Tensor:
    """See `step_context.StepContext`."""

    @tf.custom_gradient
    def entrance(inputs: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def backward(upstream: tf.Tensor) -> tf.Tensor:
            weights = tf.reshape(weight_of(outputs), [-1] + [1] * (len(inputs.shape) - 1))
            return upstream * tf.cast(weights, upstream.dtype)

        return tf.identity(inputs), backward

    outputs = function(entrance(inputs))
    return outputs


def to_unit_range(images: tf.Tensor) -> tf.Tensor:
    """uint8 0 to 255 → float32 -1 to 1, on the device, so that a quarter of the bytes travels."""
    return tf.cast(images, tf.float32) / 127.5 - 1.0


def replica_id() -> tf.Tensor:
    """int32 number of this replica among all."""
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)


def _kernels(spec: RunSpec, replicas: int, accelerator: str) -> Kernels:
    synchronised = spec.batch_norm == "synchronised" and replicas > 1
    return (
        CpuKernels(synchronised) if accelerator == "cpu" and spec.xla == "off" else PlainKernels(synchronised)
    )
