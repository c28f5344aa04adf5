"""What a traced step is made of: operations of the graph, and kernels before and after XLA's optimizing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from gan_runtime.engines.contract import StepKernels
from gan_runtime.engines.hlo_counts import counted, total

_NO_WORK = {"Const", "Placeholder", "Identity", "IdentityN", "NoOp", "_Arg", "_Retval"}


def operations(concrete: Any) -> int:
    """Operations of a traced function and of all functions that it calls, each function once."""
    graph = concrete.graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    return sum(node.op not in _NO_WORK for node in nodes)


def step_kernels(concrete: Any, modules: Iterable[tuple[str, str]]) -> StepKernels:
    """`modules`: XLA's text of each compiled function, before and after optimizing; none where XLA compiles nothing."""
    texts = list(modules)
    if not texts:
        return StepKernels(operations(concrete), None, None, None)
    before, after = (total(counted(text) for text in stage) for stage in zip(*texts, strict=True))
    return StepKernels(operations(concrete), before.kernels, after.kernels, after.fusions)
