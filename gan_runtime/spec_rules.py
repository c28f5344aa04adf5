"""Rules across the options of a run. One more rule is one small function and its name in RULES.

The parameters of a rule are the options that it reads, by name; it is tried only when each of them is right by itself.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any

from gan_runtime.errors import FieldError

Rule = Callable[..., FieldError | None]


def batch_is_shared_evenly(batch_size_global: int, replicas: int) -> FieldError | None:
    """Losses are means over a replica's images, so only equal shares add up to the mean of the whole batch."""
    if batch_size_global % replicas == 0:
        return None
    below = batch_size_global // replicas * replicas
    use = f"use {below} or {below + replicas}" if below else f"use {replicas}"
    return FieldError(
        "batch_size_global",
        f"batch_size_global is {batch_size_global}, but {replicas} replicas need a multiple of {replicas}: {use}.",
    )


def tpu_knows_the_precision(accelerator: str, precision: str) -> FieldError | None:
    """A TPU computes in bfloat16 and float32 only."""
    if accelerator != "tpu" or precision != "mixed_float16":
        return None
    return FieldError(
        "precision", "precision is mixed_float16, but a TPU has no float16 arithmetic: use mixed_bfloat16 or float32."
    )


def xla_compiles_the_loss_scaling(precision: str, xla: str, replicas: int) -> FieldError | None:
    """float16 comes with a loss scale that all replicas follow; see docs/gpu.md."""
    if precision != "mixed_float16" or xla != "jit" or replicas == 1:
        return None
    return FieldError(
        "xla",
        f"xla is jit with mixed_float16 on {replicas} replicas, which TensorFlow cannot combine: use mixed_bfloat16, or xla=off.",
    )


RULES: tuple[Rule, ...] = (batch_is_shared_evenly, tpu_knows_the_precision, xla_compiles_the_loss_scaling)


def broken(values: dict[str, Any]) -> list[FieldError]:
    """What breaks a rule among `values`, the options that are right by themselves; rules that read other options are left out."""
    tried = [rule for rule in RULES if signature(rule).parameters.keys() <= values.keys()]
    found = [rule(**{name: values[name] for name in signature(rule).parameters}) for rule in tried]
    return [error for error in found if error is not None]
