"""Rules across the options that all runs share. A new rule is a row of RULES.

A rule reads the options that its parameters name; it is checked only when each of them is valid.
Rules of one workload are in its catalog entry and may read shared options too.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from inspect import signature
from typing import Any

from gan_runtime.base.errors import FieldError, quoted
from gan_runtime.catalog.entries import Rule, refused


def batch_is_shared_evenly(
    batch_size_global: int, replicas: int, workers: int
) -> FieldError | None:
    """Losses are means over a replica's images: only equal shares add up to the batch mean."""
    shares = replicas * workers
    if batch_size_global % shares == 0:
        return None
    below = batch_size_global // shares * shares
    use = f"use {below} or {below + shares}" if below else f"use {shares}"
    who = (
        f"{replicas} replicas"
        if workers == 1
        else f"{workers} workers of {replicas} replica(s) each"
    )
    return FieldError(
        "batch_size_global",
        f"batch_size_global is {batch_size_global}, but {who} need a multiple of {shares}: {use}.",
    )


def parts_are_even(
    accumulation_steps: int, batch_size_global: int, replicas: int, workers: int
) -> FieldError | None:
    """A mean of unequal parts is not the mean of the batch."""
    share = batch_size_global // (replicas * workers)
    if batch_size_global % (replicas * workers) or share % accumulation_steps == 0:
        return None
    return FieldError(
        "accumulation_steps",
        f"accumulation_steps is {accumulation_steps}, but each replica has {share} images per step:"
        f" use a divisor of {share}.",
    )


def xla_compiles_the_loss_scaling(
    engine: str, precision: str, xla: str, replicas: int, workers: int
) -> FieldError | None:
    """float16 needs a loss scale that all replicas share (docs/gpu.md)."""
    if engine == "jax" or precision != "mixed_float16" or xla != "jit" or replicas * workers == 1:
        return None
    return FieldError(
        "xla",
        f"xla is jit with mixed_float16 on {replicas * workers} replicas, which TensorFlow cannot"
        " combine: use mixed_bfloat16, or xla=off.",
    )


def xla_compiles_the_batch_norm(
    engine: str, batch_norm: str, xla: str, replicas: int, workers: int
) -> FieldError | None:
    """TensorFlow compiles no function that exchanges between replicas (measured: RuntimeError
    on merge_call).
    """
    if engine == "jax" or batch_norm != "synchronised" or xla != "jit" or replicas * workers == 1:
        return None
    return FieldError(
        "xla",
        f"xla is jit with batch_norm=synchronised on {replicas * workers} replicas, which"
        " TensorFlow cannot combine: use batch_norm=per_replica, or xla=off.",
    )


def workers_can_exchange(engine: str, accelerator: str, workers: int) -> FieldError | None:
    """MultiWorkerMirroredStrategy is for CPUs and GPUs; JAX runs one process on each host of a
    larger TPU (docs/cluster.md).
    """
    if engine == "jax" or accelerator != "tpu" or workers == 1:
        return None
    return FieldError("workers", no_tpu_workers(workers))


def cpu_workers_have_one_replica(
    engine: str, accelerator: str, replicas: int, workers: int
) -> FieldError | None:
    """Measured: MultiWorkerMirroredStrategy uses only the first CPU device of a worker."""
    if engine == "jax" or accelerator != "cpu" or replicas == 1 or workers == 1:
        return None
    return FieldError("replicas", one_replica_per_cpu_worker(replicas, workers))


def jax_trains_on_its_own_host(engine: str, tpu_address: str) -> FieldError | None:
    """A remote TPU is reached through TensorFlow's resolver."""
    if engine != "jax" or tpu_address == "local":
        return None
    return FieldError(
        "tpu_address",
        f"tpu_address is {quoted(tpu_address)}, but engine=jax uses the TPU of this host: use"
        " tpu_address=local.",
    )


# These three also refuse a spec whose accelerator `auto` resolves to a TPU or to the CPU.
NO_KERAS_LOOP_ON_A_TPU = (
    "loop is keras, but on a TPU Keras reports the numbers of the first core alone: use"
    " loop=custom, or accelerator=cpu or gpu."
)


def no_tpu_workers(workers: int) -> str:
    return (
        f"workers is {workers}, but the cores of a TPU are the replicas of one worker: use"
        " workers=1 and more replicas."
    )


def one_replica_per_cpu_worker(replicas: int, workers: int) -> str:
    return (
        f"replicas is {replicas}, but TensorFlow runs one replica per CPU worker: use replicas=1"
        f" and workers={replicas * workers}, or workers=1."
    )


