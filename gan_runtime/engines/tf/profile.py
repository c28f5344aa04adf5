"""TensorFlow's profiler around some steps, and the operations in its trace.

The trace is a file .xplane.pb: planes (host, devices) of lines (threads, streams) of events. A host
event of an operation has the name "<path in the graph>:<kind>". Events of compiled code have only
the names of an HLO instruction and module; the module's text, in the plane /host:metadata, names
the operation of an instruction. Fused instructions without one take the operation of what they
fuse; the rest counts as unattributed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import tensorflow as tf
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from gan_runtime.engines.contract import ProfiledSteps, ProfileShare, StepKernels, StepNumbers
from gan_runtime.engines.step_profile import Op, Window, hlo_counts, profile_shares, sum_counts

WINDOW = "profiled_steps"  # the event that spans the profiled call
_HOST, _METADATA, _DEVICE = "/host:CPU", "/host:metadata", "/device:"
_OPERATION = re.compile(r"^(?P<name>[^:\s]+):(?P<kind>[A-Za-z_]\w*)$")
_WAITS_FOR_INPUT = "IteratorGetNextOp::DoCompute"
# Threads that prepare batches ahead; only waiting for a batch takes time from the step.
_BACKGROUND = "tf_data_"
_DEVICE_LINES = ("Stream", "XLA Ops")  # other lines of a device summarize these
_ENDED = "end: "  # event at the end of what XLA submits to a thread pool
_PICOSECONDS = 1e-12
HloNames = dict[tuple[str, str], str]  # (module, instruction) → path in the graph


def run_profiled(
    run: Callable[[], StepNumbers], networks: tuple[str, ...], phases: tuple[str, ...]
) -> ProfiledSteps:
    """Runs some steps under the profiler, of which a process has one at a time."""
    options = tf.profiler.experimental.ProfilerOptions(
        host_tracer_level=2, python_tracer_level=0, device_tracer_level=1
    )
    with tempfile.TemporaryDirectory(prefix="gan-profile-") as folder:
        tf.profiler.experimental.start(folder, options)
        try:
            with tf.profiler.experimental.Trace(WINDOW):
                numbers = run()
        finally:
            tf.profiler.experimental.stop()
        return ProfiledSteps(numbers, read(Path(folder), networks, phases))


def read(
    folder: Path, networks: tuple[str, ...], phases: tuple[str, ...]
) -> tuple[ProfileShare, ...]:
    """The shares of the trace that the profiler left in `folder`."""
    space = xplane_pb2.XSpace()
    for path in sorted(folder.rglob("*.xplane.pb")):
        space.MergeFromString(path.read_bytes())
    devices, window = operations(space)
    return profile_shares(devices, window, networks, phases)


def operations(space: Any) -> tuple[list[list[Op]], Window]:
    """The operations of each device and the window of the profiled call.

    Accelerators have separate planes, to which the host adds the waiting for input. Without
    them the host is the device, one for all simulated cores.
    """
    hlo_names = _hlo_names(space)
    host, window = [], Window(0.0, 0.0)
    for plane in (plane for plane in space.planes if plane.name == _HOST):
        host += list(_host_operations(plane, hlo_names))
        window = _window(plane) or window
    accelerators = [
        list(_device_operations(plane, hlo_names))
        for plane in space.planes
        if plane.name.startswith(_DEVICE)
    ]
    accelerators = [ops for ops in accelerators if ops]
    waits = [op for op in host if op.kind == _WAITS_FOR_INPUT]
    return ([[*ops, *waits] for ops in accelerators] or [host]), window


def _window(plane: Any) -> Window | None:
    for line in plane.lines:
        for event in line.events:
            if plane.event_metadata[event.metadata_id].name == WINDOW:
                start_s = _start_s(line, event)
                return Window(start_s, start_s + event.duration_ps * _PICOSECONDS)
    return None


def _start_s(line: Any, event: Any) -> float:
    return line.timestamp_ns * 1e-9 + event.offset_ps * _PICOSECONDS


def _host_operations(plane: Any, hlo_names: HloNames) -> Iterator[Op]:
    stats = _StatReader(plane)
    started: dict[int, Op] = {}
    ended: dict[int, float] = {}
    for line in plane.lines:
        for event in line.events:
            name = plane.event_metadata[event.metadata_id].name
            op = Op(name, "", _start_s(line, event), event.duration_ps * _PICOSECONDS, line.name)
            if name == _WAITS_FOR_INPUT:
                yield replace(op, name="", kind=name)
            elif name.startswith(_ENDED):
                ended[int(stats.of(event, "_c") or 0)] = op.end_s
            elif instruction := stats.of(event, "hlo_op"):
                op = replace(
                    op,
                    name=hlo_names.get((str(stats.of(event, "hlo_module")), str(instruction)), ""),
                )
                started[int(stats.of(event, "_p") or 0)] = op
                yield op
            elif (match := _OPERATION.match(name)) and not line.name.startswith(_BACKGROUND):
                yield replace(op, name=match["name"], kind=match["kind"])
    for key, op in started.items():
        yield replace(op, seconds=ended.get(key, op.end_s) - op.start_s, handed_over=True)


def _device_operations(plane: Any, hlo_names: HloNames) -> Iterator[Op]:
    stats = _StatReader(plane)
    for line in (line for line in plane.lines if line.name.startswith(_DEVICE_LINES)):
        for event in line.events:
            kernel = plane.event_metadata[event.metadata_id].name
            path = str(stats.of(event, "tf_op") or "").rpartition(":")[0]
            if not path:
                path = hlo_names.get(
                    (str(stats.of(event, "hlo_module")), str(stats.of(event, "hlo_op") or kernel)),
                    "",
                )
            yield Op(
                path, kernel, _start_s(line, event), event.duration_ps * _PICOSECONDS, line.name
            )


class _StatReader:
    """Statistics of a plane's events by name."""

    def __init__(self, plane: Any) -> None:
        self._plane = plane
        self._names = {key: stat.name for key, stat in plane.stat_metadata.items()}

    def of(self, event: Any, name: str) -> str | int | None:
        """A statistic of an event; None if neither the event nor its metadata has it."""
        for stat in (*event.stats, *self._plane.event_metadata[event.metadata_id].stats):
            if self._names.get(stat.metadata_id) == name:
                kind = stat.WhichOneof("value")
                return (
                    self._names.get(stat.ref_value) if kind == "ref_value" else getattr(stat, kind)
                )
        return None


