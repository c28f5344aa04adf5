"""What a preset starts with on this host: in float32 where only a processor without bfloat16
arithmetic can train it.
"""

from __future__ import annotations

from typing import Any

from gan_runtime.base import processor
from gan_runtime.hardware import hosts
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import preset

IN_FLOAT32 = {"precision": "float32"}
FITTED = (
    "This host's processor has no bfloat16 arithmetic, so precision is float32, and training takes"
    " longer than elsewhere."
)
# Measured in docs/decisions/05-xla.md
SLOW = (
    "This host's processor has no bfloat16 arithmetic: without XLA, a step of the DCGAN takes about"
    " 8 times as long in it as in float32."
)


def values(name: str) -> dict[str, Any]:
    """The options of a preset as this host trains it.

    One that says which precision it is for is left as it is.

    Raises:
        SpecError: there is no preset of that name.
    """
    return {**preset(name).values, **IN_FLOAT32} if is_fitted(name) else preset(name).values


def is_fitted(name: str) -> bool:
    """Whether the preset starts with another precision here than elsewhere."""
    return "precision" not in preset(name).values and is_slow_in_bfloat16()


def caution(spec: RunSpec) -> str:
    """Why these options take far longer here than they need; empty when they do not."""
    is_emulated = spec.precision == "mixed_bfloat16" and spec.xla == "off" and spec.engine != "jax"
    return (
        SLOW
        if is_emulated and spec.accelerator in ("auto", "cpu") and is_slow_in_bfloat16()
        else ""
    )


def is_slow_in_bfloat16() -> bool:
    """Whether a run lands on a processor that multiplies bfloat16 number by number.

    Starts nothing and loads no framework.
    """
    return not (hosts.has_gpu() or hosts.has_tpu() or processor.has_bfloat16())