RULES: tuple[Rule, ...] = (
    batch_is_shared_evenly,
    # A TPU computes in bfloat16 and float32 only.
    refused(
        "precision",
        lambda accelerator, precision: accelerator == "tpu" and precision == "mixed_float16",
        "precision is mixed_float16, but a TPU has no float16 arithmetic: use mixed_bfloat16 or"
        " float32.",
    ),
    xla_compiles_the_loss_scaling,
    xla_compiles_the_batch_norm,
    # Clusters are parts of a graph; a TPU compiles all of it.
    refused(
        "xla",
        lambda accelerator, xla: accelerator == "tpu" and xla == "autocluster",
        "xla is autocluster, but a TPU compiles whole steps: use xla=off or xla=jit, which are the"
        " same there.",
    ),
    # Measured: with these flags TensorFlow cannot open the input of one of several workers.
    refused(
        "xla",
        lambda xla, workers: xla == "autocluster" and workers > 1,
        "xla is autocluster with {workers} workers, which TensorFlow cannot combine: use xla=off"
        " or jit, or workers=1.",
    ),
    # Adam has beta 1 instead, and CERN's RMSprop has none.
    refused(
        "momentum",
        lambda optimizer, momentum: optimizer != "sgd" and momentum != 0.0,
        "momentum is {momentum:g}, but only optimizer=sgd has one: use momentum=0, or"
        " optimizer=sgd.",
    ),
    refused(
        "samples_from",
        lambda samples_from, ema_decay: samples_from != "live" and ema_decay <= 0.0,
        "samples_from is ema, but ema_decay is 0: set ema_decay to about 0.999, or"
        " samples_from=live.",
    ),
    parts_are_even,
    refused(
        "sync_every_steps",
        lambda sync_every_steps, replicas, workers: (
            sync_every_steps != 1 and replicas * workers == 1
        ),
        "sync_every_steps is {sync_every_steps}, but there is 1 replica: use sync_every_steps=1,"
        " or more replicas or workers.",
    ),
    # All replicas share one loss scale, which changes in each step.
    refused(
        "sync_every_steps",
        lambda sync_every_steps, precision: sync_every_steps != 1 and precision == "mixed_float16",
        "sync_every_steps is {sync_every_steps} with mixed_float16, whose loss scale all replicas"
        " must share: use mixed_bfloat16, or sync_every_steps=1.",
    ),
    # An exchange in every layer would mix the gradients of replicas that train alone.
    refused(
        "sync_every_steps",
        lambda sync_every_steps, batch_norm: sync_every_steps != 1 and batch_norm == "synchronised",
        "sync_every_steps is {sync_every_steps}, but batch_norm=synchronised exchanges in each"
        " step: use batch_norm=per_replica, or sync_every_steps=1.",
    ),
    # Local steps exchange weights and slots, for which 8 bits are too coarse.
    refused(
        "all_reduce_type",
        lambda sync_every_steps, all_reduce_type: (
            sync_every_steps != 1 and all_reduce_type != "float32"
        ),
        "all_reduce_type is {all_reduce_type}, but sync_every_steps={sync_every_steps} exchanges"
        " float32 weights and no gradients: use all_reduce_type=float32, or sync_every_steps=1.",
    ),
    workers_can_exchange,
    cpu_workers_have_one_replica,
    # Only MultiWorkerMirroredStrategy takes a pack size.
    refused(
        "all_reduce_pack_mb",
        lambda engine, workers, all_reduce_pack_mb: (
            all_reduce_pack_mb != 0 and (workers == 1 or engine == "jax")
        ),
        "all_reduce_pack_mb is {all_reduce_pack_mb}, but only TensorFlow's workers take a pack"
        " size: use 0, or engine=tensorflow and workers above 1.",
    ),
    refused(
        "xla",
        lambda engine, xla: engine == "jax" and xla == "autocluster",
        "xla is autocluster, but engine=jax compiles whole steps: use xla=off or xla=jit, which are"
        " the same there.",
    ),
    # All devices run one program on one state; replicas that train alone need one state each.
    refused(
        "sync_every_steps",
        lambda engine, sync_every_steps: engine == "jax" and sync_every_steps != 1,
        "sync_every_steps is {sync_every_steps}, but with engine=jax all replicas share one state:"
        " use sync_every_steps=1, or engine=tensorflow.",
    ),
    refused(
        "profile_steps",
        lambda engine, profile_steps: engine == "jax" and profile_steps != 0,
        "profile_steps is {profile_steps}, but engine=jax has no step profile: use"
        " profile_steps=0, or engine=tensorflow.",
    ),
    jax_trains_on_its_own_host,
    refused(
        "loop",
        lambda loop, engine: loop == "keras" and engine == "jax",
        "loop is keras, but engine=jax has its own loop: use loop=custom, or engine=tensorflow.",
    ),
    # Keras' train function has no exchange of stop requests and step times between workers.
    refused(
        "loop",
        lambda loop, workers: loop == "keras" and workers != 1,
        "loop is keras, but {workers} workers cannot agree there when to stop: use loop=custom,"
        " or workers=1 and more replicas.",
    ),
    # Local replicas are averaged between two steps, where Keras' loop does nothing.
    refused(
        "loop",
        lambda loop, sync_every_steps: loop == "keras" and sync_every_steps != 1,
        "loop is keras with sync_every_steps={sync_every_steps}, but Keras' loop exchanges"
        " gradients in each step: use loop=custom, or sync_every_steps=1.",
    ),
    # Under a TPUStrategy Keras' `reduce_per_replica` takes the numbers of the first core, elsewhere
    # the mean.
    refused(
        "loop",
        lambda loop, accelerator: loop == "keras" and accelerator == "tpu",
        NO_KERAS_LOOP_ON_A_TPU,
    ),
)


def broken(values: dict[str, Any], rules: Iterable[Rule] = RULES) -> list[FieldError]:
    """The errors of all rules that `values`, the valid options, break; rules that read other
    options are skipped.
    """
    errors = []
    for rule in rules:
        names = _options_of(rule)
        if names <= values.keys():
            errors.append(rule(**{name: values[name] for name in names}))
    return [error for error in errors if error is not None]


@functools.cache
def _options_of(rule: Rule) -> frozenset[str]:
    """The options that a rule reads. Python takes longer to list them than to check the rule."""
    return frozenset(signature(rule).parameters)