def _hlo_names(space: Any) -> HloNames:
    """The operation of each HLO instruction, of every module in the trace."""
    names: HloNames = {}
    for plane in (plane for plane in space.planes if plane.name == _METADATA):
        for program in plane.event_metadata.values():
            for stat in program.stats:
                module = hlo_pb2.HloProto.FromString(stat.bytes_value).hlo_module
                names.update(
                    {(module.name, instruction): path for instruction, path in _paths(module)}
                )
    return names


def _paths(module: Any) -> Iterator[tuple[str, str]]:
    computations = {computation.id: computation for computation in module.computations}
    for computation in module.computations:
        for instruction in computation.instructions:
            fused = [
                inner
                for key in instruction.called_computation_ids
                for inner in computations[key].instructions
            ]
            named = [inner.metadata.op_name for inner in fused if inner.metadata.op_name]
            if path := instruction.metadata.op_name or (named[-1] if named else ""):
                yield instruction.name, path


_NO_WORK = {"Const", "Placeholder", "Identity", "IdentityN", "NoOp", "_Arg", "_Retval"}


def graph_operations(concrete: Any) -> int:
    """Operations of a traced function and of all functions that it calls, each function once."""
    graph = concrete.graph.as_graph_def()
    nodes = [
        *graph.node,
        *(node for function in graph.library.function for node in function.node_def),
    ]
    return sum(node.op not in _NO_WORK for node in nodes)


def step_kernels(concrete: Any, modules: Iterable[tuple[str, str]]) -> StepKernels:
    """The operation counts of a step. `modules`: XLA's text of each compiled function, before and
    after optimization; can be empty.
    """
    texts = list(modules)
    if not texts:
        return StepKernels(graph_operations(concrete), None, None, None)
    before, after = (
        sum_counts(hlo_counts(text) for text in stage) for stage in zip(*texts, strict=True)
    )
    return StepKernels(graph_operations(concrete), before.kernels, after.kernels, after.fusions)
