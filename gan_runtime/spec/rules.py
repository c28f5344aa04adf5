"""Rules across the options that all runs share.

One more rule is one small function and its name in RULES.

Rules of one workload stand with its entry in the catalog; they may read shared options too. The
parameters of a rule are the options that it reads, by name; it is tried only when each of them is
right by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.catalog.entries import Rule
from gan_runtime.spec import engine_rules


def batch_is_shared_evenly(
    batch_size_global: int, replicas: int, workers: int
) -> FieldError | None:
    """Losses are means over a replica's images, so only equal shares add up to the mean of
    the whole batch.
    """
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


def tpu_knows_the_precision(accelerator: str, precision: str) -> FieldError | None:
    """A TPU computes in bfloat16 and float32 only."""
    if accelerator != "tpu" or precision != "mixed_float16":
        return None
    return FieldError(
        "precision",
        "precision is mixed_float16, but a TPU has no float16 arithmetic: use mixed_bfloat16 or"
        " float32.",
    )


def xla_compiles_the_loss_scaling(
    engine: str, precision: str, xla: str, replicas: int, workers: int
) -> FieldError | None:
    """float16 comes with a loss scale that all replicas follow; see docs/gpu.md."""
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
    """The exchange between replicas cannot stand inside a compiled function of TensorFlow
    (measured: RuntimeError on merge_call).
    """
    if engine == "jax" or batch_norm != "synchronised" or xla != "jit" or replicas * workers == 1:
        return None
    return FieldError(
        "xla",
        f"xla is jit with synchronised batch norm on {replicas * workers} replicas, which"
        " TensorFlow cannot combine: use batch_norm=per_replica, or xla=off.",
    )


def tpu_compiles_everything(accelerator: str, xla: str) -> FieldError | None:
    """Clusters are what XLA finds in a graph; a TPU runs nothing else anyway."""
    if accelerator != "tpu" or xla != "autocluster":
        return None
    return FieldError(
        "xla",
        "xla is autocluster, but a TPU compiles every step as a whole: use xla=off or jit, which"
        " are the same there.",
    )


def clusters_are_for_one_worker(xla: str, workers: int) -> FieldError | None:
    """Measured: under these flags TensorFlow cannot open the input of a worker that has
    joined others.
    """
    if xla != "autocluster" or workers == 1:
        return None
    return FieldError(
        "xla",
        f"xla is autocluster with {workers} workers, which TensorFlow cannot combine: use xla=off"
        " or jit, or workers=1.",
    )


def momentum_belongs_to_sgd(optimizer: str, momentum: float) -> FieldError | None:
    """Adam has beta 1 in its place, and CERN's RMSprop has none."""
    if optimizer == "sgd" or momentum == 0.0:
        return None
    return FieldError(
        "momentum",
        f"momentum is {momentum:g}, but only optimizer=sgd has one: use momentum=0, or"
        " optimizer=sgd.",
    )


def samples_need_an_average(samples_from: str, ema_decay: float) -> FieldError | None:
    """No average, no images of it."""
    if samples_from == "live" or ema_decay > 0.0:
        return None
    return FieldError(
        "samples_from",
        "samples_from is ema, but ema_decay is 0: set ema_decay to about 0.999, or"
        " samples_from=live.",
    )


def parts_are_even(
    accumulation_steps: int, batch_size_global: int, replicas: int, workers: int
) -> FieldError | None:
    """A mean of unequal parts would not be the mean of the batch."""
    share = batch_size_global // (replicas * workers)
    if batch_size_global % (replicas * workers) or share % accumulation_steps == 0:
        return None
    return FieldError(
        "accumulation_steps",
        f"accumulation_steps is {accumulation_steps}, but each replica has {share} images per step:"
        f" use a divisor of {share}.",
    )


def local_steps_need_replicas(
    sync_every_steps: int, replicas: int, workers: int
) -> FieldError | None:
    """One replica has nobody to synchronise with."""
    if sync_every_steps == 1 or replicas * workers > 1:
        return None
    return FieldError(
        "sync_every_steps",
        f"sync_every_steps is {sync_every_steps}, but there is 1 replica: use sync_every_steps=1,"
        " or more replicas or workers.",
    )


def local_steps_have_no_loss_scale(sync_every_steps: int, precision: str) -> FieldError | None:
    """A loss scale is one for all replicas, and changes in each step; replicas that train
    alone would drift apart in it.
    """
    if sync_every_steps == 1 or precision != "mixed_float16":
        return None
    return FieldError(
        "sync_every_steps",
        f"sync_every_steps is {sync_every_steps} with mixed_float16, whose loss scale all replicas"
        " must share: use mixed_bfloat16, or sync_every_steps=1.",
    )


