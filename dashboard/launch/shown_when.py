"""Which shared options have an effect in the present setting: one literal table. Those of workloads say it.

An option that is missing here always has one. Values are read as they stand in the form, so numbers may be text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gan_runtime.base.options import Above, OneOf, Option

SEVERAL_REPLICAS = Above(("replicas", "workers"), 1, "several replicas")

SHOWN_WHEN: dict[str, OneOf | Above] = {
    "loop": OneOf("engine", ("auto", "tensorflow"), "TensorFlow"),
    "tpu_address": OneOf("accelerator", ("tpu",), "a TPU"),
    "adam_beta_1": OneOf("optimizer", ("adam",), "Adam"),
    "adam_beta_2": OneOf("optimizer", ("adam",), "Adam"),
    "rmsprop_epsilon": OneOf("optimizer", ("rmsprop",), "RMSprop"),
    "momentum": OneOf("optimizer", ("sgd",), "SGD"),
    "restart_epochs": OneOf("learning_rate_schedule", ("cosine_restarts",), "the cosine schedule"),
    "reference_batch": OneOf("learning_rate_scaling", ("linear", "sqrt"), "rates by batch"),
    "samples_from": Above(("ema_decay",), 0, "a moving average"),
    "batch_norm": SEVERAL_REPLICAS,
    "all_reduce_type": SEVERAL_REPLICAS,
    "sync_every_steps": SEVERAL_REPLICAS,
    "count_kernels": OneOf("xla", ("jit",), "XLA jit"),
    "all_reduce_pack_mb": Above(("workers",), 1, "several workers"),
}


def needed(option: Option) -> OneOf | Above | None:
    """What must be set so that an option has an effect; None where it always has one."""
    return option.needs or SHOWN_WHEN.get(option.name)


def has_effect(option: Option, form: Mapping[str, Any]) -> bool:
    """Whether changing the option would change the run as it stands in the form."""
    need = needed(option)
    return need is None or need.holds(form)
