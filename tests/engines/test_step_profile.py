"""Attribution of a window's time, with literal operations."""

from __future__ import annotations

import pytest

from gan_runtime.engines.contract import ProfileShare
from gan_runtime.engines.step_profile import Classifier, Op, Window, profile_shares

NETWORKS = ("generator", "discriminator")
STEP = "while/body/_1/while/"
FORWARD_G = STEP + "phase_0/forward/generator_1/dense_1/MatMul"
FORWARD_D = STEP + "replica_1/phase_0/forward/discriminator_3/conv_2_1/convolution"
BACKWARD_G = "while/body/_1/gradient_tape/while/phase_0/forward/generator_1/dense_1/MatMul/MatMul"
SUM_G = STEP + "optimizer_generator/all_reduce_generator/CollectiveReduceV2"


def op(
    name: str,
    start_s: float,
    seconds: float,
    kind: str = "MatMul",
    line: str = "tf_Compute/1",
    **more: bool,
) -> Op:
    return Op(name, kind, start_s, seconds, line, **more)


def divided(*ops: Op, seconds: float = 10.0) -> dict[tuple[str, str], float]:
    """Seconds by network and category in a window from 0 to `seconds` on one device."""
    return {
        (entry.network, entry.category): entry.seconds
        for entry in profile_shares([ops], Window(0.0, seconds), NETWORKS)
    }


@pytest.mark.parametrize(
    ("name", "kind", "network", "category"),
    [
        (FORWARD_G, "_MklMatMul", "generator", "forward"),
        (FORWARD_D, "_MklNativeFusedConv2D", "discriminator", "forward"),
        (STEP + "forward/Mean_1", "Mean", "", "forward"),
        (STEP + "phase_0/forward_1/mul", "Mul", "", "forward"),  # of the second part of a batch
        (STEP + "phase_1/gradients_1/AddN_3", "AddN", "", "backward"),
        (BACKWARD_G, "_MklMatMul", "generator", "backward"),
        (
            "gradient_tape/discriminator_1/leaky_1_1/LeakyRelu/LeakyReluGrad",
            "",
            "discriminator",
            "backward",
        ),
        (STEP + "gradients/AddN_3", "AddN", "", "backward"),
        (STEP + "optimizer_generator/Sqrt_1", "Sqrt", "generator", "optimizer"),
        (
            STEP + "adam_discriminator/update_1/AssignSubVariableOp",
            "AssignSubVariableOp",
            "discriminator",
            "optimizer",
        ),
        (STEP + "loss_scale_generator/Mul", "Mul", "generator", "optimizer"),
        (SUM_G, "CollectiveReduceV2", "generator", "gradient_all_reduce"),
        (
            STEP + "optimizer_generator/all_reduce_generator/concat",
            "ConcatV2",
            "generator",
            "gradient_all_reduce",
        ),
        (
            STEP + "optimizer_generator/all_reduce_generator/AddN_1",
            "AddN",
            "generator",
            "gradient_all_reduce",
        ),
        (STEP + "all_reduce_weights/truediv", "RealDiv", "", "gradient_all_reduce"),
        (
            STEP + "adam_discriminator/CollectiveReduceV2_1",
            "CollectiveReduceV2",
            "discriminator",
            "gradient_all_reduce",
        ),
        (
            STEP + "phase_0/forward/generator_1/norm_1_1/CollectiveReduceV2",
            "CollectiveReduceV2",
            "generator",
            "batch_norm_all_reduce",
        ),
        (
            STEP + "phase_0/forward/generator_1/norm_1_1/all_reduce_batch_norm/truediv",
            "RealDiv",
            "generator",
            "batch_norm_all_reduce",
        ),
        (
            STEP
            + "gradients/gradient_tape/while/phase_0/forward/generator_1/norm_1_1/all_reduce_batch_norm/AddN",  # noqa: E501
            "AddN",
            "generator",
            "batch_norm_all_reduce",
        ),
        (
            STEP + "gradients/CollectiveReduceV2_4",
            "CollectiveReduceV2",
            "",
            "batch_norm_all_reduce",
        ),
        ("", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "", "gradient_all_reduce"),
        ("", "IteratorGetNextOp::DoCompute", "", "input"),
        (
            STEP + "MultiDeviceIteratorGetNextFromShard",
            "MultiDeviceIteratorGetNextFromShard",
            "",
            "input",
        ),
        (STEP + "TensorArrayV2Write/TensorListSetItem", "TensorListSetItem", "", "unattributed"),
        ("", "convolution.4", "", "unattributed"),
        ("regenerator/dense/MatMul", "MatMul", "", "unattributed"),
    ],
)
def test_operations_are_classified_by_path_and_kind(
    name: str, kind: str, network: str, category: str
) -> None:
    assert Classifier(NETWORKS).place(op(name, 0, 1, kind))[1:] == (network, category)