def local_steps_have_their_own_batch_norm(
    sync_every_steps: int, batch_norm: str
) -> FieldError | None:
    """An exchange in every layer of every step would mix the gradients of replicas that are
    to train alone, and wait for them.
    """
    if sync_every_steps == 1 or batch_norm != "synchronised":
        return None
    return FieldError(
        "sync_every_steps",
        f"sync_every_steps is {sync_every_steps} with synchronised batch norm, which exchanges in"
        " each step: use batch_norm=per_replica, or sync_every_steps=1.",
    )


def local_steps_exchange_no_gradients(
    sync_every_steps: int, all_reduce_type: str
) -> FieldError | None:
    """What travels every so many steps are weights and slots, too fine for 8 bits."""
    if sync_every_steps == 1 or all_reduce_type == "float32":
        return None
    return FieldError(
        "all_reduce_type",
        f"all_reduce_type is {all_reduce_type}, but with sync_every_steps={sync_every_steps} no"
        " gradients travel, and weights do so in float32: use all_reduce_type=float32, or"
        " sync_every_steps=1.",
    )


def workers_can_exchange(engine: str, accelerator: str, workers: int) -> FieldError | None:
    """MultiWorkerMirroredStrategy is for CPUs and GPUs.

    JAX runs one process on each host of a larger TPU (docs/cluster.md).
    """
    if engine == "jax" or accelerator != "tpu" or workers == 1:
        return None
    return FieldError("workers", no_tpu_workers(workers))


def cpu_workers_have_one_replica(
    engine: str, accelerator: str, replicas: int, workers: int
) -> FieldError | None:
    """Measured: MultiWorkerMirroredStrategy takes the first CPU device of a worker and leaves
    further simulated cores idle.
    """
    if engine == "jax" or accelerator != "cpu" or replicas == 1 or workers == 1:
        return None
    return FieldError("replicas", one_replica_per_cpu_worker(replicas, workers))


def packs_are_sent_between_workers(
    engine: str, workers: int, all_reduce_pack_mb: int
) -> FieldError | None:
    """Only MultiWorkerMirroredStrategy takes a pack size."""
    if all_reduce_pack_mb == 0 or (workers > 1 and engine != "jax"):
        return None
    return FieldError(
        "all_reduce_pack_mb",
        f"all_reduce_pack_mb is {all_reduce_pack_mb}, but only TensorFlow's workers take a pack"
        " size: use 0, or engine=tensorflow and workers above 1.",
    )


def no_tpu_workers(workers: int) -> str:
    """The sentence of the rule, also for a spec whose accelerator `auto` turns out to be a TPU."""
    return (
        f"workers is {workers}, but the cores of a TPU are the replicas of one worker: use"
        " workers=1 and more replicas."
    )


def one_replica_per_cpu_worker(replicas: int, workers: int) -> str:
    """The sentence of the rule, also for a spec whose accelerator `auto` turns out to be the
    CPU.
    """
    return (
        f"replicas is {replicas} in each of {workers} workers, but on the CPU TensorFlow gives a"
        f" worker one replica: use replicas=1 and workers={replicas * workers}, or workers=1."
    )


RULES: tuple[Rule, ...] = (
    batch_is_shared_evenly,
    tpu_knows_the_precision,
    xla_compiles_the_loss_scaling,
    xla_compiles_the_batch_norm,
    tpu_compiles_everything,
    clusters_are_for_one_worker,
    momentum_belongs_to_sgd,
    samples_need_an_average,
    parts_are_even,
    local_steps_need_replicas,
    local_steps_have_no_loss_scale,
    local_steps_have_their_own_batch_norm,
    local_steps_exchange_no_gradients,
    workers_can_exchange,
    cpu_workers_have_one_replica,
    packs_are_sent_between_workers,
    *engine_rules.RULES,
)


def broken(values: dict[str, Any], rules: Iterable[Rule] = RULES) -> list[FieldError]:
    """What breaks a rule among `values`, the options that are right by themselves; rules that
    read other options are left out.
    """
    tried = [rule for rule in rules if signature(rule).parameters.keys() <= values.keys()]
    found = [rule(**{name: values[name] for name in signature(rule).parameters}) for rule in tried]
    return [error for error in found if error is not None]
