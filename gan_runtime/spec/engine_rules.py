"""What does not go with the JAX engine, and with Keras' built-in training loop.

As rules.py, where these stand among all others.
"""

from __future__ import annotations

from gan_runtime.base.errors import FieldError, quoted
from gan_runtime.catalog.entries import Rule


def keras_trains_with_tensorflow(loop: str, engine: str) -> FieldError | None:
    """The JAX engine is one program of many steps over all devices; Keras' trainer for JAX
    would be a third loop, which nobody asked for.
    """
    if loop != "keras" or engine != "jax":
        return None
    return FieldError(
        "loop",
        "loop is keras, but engine=jax runs its steps as one program of its own: use loop=custom,"
        " or engine=tensorflow.",
    )


def keras_trains_in_one_worker(loop: str, workers: int) -> FieldError | None:
    """Keras' train function has no place for what workers tell each other: who wishes to
    stop, and who is slow.
    """
    if loop != "keras" or workers == 1:
        return None
    return FieldError(
        "loop",
        f"loop is keras with {workers} workers, which could not agree there when to stop: use"
        " loop=custom, or workers=1 and more replicas.",
    )


def keras_exchanges_in_each_step(loop: str, sync_every_steps: int) -> FieldError | None:
    """Replicas that train alone are made one model between two steps, where Keras' loop does
    nothing.
    """
    if loop != "keras" or sync_every_steps == 1:
        return None
    return FieldError(
        "loop",
        f"loop is keras with sync_every_steps={sync_every_steps}, but Keras' loop exchanges"
        " gradients in each step: use loop=custom, or sync_every_steps=1.",
    )


def keras_counts_one_tpu_core(loop: str, accelerator: str) -> FieldError | None:
    """Under a TPUStrategy Keras' `reduce_per_replica` takes the numbers of the first core,
    elsewhere the mean.
    """
    if loop != "keras" or accelerator != "tpu":
        return None
    return FieldError("loop", NO_KERAS_LOOP_ON_A_TPU)


# Also for a spec whose accelerator `auto` turns out to be a TPU.
NO_KERAS_LOOP_ON_A_TPU = (
    "loop is keras, but on a TPU Keras reports the numbers of the first core alone: use"
    " loop=custom, or accelerator=cpu or gpu."
)


def jax_compiles_every_step(engine: str, xla: str) -> FieldError | None:
    """Clusters are TensorFlow's way to compile a part; JAX compiles all of it with XLA."""
    if engine != "jax" or xla != "autocluster":
        return None
    return FieldError(
        "xla",
        "xla is autocluster, but engine=jax compiles every step as a whole: use xla=off or jit,"
        " which are the same there.",
    )


def jax_replicas_train_in_step(engine: str, sync_every_steps: int) -> FieldError | None:
    """All devices run one program on one state; replicas that train alone would need one each."""
    if engine != "jax" or sync_every_steps == 1:
        return None
    return FieldError(
        "sync_every_steps",
        f"sync_every_steps is {sync_every_steps}, but with engine=jax all replicas share one state:"
        " use sync_every_steps=1, or engine=tensorflow.",
    )


def jax_profiles_no_steps(engine: str, profile_steps: int) -> FieldError | None:
    """Where a step's time goes is read from TensorFlow's profiles only."""
    if engine != "jax" or profile_steps == 0:
        return None
    return FieldError(
        "profile_steps",
        f"profile_steps is {profile_steps}, but engine=jax cannot tell where a step's time goes: "
        "use profile_steps=0, or engine=tensorflow.",
    )


def jax_trains_on_its_own_host(engine: str, tpu_address: str) -> FieldError | None:
    """A TPU elsewhere is reached through TensorFlow's resolver."""
    if engine != "jax" or tpu_address == "local":
        return None
    return FieldError(
        "tpu_address",
        f"tpu_address is {quoted(tpu_address)}, but engine=jax uses the TPU of its own host: use"
        " tpu_address=local.",
    )


RULES: tuple[Rule, ...] = (
    jax_compiles_every_step,
    jax_replicas_train_in_step,
    jax_profiles_no_steps,
    jax_trains_on_its_own_host,
    keras_trains_with_tensorflow,
    keras_trains_in_one_worker,
    keras_exchanges_in_each_step,
    keras_counts_one_tpu_core,
)
