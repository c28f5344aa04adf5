"""A compile check with XLA's compiler for GPUs, in the process of its job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gan_runtime.gpu import check as checks
from gan_runtime.gpu.compiled_step import CompiledStep
from gan_runtime.gpu.program import Taps
from gan_runtime.records.home import Home
from tests.support.asking import ask

COMPILE_SECONDS = 400.0
pytestmark = [
    pytest.mark.timeout(500),
    pytest.mark.skipif(bool(checks.missing_compiler()), reason=checks.missing_compiler()),
]
STEPS = {
    "five taps, one of them uneven": (
        {
            "workload": "dcgan_mnist",
            "dataset": "mnist",
            "batch_size_global": 32,
            "precision": "mixed_bfloat16",
        },
        (6, 6),  # a row of zeros makes the padding even
    ),
    "four taps and a U-Net": (
        {
            "workload": "pix2pix",
            "dataset": "karman",
            "batch_size_global": 4,
            "pix2pix.size": "small",
            "precision": "float32",
        },
        (4, 4),
    ),
}


@pytest.mark.parametrize(("options", "widest"), STEPS.values(), ids=STEPS)
def test_no_forward_convolution_is_wider_than_its_layers_kernel(
    home: Home, options: dict[str, Any], widest: Taps, wait_until: Callable[..., Any]
) -> None:
    """XLA's compiler would use an image as a kernel, with few multiprocessors at work."""
    compiled = _compiled(home, options, "h100", wait_until)
    assert compiled.refused == ""
    assert compiled.wide == ()
    assert compiled.widest == widest
    assert compiled.kernels > 50
    assert 0 < compiled.memory.total < 10e9


@pytest.mark.parametrize("card", ["v100", "a6000", "b200"])
def test_a_step_compiles_for_older_smaller_and_newer_cards(
    home: Home, card: str, wait_until: Callable[..., Any]
) -> None:
    options = {"workload": "mlp_gan", "dataset": "digits", "precision": "float32"}
    compiled = _compiled(home, options, card, wait_until)
    assert (compiled.refused, compiled.widest) == ("", ())
    assert compiled.kernels > 10


def _compiled(
    home: Home, options: dict[str, Any], card: str, wait_until: Callable[..., Any]
) -> CompiledStep:
    plan = checks.make(options, card)
    ask(home).check_on_gpu(plan)
    snapshot = wait_until(
        lambda: (job := checks.newest(home, plan)) and not job.is_live and job,
        "the end of the check",
        COMPILE_SECONDS,
    )
    compiled = checks.answer(snapshot)
    assert compiled is not None, snapshot.end
    return compiled
