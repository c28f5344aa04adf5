"""Compiles the exact training step of a run, or its prediction of a frame, for a TPU that this host
does not have. Loads JAX: for child processes only.

`libtpu` contains the TPU's compiler, which needs no TPU; the environment of `check.py` must be set
before JAX is loaded.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from jax.experimental import topologies
from jax.sharding import Mesh

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
    spec: RunSpec, reading: Reading, point: Point, program: Program = "step"
) -> StepEstimate:
    """The compiler's estimate for `spec` at this point, of a step or a frame.

    A refusal is an answer too.

    Raises:
        RuntimeError: the compiler does not start; base/errors.py has the usual messages.
    """
    begin, devices = time.monotonic(), described(point)
    try:
        if program == "frame":
            compiled, rounds = compile_frame(spec, reading, devices)
            return of_frame(read(compiled, spec, point, time.monotonic() - begin, rounds), rounds)
        compiled = compile_call(spec, reading, point, devices)
    except Exception as error:  # from the compiler or the tracing: a refusal
        return StepEstimate(point, refused=_reason(error), compile_seconds=time.monotonic() - begin)
    return read(compiled, spec, point, time.monotonic() - begin)


def described(point: Point) -> list[Any]:
    """The devices of a point, as the compiler describes them."""
    return list(
        topologies.get_topology_desc(topology_name=point.topology, platform="tpu").devices[
            : point.devices
        ]
    )


def compile_call(
    spec: RunSpec, reading: Reading, point: Point, devices: list[Any] | None = None
) -> Any:
    """The program of a host call of `spec` on `devices` (None: those of the point)."""
    mesh = Mesh(np.array(devices or described(point)), (AXIS,))
    task = task_of(spec, workload_of(spec), reading.fields, reading.rows)
    call = training_call(task, mesh, reading.streamed)
    return jax.jit(call.function, donate_argnums=call.donated).lower(*call.arguments).compile()


def compile_frame(spec: RunSpec, reading: Reading, devices: list[Any]) -> tuple[Any, int]:
    """The program that predicts a frame, with its tiles distributed over the devices; and the
    tiles of each device.

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
    return jax.jit(call.function).lower(*call.arguments).compile(), tiles


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
