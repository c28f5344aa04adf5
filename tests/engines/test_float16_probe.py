"""A probe whose gradients overflow under the loss scale, on the real engines: its result omits them
and has no NaN.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import MakeEngine, random_images

SCALE = 2.0**30  # a gradient of 1e-4 then exceeds the range of float16


def without_overflow(names: list[str], scores: dict[str, float]) -> None:
    """Checks that weights and scores are present, gradients are absent, and no number is NaN."""
    assert "weight/generator" in names
    assert "score/fake" in names
    assert not [name for name in names if name in ("gradient/generator", "gradient/discriminator")]
    assert not [name for name in scores if name.startswith("gradient_norm")]
    assert all(np.isfinite(value) for value in scores.values())


@pytest.mark.usefixtures("cores")
def test_tensorflow_probe_skips_overflowed_gradients(make: MakeEngine) -> None:
    engine = make(1, precision="mixed_float16")
    arrays = engine.state()
    scales = {
        name: np.full_like(array, SCALE)
        for name, array in arrays.items()
        if name.endswith("dynamic_scale")
    }
    assert scales
    engine.load({**arrays, **scales})
    probe = engine.probe()
    without_overflow([histogram.name for histogram in probe.histograms], probe.scores)


def test_jax_probe_skips_overflowed_gradients(jax: JaxProcess) -> None:
    without_overflow(*jax("probed_in_float16", random_images(16), SCALE))
