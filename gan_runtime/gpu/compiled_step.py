"""What the compiler for GPUs makes of one step. Loads no JAX."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from gan_runtime.gpu.program import Kernel, Taps, WideConvolution
from gan_runtime.tpu.estimates import ProgramMemory

NO_MEMORY = ProgramMemory(0, 0, 0, 0)


@dataclass(frozen=True)
class CompiledStep:
    """One step on a card, as compiled.

    `refused`: the compiler's reason, with all numbers zero; "" when it compiled. `kernels`: the
    number that a step starts. `bytes`: of their operands and outcomes. `largest`: the MOST with the
    most bytes. `widest`: the most taps of a forward convolution; () without one. `wide`: forward
    convolutions that are wider than their layers' kernels.
    """

    MOST: ClassVar[int] = 10
    refused: str
    compile_seconds: float
    kernels: int = 0
    bytes: int = 0
    memory: ProgramMemory = NO_MEMORY
    largest: tuple[Kernel, ...] = ()
    widest: Taps = ()
    wide: tuple[WideConvolution, ...] = ()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> CompiledStep:
        """The inverse of `asdict`, whose tuples JSON stores as lists."""
        return cls(
            **{
                **values,
                "memory": ProgramMemory(**values["memory"]),
                "largest": tuple(
                    Kernel(**{**kernel, "window": tuple(kernel["window"])})
                    for kernel in values["largest"]
                ),
                "widest": tuple(values["widest"]),
                "wide": tuple(
                    WideConvolution(wide["layer"], tuple(wide["taps"]), tuple(wide["window"]))
                    for wide in values["wide"]
                ),
            }
        )
