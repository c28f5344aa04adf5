"""Compiles the exact training step of a run, or its prediction of a frame, for a TPU that this host
does not have. Loads JAX: for child processes only.

`libtpu` contains the TPU's compiler, which needs no TPU; the environment of `check.py` must be set
before JAX is loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import psutil
from jax.experimental import topologies
from jax.sharding import Mesh

from gan_runtime.base import formats
from gan_runtime.base.errors import AcceleratorError
from gan_runtime.base.fields import SOURCE
from gan_runtime.engines.hlo_text import source_layer
from gan_runtime.engines.jax.devices import AXIS
from gan_runtime.engines.jax.engine import most_steps, training_call
from gan_runtime.engines.jax.tiles import TileCall
from gan_runtime.engines.task import task_of, workload_of
from gan_runtime.engines.tile_grid import TileGrid, tiles_per_core
from gan_runtime.engines.tiles import translator_of
from gan_runtime.spec import RunSpec
from gan_runtime.tpu import hlo_cost
from gan_runtime.tpu.estimates import ExpensiveOperation, Point, ProgramMemory, StepEstimate
from gan_runtime.tpu.plan import Program, Reading
from gan_runtime.workloads.contract import Translates

LONGEST_REASON = 600


def estimate(
    spec: RunSpec,
    reading: Reading,
    point: Point,
    program: Program = "step",
    report: Callable[[str], None] = lambda _memory: None,
) -> StepEstimate:
    """The compiler's estimate for `spec` at this point, of a step or a frame.

    A refusal is an answer too. `report` gets the memory that compiling will take, in words.

    Raises:
        AcceleratorError: this host has less memory than compiling will take.
        RuntimeError: the compiler does not start; base/errors.py has the usual messages.
    """
    begin, devices, rounds = time.monotonic(), described(point), None
    try:
        if program == "frame":
            lowered, rounds = lowered_frame(spec, reading, devices)
        else:
            lowered = lowered_call(spec, reading, point, devices)
        needed = memory_of_compiling(lowered.as_text())
        report(f"takes about {formats.size(needed)} of memory")
        _check_memory(needed, psutil.virtual_memory().available)
        compiled = lowered.compile()
    except AcceleratorError:
        raise
    except Exception as error:  # from the compiler or the tracing: a refusal
        return StepEstimate(point, refused=_reason(error), compile_seconds=time.monotonic() - begin)
    of_round = read(compiled, spec, point, time.monotonic() - begin, rounds)
    return of_round if rounds is None else of_frame(of_round, rounds)


def memory_of_compiling(program: str) -> int:
    """Bytes that a process takes to compile a program with this text, about.

    Fitted to the peaks of five programs with batches of 64 and 512, which hardly matter: text of
    0.3 MB took 1.1 to 1.2 GB, of 0.9 MB 3.8 GB, and of 1.9 MB 10.1 and 10.8 GB.
    """
    return round(1.2e9 + 2.9e9 * (len(program) / 1e6) ** 2)


def _check_memory(needed: int, free: int) -> None:
    if needed > free:
        raise AcceleratorError(
            f"compiling takes about {formats.size(needed)} of memory, and {formats.size(free)} is"
            " free on this host: check a smaller network, or use a machine with more memory."
        )


def described(point: Point) -> list[Any]:
    """The devices of a point, as the compiler describes them."""
    return list(
        topologies.get_topology_desc(topology_name=point.topology, platform="tpu").devices[
            : point.devices
        ]
    )


def lowered_call(
    spec: RunSpec, reading: Reading, point: Point, devices: list[Any] | None = None
) -> jax.stages.Lowered:
    """The program of a host call of `spec` on `devices` (None: those of the point), to compile."""
    mesh = Mesh(np.array(devices or described(point)), (AXIS,))
    task = task_of(spec, workload_of(spec), reading.fields, reading.rows)
    call = training_call(task, mesh, reading.streamed)
    return jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments)


def lowered_frame(
    spec: RunSpec, reading: Reading, devices: list[Any]
) -> tuple[jax.stages.Lowered, int]:
    """The program that predicts a frame, to compile, with its tiles distributed over the devices;
    and the tiles of each device.

    Raises:
        ValueError: it is no image-to-image model, or its tile is larger than a frame.
    """
    workload: object = workload_of(spec)
    if not isinstance(workload, Translates):
        raise ValueError(f"{spec.workload} is not an image-to-image model")
    translator = translator_of(spec, workload, reading.fields, {})
    height, width, channels = reading.fields[SOURCE].shape
    division = TileGrid((height, width), (translator.tile, translator.tile))
    tiles = tiles_per_core(len(division), len(devices))
    call = TileCall(
        translator, Mesh(np.array(devices), (AXIS,)), (tiles, 1, *division.tile, channels)
    )
    return jax.jit(call.function).lower(*call.arguments), tiles


def of_frame(tile: StepEstimate, rounds: int) -> StepEstimate:
    """The numbers of a frame from those of a tile: `rounds` tiles on each device, in sequence."""
    most_expensive = tuple(
        replace(operation, cycles=rounds * operation.cycles) for operation in tile.most_expensive
    )
    flops = None if tile.flops is None else rounds * tile.flops
    return replace(tile, cycles=rounds * tile.cycles, flops=flops, most_expensive=most_expensive)


def read(
    compiled: Any, spec: RunSpec, point: Point, seconds: float, rounds: int | None = None
) -> StepEstimate:
    """The estimate of a compiled program, for one of the `rounds` of its loop; None for a host
    call, whose rounds are steps.
    """
    parts = spec.accumulation_steps if rounds is None else 1
    cost = hlo_cost.cost(compiled.as_text(), rounds or most_steps(spec), parts)
    counted = compiled.cost_analysis()
    networks = [network.name for network in spec.entry.networks]
    exchanges = cost.exchanges if point.devices > 1 else ()
    return StepEstimate(
        point=point,
        refused="",
        compile_seconds=seconds,
        cycles=cost.cycles,
        flops=float(counted["flops"]) if parts == 1 else None,
        bytes_accessed=float(counted.get("bytes accessed", 0.0)),
        memory=ProgramMemory.of(compiled.memory_analysis()),
        operations=len(cost.operations),
        host_transfers=cost.host_transfers,
        exchanges=sum(exchange.times for exchange in exchanges),
        exchange_bytes=round(sum(map(_sent_bytes, exchanges))),
        without_estimate=cost.silent,
        most_expensive=tuple(
            _expensive(operation, networks) for operation in cost.most_expensive()
        ),
    )


def _sent_bytes(exchange: hlo_cost.Exchange) -> float:
    """A gather or a scatter sends half of what an all-reduce sends."""
    return exchange.payload_bytes * exchange.times * (1.0 if exchange.kind == "all-reduce" else 0.5)


def _expensive(operation: hlo_cost.Operation, networks: list[str]) -> ExpensiveOperation:
    layer = source_layer(operation.source, networks)
    return ExpensiveOperation(operation.name, operation.opcode, layer, operation.cycles or 0.0)


def _reason(error: Exception) -> str:
    """The compiler's message without its stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:6])}"[:LONGEST_REASON]
