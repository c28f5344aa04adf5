"""The tensorflow engine: a custom loop on tf.distribute, many steps inside one tf.function.

Measured traps that shape it (TensorFlow 2.21, Keras 3.15): a Keras optimizer sums gradients over replicas by itself, so
each loss is divided by the number of replicas, once; LossScaleOptimizer looks at replica 0 alone, so an overflow
anywhere is spread to all first; XLA cannot compile the update of several CPU replicas, so only forward and backward are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np
import tensorflow as tf

from gan_runtime.data.contract import ImageSet
from gan_runtime.engines import tf_histograms as histograms
from gan_runtime.engines.contract import Arrays, BinCounts, StepNumbers
from gan_runtime.engines.tf_devices import make_strategy
from gan_runtime.engines.tf_input import distributed_batches
from gan_runtime.engines.tf_noise import StepNoise
from gan_runtime.errors import CheckpointError
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Phase, Workload
from gan_runtime.workloads.noise import noise_scope

SAMPLES = 64  # an 8 × 8 grid
PROBE_IMAGES = 256
SCORE_BINS = 40
WEIGHT_BINS = 60
SCORE_RANGE = (0.0, 1.0)


class TfEngine:
    """See `engines.contract.Engine`. `accelerator` is the resolved one: cpu, gpu or tpu."""

    def __init__(self, spec: RunSpec, workload: Workload, data: ImageSet, accelerator: str) -> None:
        self._spec, self._workload, self._images = spec, workload, data.images
        self._strategy = make_strategy(spec, accelerator)
        self._replicas = self._strategy.num_replicas_in_sync
        self._step = 0
        self._metrics: list[str] = []
        self._iterator: Any = None
        keras.utils.set_random_seed(spec.seed)
        keras.config.set_dtype_policy(spec.precision)
        with self._strategy.scope():
            self._networks = workload.networks()
            self._optimizers = {name: self._optimizer(name) for name in self._networks}
        self._gradients = [self._compiled(phase) for phase in workload.phases]
        self._call = tf.function(self._train_call, reduce_retracing=True)
        self._probe_call = tf.function(self._probe_replica)
        self._sample_call = tf.function(self._sample_replica)
        self._average_call = tf.function(self._average_statistics)

    # ---- the contract -------------------------------------------------------------------------------------------

    def trace(self) -> None:
        """Builds the graph of the training call without running it."""
        if self._iterator is None:
            self._iterator = distributed_batches(self._strategy, self._spec, self._images, self._step)
        self._call.get_concrete_function(self._iterator, *self._counters(1))

    def run(self, steps: int) -> StepNumbers:
        """Trains `steps` steps; metric → float32 (steps,), the mean over the replicas."""
        begin = time.perf_counter()
        numbers = self._call(self._iterator, *self._counters(steps)).numpy()
        self._step += steps
        values = {metric: numbers[:, column] for column, metric in enumerate(self._metrics)}
        return StepNumbers(values, time.perf_counter() - begin)

    def probe(self) -> list[BinCounts]:
        """Histograms of D's scores, and of weights and gradients of each network, on the first images of the set."""
        self._average()
        found = self._strategy.run(self._probe_call, args=(self._probe_batch(), self._counters(1)[0]))
        local = tf.nest.map_structure(lambda value: self._strategy.experimental_local_results(value)[0].numpy(), found)
        return [_bin_counts(name, counts, low_high) for name, (counts, low_high) in sorted(local.items())]

    def sample(self) -> np.ndarray:
        """float32 (64, height, width, channels) in [-1, 1], of latents that the seed alone fixes."""
        self._average()
        shares = self._strategy.experimental_local_results(self._strategy.run(self._sample_call))
        return np.concatenate([share.numpy() for share in shares])[:SAMPLES]

    def state(self) -> Arrays:
        """Named arrays of every network and optimizer, and the number of steps done."""
        self._average()
        arrays: Arrays = {name: np.asarray(variable) for name, variable in self._variables().items()}
        return {**arrays, "step": np.asarray(self._step, np.int64)}

    def load(self, arrays: Arrays) -> None:
        """Takes up a state; must come before `trace`."""
        variables = self._variables()
        if set(arrays) != {*variables, "step"}:
            odd = sorted(set(arrays) ^ {*variables, "step"})[:3]
            raise CheckpointError(
                f"the checkpoint does not fit this run's networks and optimizers (differs in {', '.join(odd)}): start a new run."
            )
        for name, variable in variables.items():
            if tuple(arrays[name].shape) != tuple(variable.shape):
                raise CheckpointError(
                    f"the checkpoint's {name} has shape {arrays[name].shape}, the run's {tuple(variable.shape)}: start a new run."
                )
            variable.assign(arrays[name])
        self._step = int(arrays["step"])

    def describe(self) -> dict[str, object]:
        """Strategy, devices and versions."""
        return {
            "strategy": type(self._strategy).__name__,
            "devices": list(self._strategy.extended.worker_devices),
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "parameters": {name: network.count_params() for name, network in self._networks.items()},
        }

    # ---- one step -----------------------------------------------------------------------------------------------

    def _train_call(self, iterator: Any, first_step: tf.Tensor, steps: tf.Tensor) -> tf.Tensor:
        """float32 (steps, metrics)."""
        rows = tf.TensorArray(tf.float32, size=steps)
        for index in tf.range(steps):
            numbers = self._strategy.run(self._replica_step, args=(next(iterator), first_step + index))
            rows = rows.write(index, self._strategy.reduce(tf.distribute.ReduceOp.MEAN, numbers, axis=None))
        return rows.stack()

    def _replica_step(self, images: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        """One step on one replica: float32 (metrics,)."""
        numbers: dict[str, tf.Tensor] = {}
        for phase, gradients_of in zip(self._workload.phases, self._gradients, strict=True):
            gradients, phase_numbers = gradients_of(images, step, _replica_id(), self._loss_scales())
            for update in phase.updates:
                self._apply(update.network, gradients[update.network])
            numbers |= phase_numbers
        self._metrics = sorted(numbers)
        return tf.stack([numbers[metric] for metric in self._metrics])

    def _compiled(self, phase: Phase) -> Callable[..., Any]:
        def gradients(images: tf.Tensor, step: tf.Tensor, replica: tf.Tensor, scales: dict[str, tf.Tensor]) -> Any:
            return self._phase_gradients(phase, images, step, replica, scales)

        return tf.function(gradients, jit_compile=True) if self._spec.xla == "jit" else gradients

    def _phase_gradients(
        self, phase: Phase, images: tf.Tensor, step: tf.Tensor, replica: tf.Tensor, scales: dict[str, tf.Tensor]
    ) -> tuple[dict[str, list[tf.Tensor]], dict[str, tf.Tensor]]:
        """Scaled gradients by network, and the phase's numbers, all of this replica's share of the batch."""
        noise = StepNoise(self._spec.seed, step, replica, self._replicas)
        with tf.GradientTape(persistent=len(phase.updates) > 1) as tape, noise_scope(noise):
            forward = phase.forward(self._networks, {"images": to_unit_range(images)}, noise)
            # Divided once here: the optimizer sums over the replicas.
            losses = {item.network: forward.losses[item.loss] * scales[item.network] / self._replicas for item in phase.updates}
        found = {name: tape.gradient(loss, self._networks[name].trainable_variables) for name, loss in losses.items()}
        return found, {**forward.losses, **forward.scalars}

    def _apply(self, network: str, gradients: list[tf.Tensor]) -> None:
        if self._spec.precision == "mixed_float16":
            gradients = _shared_overflow(gradients)
        self._optimizers[network].apply(gradients, self._networks[network].trainable_variables)

    # ---- probes -------------------------------------------------------------------------------------------------

    def _probe_replica(self, images: tf.Tensor, step: tf.Tensor) -> dict[str, tuple[tf.Tensor, tf.Tensor]]:
        context = tf.distribute.get_replica_context()
        noise = StepNoise(self._spec.seed, step, _replica_id(), self._replicas)
        latents = noise.normal(images.shape[0], self._workload.latent_size)
        scores = self._workload.scores(self._networks, {"images": to_unit_range(images)}, latents)
        found = {
            f"score/{name}": (
                context.all_reduce("sum", histograms.fixed(value, *SCORE_RANGE, SCORE_BINS)),
                tf.constant(SCORE_RANGE),
            )
            for name, value in scores.items()
        }
        for name, gradients in self._probe_gradients(images[: self._spec.batch_size_per_replica], step).items():
            found[f"gradient/{name}"] = histograms.ranged(gradients, WEIGHT_BINS)
        for name, network in self._networks.items():
            found[f"weight/{name}"] = histograms.ranged(
                [tf.convert_to_tensor(v) for v in network.trainable_variables], WEIGHT_BINS
            )
        return found

    def _probe_gradients(self, images: tf.Tensor, step: tf.Tensor) -> dict[str, list[tf.Tensor]]:
        """Gradients summed over the replicas, unscaled. The forward pass moves batch-norm statistics: they are put back."""
        before = [tf.identity(variable) for variable in self._statistics()]
        found: dict[str, list[tf.Tensor]] = {}
        scales = self._loss_scales()
        for phase in self._workload.phases:
            gradients, _ = self._phase_gradients(phase, images, step, _replica_id(), scales)
            for name, values in gradients.items():
                summed = tf.distribute.get_replica_context().all_reduce("sum", values)
                found[name] = [value / tf.cast(scales[name], value.dtype) for value in summed]
        for variable, value in zip(self._statistics(), before, strict=True):
            variable.assign(value)
        return found

    def _probe_batch(self) -> Any:
        share = max(1, min(PROBE_IMAGES, len(self._images)) // self._replicas)
        rows = self._images[: share * self._replicas].reshape(self._replicas, share, *self._images.shape[1:])
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(rows[context.replica_id_in_sync_group])
        )

    def _sample_replica(self) -> tf.Tensor:
        share = -(-SAMPLES // self._replicas)
        everyone = tf.random.stateless_normal([SAMPLES, self._workload.latent_size], [self._spec.seed, 0])
        padded = tf.pad(everyone, [[0, share * self._replicas - SAMPLES], [0, 0]])
        return self._workload.preview(self._networks, tf.slice(padded, [_replica_id() * share, 0], [share, -1]))

    def _average(self) -> None:
        if self._replicas > 1 and self._statistics():
            self._strategy.run(self._average_call)

    def _average_statistics(self) -> None:
        """Batch-norm statistics drift apart, since each replica sees its own share; one model needs one set of them."""
        context = tf.distribute.get_replica_context()
        for variable in self._statistics():
            variable.assign(context.all_reduce("mean", tf.identity(variable)))

    # ---- parts --------------------------------------------------------------------------------------------------

    def _optimizer(self, network: str) -> keras.optimizers.Optimizer:
        rates = {"generator": self._spec.learning_rate_generator, "discriminator": self._spec.learning_rate_discriminator}
        optimizer = keras.optimizers.Adam(rates[network], name=f"adam_{network}")
        if self._spec.precision == "mixed_float16":
            optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name=f"loss_scale_{network}")
        optimizer.build(self._networks[network].trainable_variables)  # before the first trace: variables cannot be made inside
        return optimizer

    def _loss_scales(self) -> dict[str, tf.Tensor]:
        return {
            name: tf.convert_to_tensor(getattr(optimizer, "dynamic_scale", 1.0), tf.float32)
            for name, optimizer in self._optimizers.items()
        }

    def _statistics(self) -> list[Any]:
        return [variable for network in self._networks.values() for variable in network.non_trainable_variables]

    def _variables(self) -> dict[str, Any]:
        networks = {f"{name}/{v.path}": v for name, network in self._networks.items() for v in network.variables}
        optimizers = {
            f"optimizer_{name}/{v.path}": v for name, optimizer in self._optimizers.items() for v in optimizer.variables
        }
        return networks | optimizers

    def _counters(self, steps: int) -> tuple[tf.Tensor, tf.Tensor]:
        return tf.constant(self._step, tf.int32), tf.constant(steps, tf.int32)


def to_unit_range(images: tf.Tensor) -> tf.Tensor:
    """uint8 0 to 255 → float32 -1 to 1, on the device, so that a quarter of the bytes travels."""
    return tf.cast(images, tf.float32) / 127.5 - 1.0


def _replica_id() -> tf.Tensor:
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.int32)


def _shared_overflow(gradients: list[tf.Tensor]) -> list[tf.Tensor]:
    """If a gradient overflowed on any replica, infinite on all: then all skip the step and lower the scale together."""
    overflow = tf.add_n([tf.reduce_sum(tf.cast(~tf.math.is_finite(gradient), tf.float32)) for gradient in gradients])
    anywhere = tf.distribute.get_replica_context().all_reduce("sum", overflow) > 0
    return [tf.where(anywhere, tf.cast(np.inf, gradient.dtype), gradient) for gradient in gradients]


def _bin_counts(name: str, counts: np.ndarray, low_high: np.ndarray) -> BinCounts:
    edges = np.linspace(float(low_high[0]), float(low_high[1]), len(counts) + 1)
    return BinCounts(name, edges, counts.astype(np.int64))


ENGINE = TfEngine
