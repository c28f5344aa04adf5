"""Operations read from TensorFlow traces of XLA and accelerators, written for these tests."""

from __future__ import annotations

from typing import Any

import pytest
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.tsl.profiler.protobuf import xplane_pb2

from gan_runtime.engines.tf import profile as tf_profile

MILLISECOND_PS = 1_000_000_000


class TracePlane:
    """A plane of a trace that a test fills; times in milliseconds."""

    def __init__(self, space: Any, name: str) -> None:
        self.plane = space.planes.add(name=name)

    def event(self, line: str, name: str, start_ms: int, ms: int, **stats: str | int) -> None:
        """Adds an event on a thread or stream."""
        lines = [entry for entry in self.plane.lines if entry.name == line]
        event = (lines[0] if lines else self.plane.lines.add(name=line)).events.add(
            metadata_id=self._named(self.plane.event_metadata, name),
            offset_ps=start_ms * MILLISECOND_PS,
            duration_ps=ms * MILLISECOND_PS,
        )
        for stat, value in stats.items():
            kind = {"str_value": value} if isinstance(value, str) else {"uint64_value": value}
            event.stats.add(metadata_id=self._named(self.plane.stat_metadata, stat), **kind)

    def program(self, module: Any) -> None:
        """Adds a program compiled by XLA."""
        metadata = self.plane.event_metadata[1]
        stat = self._named(self.plane.stat_metadata, "Hlo Proto")
        metadata.stats.add(
            metadata_id=stat, bytes_value=hlo_pb2.HloProto(hlo_module=module).SerializeToString()
        )

    def _named(self, table: Any, name: str) -> int:
        place = next((key for key, value in table.items() if value.name == name), len(table) + 1)
        table[place].name = name
        return place


@pytest.fixture
def space() -> Any:
    """An empty trace."""
    return xplane_pb2.XSpace()


def module_with_a_fusion() -> Any:
    """dot.1 has the name of its source, fusion.2 only through its fused instructions, and copy.3
    has none.
    """
    module = hlo_pb2.HloModuleProto(name="step")
    fused = module.computations.add(id=7)
    fused.instructions.add(name="broadcast").metadata.op_name = "generator_1/dense_1/MatMul"
    fused.instructions.add(name="add").metadata.op_name = "gradient_tape/generator_1/dense_1/add"
    entry = module.computations.add(id=8)
    entry.instructions.add(name="dot.1").metadata.op_name = "discriminator_1/dense_1/MatMul"
    entry.instructions.add(name="fusion.2", called_computation_ids=[7])
    entry.instructions.add(name="copy.3")
    return module


def test_compiled_instructions_map_back_to_their_operations(space: Any) -> None:
    TracePlane(space, "/host:metadata").program(module_with_a_fusion())
    host = TracePlane(space, "/host:CPU")
    host.event("python", tf_profile.WINDOW, 0, 50)
    for index, instruction in enumerate(("dot.1", "fusion.2", "copy.3")):
        host.event(
            "Eigen/1", instruction, 10 * index, 5, hlo_op=instruction, hlo_module="step", _p=index
        )
    host.event("Eigen/2", "end: fusion.2", 18, 0, _c=1)
    devices, window = tf_profile.operations(space)
    assert (window.start_s, window.seconds) == (0.0, pytest.approx(0.05))
    assert [
        (operation.name, round(operation.seconds, 6))
        for operation in devices[0]
        if not operation.handed_over
    ] == [
        ("discriminator_1/dense_1/MatMul", 0.005),
        ("gradient_tape/generator_1/dense_1/add", 0.005),
        ("", 0.005),
    ]
    handed_over = [
        (operation.name, round(operation.seconds, 6))
        for operation in devices[0]
        if operation.handed_over
    ]
    assert handed_over[1] == (
        "gradient_tape/generator_1/dense_1/add",
        0.008,
    ), "until it was done on another thread"


def test_host_counts_only_operations_and_input_waits(space: Any) -> None:
    host = TracePlane(space, "/host:CPU")
    for name in (
        "ExecutorState::Process",
        "EagerLocalExecute: __inference__train_call_7",
        "a/b/MatMul:MatMul",
    ):
        host.event("tf_Compute/1", name, 0, 5)
    host.event("tf_data_private_threadpool/1", "GatherV2:GatherV2", 0, 5)  # prepares a later batch
    host.event("tf_data_iterator_get_next/1", "IteratorGetNextOp::DoCompute", 5, 5)
    [operations], _ = tf_profile.operations(space)
    assert [(operation.name, operation.kind) for operation in operations] == [
        ("a/b/MatMul", "MatMul"),
        ("", "IteratorGetNextOp::DoCompute"),
    ]


def test_accelerators_have_own_operations_and_share_input_waits(
    space: Any,
) -> None:
    host = TracePlane(space, "/host:CPU")
    host.event("tf_Compute/1", "generator/dense/MatMul:MatMul", 0, 1)  # only starts the kernel
    host.event("tf_data_iterator_get_next/1", "IteratorGetNextOp::DoCompute", 5, 5)
    for index in range(2):
        gpu = TracePlane(space, f"/device:GPU:{index}")
        gpu.event("Stream #14(Compute)", "ampere_gemm", 2, 3, tf_op="generator/dense/MatMul:MatMul")
        gpu.event("TensorFlow Name Scope", "generator", 2, 3)
    devices, _ = tf_profile.operations(space)
    assert [[(operation.name, operation.kind) for operation in ops] for ops in devices] == [
        [("generator/dense/MatMul", "ampere_gemm"), ("", "IteratorGetNextOp::DoCompute")]
    ] * 2
