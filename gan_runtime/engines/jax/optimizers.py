"""Keras' optimizers for the JAX engine. They get gradients that are summed over the replicas already, and clip those."""

from __future__ import annotations

import keras

from gan_runtime.engines.optimizer_constants import LOSS_SCALE_GROWTH_STEPS, RMSPROP_RHO
from gan_runtime.engines.rmsprop import RMSprop
from gan_runtime.engines.schedules import StepRate
from gan_runtime.spec import RunSpec


def make_optimizer(spec: RunSpec, network: str, rate: StepRate) -> keras.optimizers.Optimizer:
    """The optimizer of one network, not yet built; with a loss scale in float16."""
    common = {
        "learning_rate": rate,
        "global_clipnorm": spec.clip_norm or None,
        "name": f"optimizer_{network}",
    }
    if spec.optimizer == "adam":
        inner = keras.optimizers.Adam(beta_1=spec.adam_beta_1, beta_2=spec.adam_beta_2, **common)
    elif spec.optimizer == "sgd":
        inner = keras.optimizers.SGD(momentum=spec.momentum, **common)
    else:
        inner = RMSprop(spec.rmsprop_epsilon, rho=RMSPROP_RHO, **common)
    if spec.precision != "mixed_float16":
        return inner
    return keras.optimizers.LossScaleOptimizer(
        inner, dynamic_growth_steps=LOSS_SCALE_GROWTH_STEPS, name=f"loss_scale_{network}"
    )
