"""What does not go with Keras' built-in training loop. As rules.py, where these stand among all others."""

from __future__ import annotations

from gan_runtime.base.errors import FieldError
from gan_runtime.catalog.entries import Rule


def keras_trains_with_tensorflow(loop: str, engine: str) -> FieldError | None:
    """The JAX engine is one program of many steps over all devices; Keras' trainer for JAX would be a third loop, which nobody asked for."""
    if loop != "keras" or engine != "jax":
        return None
    return FieldError(
        "loop",
        "loop is keras, but engine=jax runs its steps as one program of its own: use loop=custom, or engine=tensorflow.",
    )


def keras_trains_in_one_worker(loop: str, workers: int) -> FieldError | None:
    """Keras' train function has no place for what workers tell each other: who wishes to stop, and who is slow."""
    if loop != "keras" or workers == 1:
        return None
    return FieldError(
        "loop",
        f"loop is keras with {workers} workers, which could not agree there when to stop: use loop=custom, or workers=1 and more replicas.",
    )


def keras_exchanges_in_each_step(loop: str, sync_every_steps: int) -> FieldError | None:
    """Replicas that train alone are made one model between two steps, where Keras' loop does nothing."""
    if loop != "keras" or sync_every_steps == 1:
        return None
    return FieldError(
        "loop",
        f"loop is keras with sync_every_steps={sync_every_steps}, but Keras' loop exchanges gradients in each step: "
        "use loop=custom, or sync_every_steps=1.",
    )


def keras_counts_one_tpu_core(loop: str, accelerator: str) -> FieldError | None:
    """Under a TPUStrategy Keras' `reduce_per_replica` takes the numbers of the first core, elsewhere the mean."""
    if loop != "keras" or accelerator != "tpu":
        return None
    return FieldError("loop", NO_KERAS_LOOP_ON_A_TPU)


# Also for a spec whose accelerator `auto` turns out to be a TPU.
NO_KERAS_LOOP_ON_A_TPU = (
    "loop is keras, but on a TPU Keras reports the numbers of the first core alone: use loop=custom, "
    "or accelerator=cpu or gpu."
)
RULES: tuple[Rule, ...] = (
    keras_trains_with_tensorflow,
    keras_trains_in_one_worker,
    keras_exchanges_in_each_step,
    keras_counts_one_tpu_core,
)
