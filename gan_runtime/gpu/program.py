"""What XLA made of a training step for a GPU, counted in its optimized text. Pure functions, no
framework.

A program of many steps is one loop; one round of it is one step. Each instruction of its body that
computes something is one kernel. Its bytes are those of its operands and of its outcome: also of
what stays in the card's cache, and of a whole array of which it reads some rows. The body of a loop
inside a step counts once for each of its rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gan_runtime.engines import hlo_text
from gan_runtime.engines.hlo_text import FREE, Instruction, Module, array_bytes, source_layer

FORWARD = ("__cudnn$convForward", "__cudnn$convBiasActivationForward")
EVEN = (
    1  # a row of zeros in front of a kernel makes it this much wider (engines/jax/gpu_kernels.py)
)
CALLS = ("call", "async-start")
_CALLED = re.compile(r"(?:to_apply|calls)=%?([\w.\-]+)")
_BODY = re.compile(r"body=%?([\w.\-]+)")
_WINDOW = re.compile(r"window=\{size=([0-9x]+)")
_WORKSPACE = re.compile(r"u8\[[0-9,]*\]")  # of a library function, in addition to its outcome
_OPERAND = re.compile(r"%([\w.\-]+)")

Taps = tuple[int, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel of a step. `kind`: its opcode, or the library function that it calls. `layer`: ""
    where the compiler names none. `window`: the taps of a forward convolution, else ().
    """

    name: str
    kind: str
    layer: str
    bytes: int
    window: Taps = ()


@dataclass(frozen=True)
class WideConvolution:
    """A forward convolution with more taps than its layer's kernel has: the compiler treats an
    image as a kernel, and few multiprocessors compute.
    """

    layer: str
    taps: Taps
    window: Taps


def kernels(module: str, networks: Sequence[str], parts: int = 1) -> tuple[Kernel, ...]:
    """The kernels of a step, each as often as it runs, from the text of a program of many steps.

    `parts`: rounds of an inner loop whose number is not in the text.

    Raises ValueError for a program without a loop.
    """
    program = hlo_text.parsed(module)
    loops = [line for line in program.computations.get(program.entry, []) if _is_loop(line)]
    if not loops:
        raise ValueError("the compiled program has no loop of steps: its kernels cannot be counted")
    return tuple(
        kernel for loop in loops for kernel in _of_body(program, _body(loop), networks, parts)
    )


def _of_body(program: Module, body: str, networks: Sequence[str], parts: int) -> Iterator[Kernel]:
    lines = program.computations[body]
    written = {line.name: _written(line) for line in lines}
    for line in lines:
        if _is_loop(line):
            inner = tuple(_of_body(program, _body(line), networks, parts))
            for _ in range(parts if line.trips is None else line.trips):
                yield from inner
        elif line.opcode in CALLS and (called := _CALLED.search(line.text)):
            yield from _of_body(program, called[1], networks, parts)
        elif line.opcode not in FREE:
            read = sum(written.get(name, 0) for name in _OPERAND.findall(line.operands))
            yield Kernel(
                line.name,
                line.target or line.opcode,
                source_layer(line.source, networks),
                written[line.name] + read,
                _window(line),
            )


def wide_convolutions(
    of_step: Sequence[Kernel], taps: Mapping[str, Taps]
) -> tuple[WideConvolution, ...]:
    """The forward convolutions that are wider than their layers' kernels.

    `taps`: of each layer's kernel, by "network layer". A convolution whose layer is not among them
    counts as wide if it is wider than every kernel.
    """
    widest = tuple(max(along) for along in zip(*taps.values(), strict=False))
    wide = []
    for kernel in of_step:
        layer = kernel.layer.partition(",")[0]
        allowed = taps.get(layer, widest)
        if any(size > most + EVEN for size, most in zip(kernel.window, allowed, strict=False)):
            wide.append(WideConvolution(kernel.layer, allowed, kernel.window))
    return tuple(wide)


def _is_loop(line: Instruction) -> bool:
    return line.opcode == "while"


def _body(loop: Instruction) -> str:
    body = _BODY.search(loop.text)
    return body[1] if body else ""


def _written(line: Instruction) -> int:
    """The bytes of its outcome, without a library function's workspace."""
    return sum(array_bytes(_WORKSPACE.sub("", line.shape) if line.target else line.shape))


def _window(line: Instruction) -> Taps:
    window = _WINDOW.search(line.text) if line.target in FORWARD else None
    return tuple(map(int, window[1].split("x"))) if window else ()