@pytest.mark.parametrize(
    ("name", "kind", "phase"),
    [
        (FORWARD_D, "Conv3D", "judge"),
        (BACKWARD_G, "MatMul", "judge"),
        (STEP + "phase_1_2/gradients_1/AddN_3", "AddN", "make"),
        (STEP + "phase_1/optimizer_generator/Sqrt_1", "Sqrt", "make"),
        (STEP + "phase_1/adam_generator/CollectiveReduceV2_1", "CollectiveReduceV2", "make"),
        (STEP + "phase_1/TensorListSetItem", "TensorListSetItem", "make"),
        (STEP + "phase_2/forward/generator_1/MatMul", "MatMul", ""),
        (STEP + "average/mul", "Mul", ""),
        (STEP + "phase_1/IteratorGetNext", "IteratorGetNext", ""),
    ],
)
def test_operations_are_assigned_to_phases_by_scope(name: str, kind: str, phase: str) -> None:
    assert Classifier(NETWORKS, ("judge", "make")).place(op(name, 0, 1, kind))[0] == phase


def test_uncovered_time_is_idle() -> None:
    assert divided(op(FORWARD_G, 1, 2), op(BACKWARD_G, 5, 4)) == {
        ("generator", "backward"): 4,
        ("", "idle"): 4,
        ("generator", "forward"): 2,
    }
    assert divided() == {("", "idle"): 10}


def test_overlapping_operations_share_time_evenly() -> None:
    several = divided(
        op(FORWARD_G, 0, 10),
        op(BACKWARD_G, 4, 6, line="tf_Compute/2"),
        op(BACKWARD_G, 4, 6, line="tf_Compute/3"),
    )
    assert several == {
        ("generator", "forward"): pytest.approx(6),
        ("generator", "backward"): pytest.approx(4),
    }


def test_innermost_of_nested_operations_counts() -> None:
    nested = divided(
        op(FORWARD_G, 0, 10), op(FORWARD_D, 2, 5), op(BACKWARD_G, 3, 1), op(FORWARD_D, 8, 1)
    )
    assert nested == {
        ("generator", "forward"): 4,
        ("discriminator", "forward"): 5,
        ("generator", "backward"): 1,
    }


def test_exchange_overlapped_by_compute_costs_nothing() -> None:
    shares = divided(
        op(FORWARD_G, 0, 7),
        op(SUM_G, 2, 6, "CollectiveReduceV2", "collective_ops/1"),
        op("x", 2, 7.5, "IteratorGetNext", "tf_data"),
    )
    assert shares == {
        ("generator", "forward"): 7,
        ("generator", "gradient_all_reduce"): 1,
        ("", "input"): 1.5,
        ("", "idle"): 0.5,
    }


def test_in_memory_reduction_counts_as_compute() -> None:
    assert divided(op(FORWARD_G, 0, 10), op(SUM_G, 0, 10, "AddN", "tf_Compute/2")) == {
        ("generator", "forward"): 5,
        ("generator", "gradient_all_reduce"): 5,
    }


def test_handed_over_work_counts_only_without_other_compute() -> None:
    shares = divided(
        op(FORWARD_G, 0, 4),
        op(BACKWARD_G, 1, 8, handed_over=True),
        op(SUM_G, 0, 10, "CollectiveReduceV2", "collective_ops/1"),
    )
    assert shares == {
        ("generator", "forward"): 4,
        ("generator", "backward"): 5,
        ("generator", "gradient_all_reduce"): 1,
    }


def test_calls_waiting_for_their_callees_do_not_count() -> None:
    assert divided(
        op("cluster_1/xla_run", 0, 10, "_XlaRun"), op(FORWARD_G, 2, 3, line="tf_numa_-1_Eigen/1")
    ) == {
        ("generator", "forward"): 3,
        ("", "idle"): 7,
    }


def test_only_time_within_the_window_counts() -> None:
    assert divided(op(FORWARD_G, -5, 6), op(BACKWARD_G, 9, 5), op(FORWARD_D, 20, 1)) == {
        ("generator", "forward"): 1,
        ("generator", "backward"): 1,
        ("", "idle"): 8,
    }


def test_shares_sum_to_1_and_are_averaged_over_devices() -> None:
    shares = profile_shares(
        [[op(FORWARD_G, 0, 4)], [op(FORWARD_G, 0, 2), op(BACKWARD_G, 2, 2)]],
        Window(0.0, 4.0),
        NETWORKS,
    )
    assert shares == (
        ProfileShare("generator", "forward", 3.0, 0.75),
        ProfileShare("generator", "backward", 1.0, 0.25),
    )
