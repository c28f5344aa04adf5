"""Compiles the exact training step of a run for a GPU that this host does not have. Loads JAX: for
child processes only.

XLA's compiler for GPUs is in a plugin of JAX and needs no GPU; the environment of `check.py` must
be set before JAX is loaded. Without a GPU it times no kernels, so it does not choose the fastest
algorithm of a convolution.
"""

from __future__ import annotations

import math
import time

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.engines.jax.devices import AXIS
from gan_runtime.engines.jax.engine import TrainingCall, training_call
from gan_runtime.engines.task import task_of, workload_of
from gan_runtime.gpu import program
from gan_runtime.gpu.cards import Card, description
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.gpu.program import Taps
from gan_runtime.spec import RunSpec
from gan_runtime.tpu.estimates import ProgramMemory
from gan_runtime.tpu.plan import Reading

LONGEST_REASON = 600


def step(spec: RunSpec, reading: Reading, card: Card) -> CompiledStep:
    """What the compiler makes of a step of `spec` on this card. A refusal is an answer too.

    Raises AcceleratorError when the compiler does not start.
    """
    begin, mesh = time.monotonic(), _described(card)
    try:
        task = task_of(spec, workload_of(spec), reading.fields, reading.rows)
        call = training_call(task, mesh, reading.streamed)
        compiled = (
            jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments).compile()
        )
    except Exception as error:  # from the compiler or the tracing: a refusal
        reason = " ".join(str(error).split())
        refused = f"{type(error).__name__}: {reason}"[:LONGEST_REASON]
        return CompiledStep(refused=refused, compile_seconds=time.monotonic() - begin)
    networks = [network.name for network in spec.entry.networks]
    of_step = program.kernels(compiled.as_text(), networks, spec.accumulation_steps)
    return CompiledStep(
        refused="",
        compile_seconds=time.monotonic() - begin,
        kernels=len(of_step),
        bytes=sum(kernel.bytes for kernel in of_step),
        memory=ProgramMemory.of(compiled.memory_analysis()),
        largest=tuple(sorted(of_step, key=lambda kernel: -kernel.bytes)[: CompiledStep.MOST]),
        widest=max((kernel.window for kernel in of_step), key=math.prod, default=()),
        wide=program.wide_convolutions(of_step, _taps(call, networks)),
    )


def _described(card: Card) -> Mesh:
    try:
        topology = topologies.get_topology_desc(
            "", platform="cuda", target_config=description(card), topology="1x1x1"
        )
    except (NotImplementedError, RuntimeError) as error:
        raise AcceleratorError(
            f"XLA's compiler for GPUs does not start ({' '.join(str(error).split())[:300]}):"
            " install it again with `make gpu-compiler`."
        ) from error
    return Mesh(np.array(topology.devices[:1]), (AXIS,))


def _taps(call: TrainingCall, networks: list[str]) -> dict[str, Taps]:
    """The taps of every convolution's kernel, by "network layer"."""
    taps = {}
    for network in networks:
        for name in call.model.trainable[network]:
            variable = call.model.variables[name]
            *_, layer, _ = variable.path.split("/")
            if len(variable.shape) > 3:  # taps of two or three axes, channels in, channels out
                taps[f"{network} {layer}"] = tuple(variable.shape[:-2])
    return taps
