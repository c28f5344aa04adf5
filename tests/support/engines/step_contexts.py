"""The step context for layers and losses on one TensorFlow replica, without an engine."""

from __future__ import annotations

from typing import Any

from gan_runtime.engines.tf.step import input_gradient, weighted_gradient
from gan_runtime.workloads.contract import Noise
from gan_runtime.workloads.step_context import LayerKernels, StepContext


def alone(
    noise: Noise, kernels: LayerKernels | None = None, loss_scaling: bool = False
) -> StepContext:
    """A context in which the mean over the replicas is the value itself."""

    def mean(tensor: Any) -> Any:
        return tensor

    return StepContext(noise, kernels, input_gradient, weighted_gradient, mean, loss_scaling)
