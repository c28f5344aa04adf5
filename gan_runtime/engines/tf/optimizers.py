"""Keras optimizers with a different exchange between replicas: type of the numbers, clipping after
the sum, local steps.

A Keras optimizer sums gradients over replicas itself and clips BEFORE that sum (measured: a norm
limit of 1 gave an update of norm 2 on two replicas). Two private methods are overridden:
`_all_reduce_sum_gradients` corrects that, and `_distributed_tf_update_step` updates replicas in one
memory once. Keras is pinned for them, and tests/engines/test_tf_optimizers.py checks them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from gan_runtime.engines.optimizers import LOSS_SCALE_GROWTH_STEPS, RMSPROP_RHO, RMSprop, StepRate
from gan_runtime.engines.tf.strategy import NO_CLOCK, SharedMemoryMirroredStrategy, WaitClock
from gan_runtime.spec import RunSpec

GradientsAndVariables = list[tuple[tf.Tensor, Any]]


class GradientExchange:
    """Sums the gradients of one network over the replicas, then clips them. Called in replica
    context.
    """

    def __init__(self, spec: RunSpec, network: str, clock: WaitClock = NO_CLOCK) -> None:
        self._network, self._clip_norm, self._clock = network, spec.clip_norm, clock
        self._type = tf.dtypes.as_dtype(spec.all_reduce_type)
        self.is_alone = spec.sync_every_steps > 1  # each replica follows its own gradients

    def __call__(self, gradients: list[tf.Tensor]) -> list[tf.Tensor]:
        """Sums the gradients of the replicas' shares into those of the whole batch, float32."""
        replica = tf.distribute.get_replica_context()
        # A single replica sends nothing, so it rounds nothing.
        if not self.is_alone and replica.num_replicas_in_sync > 1:
            with tf.name_scope(f"all_reduce_{self._network}"):
                narrow = [tf.cast(gradient, self._type) for gradient in gradients]
                summed = self._clock.timed(
                    lambda: replica.all_reduce(tf.distribute.ReduceOp.SUM, narrow)
                )
                gradients = [tf.cast(gradient, tf.float32) for gradient in summed]
        if self._clip_norm:
            gradients, _ = tf.clip_by_global_norm(gradients, self._clip_norm)
        return gradients


class _Exchanging:
    """A mixin for Keras optimizers: replaces the sum over replicas, and the update in
    one memory.
    """

    exchange: GradientExchange

    def _all_reduce_sum_gradients(
        self, grads_and_vars: GradientsAndVariables
    ) -> GradientsAndVariables:
        gradients = self.exchange([gradient for gradient, _ in grads_and_vars])
        return list(zip(gradients, [variable for _, variable in grads_and_vars], strict=True))

    def _distributed_tf_update_step(
        self,
        distribution: tf.distribute.Strategy,
        grads_and_vars: GradientsAndVariables,
        learning_rate: tf.Tensor,
    ) -> None:
        """Updates replicas in one memory once: other copies of a weight take the buffer of the
        first.

        The optimizer's slots then change on the first replica only; nothing reads the others.
        """
        if self.exchange.is_alone or not isinstance(distribution, SharedMemoryMirroredStrategy):
            super()._distributed_tf_update_step(distribution, grads_and_vars, learning_rate)  # type: ignore[misc]
            return
        for gradient, variable in grads_and_vars:
            distribution.extended.update(
                variable, self._update_once(), args=(gradient, learning_rate), group=False
            )

    def _update_once(self) -> Callable[[Any, tf.Tensor, tf.Tensor], None]:
        """An update function for the copies of one variable, called for each in turn."""
        updated: list[tf.Tensor] = []

        def update(copy: Any, gradient: tf.Tensor, learning_rate: tf.Tensor) -> None:
            if updated:
                copy.assign(updated[0])
            else:
                self.update_step(gradient, copy, learning_rate)  # type: ignore[attr-defined]
                updated.append(copy.read_value())

        return update


class ExchangingAdam(_Exchanging, keras.optimizers.Adam):
    """Kingma and Ba 2015, as one fused operation a variable instead of Keras' sixteen."""

    def update_step(self, gradient: tf.Tensor, variable: Any, learning_rate: tf.Tensor) -> None:
        """Algorithm 1 with both bias corrections in the rate (end of section 2), as in Keras; g:
        the gradient, t: updates so far.

        m ← β₁ m + (1 - β₁) g
        v ← β₂ v + (1 - β₂) g²
        w ← w - rate · √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε)
        """
        index = self._get_variable_index(variable)
        updates_done = tf.cast(tf.convert_to_tensor(self.iterations) + 1, tf.float32)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=tf.pow(tf.constant(self.beta_1, tf.float32), updates_done),
            beta2_power=tf.pow(tf.constant(self.beta_2, tf.float32), updates_done),
            lr=tf.cast(learning_rate, tf.float32),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=gradient,
        )


class ExchangingSGD(_Exchanging, keras.optimizers.SGD):
    """SGD, with or without momentum."""


class ExchangingRMSprop(_Exchanging, RMSprop):
    """Tieleman and Hinton 2012, with either place of epsilon."""


def make_optimizer(
    spec: RunSpec, network: str, rate: StepRate, clock: WaitClock = NO_CLOCK
) -> keras.optimizers.Optimizer:
    """The unbuilt optimizer of one network, with a loss scale in float16."""
    name = f"optimizer_{network}"
    inner: Any
    if spec.optimizer == "adam":
        inner = ExchangingAdam(rate, beta_1=spec.adam_beta_1, beta_2=spec.adam_beta_2, name=name)
    elif spec.optimizer == "sgd":
        inner = ExchangingSGD(rate, momentum=spec.momentum, name=name)
    else:
        inner = ExchangingRMSprop(
            spec.rmsprop_epsilon, learning_rate=rate, rho=RMSPROP_RHO, name=name
        )
    inner.exchange = GradientExchange(spec, network, clock)
    if spec.precision != "mixed_float16":
        return inner
    return keras.optimizers.LossScaleOptimizer(
        inner, dynamic_growth_steps=LOSS_SCALE_GROWTH_STEPS, name=f"loss_scale_{network}"
    )


def shared_overflow(gradients: list[tf.Tensor], network: str) -> list[tf.Tensor]:
    """Gradients that are infinite on all replicas if one has overflowed on any: then all skip the
    step and lower the scale together.

    LossScaleOptimizer itself checks replica 0 only (measured: an overflow on replica 1 reached all
    weights).
    """
    overflow = tf.add_n(
        [tf.reduce_sum(tf.cast(~tf.math.is_finite(gradient), tf.float32)) for gradient in gradients]
    )
    with tf.name_scope(f"all_reduce_{network}"):
        anywhere = tf.distribute.get_replica_context().all_reduce("sum", overflow) > 0
    return [
        tf.where(anywhere, tf.cast(math.inf, gradient.dtype), gradient) for gradient in gradients
    ]
