"""Effects of a lower precision: weight changes, loss scales, and an overflow on one replica."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.workloads import dcgan_mnist
from tests.support.engines.overflowing import OVERFLOWING
from tests.support.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_close,
    assert_moves_alike,
    copies_in_use,
    cosine,
    moved,
    random_images,
    seed_of,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
MOVE_BY_THE_GRADIENT = {
    "optimizer": "sgd",
    "learning_rate_generator": 1.0,
    "learning_rate_discriminator": 1.0,
}


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replica", [0, 1])
def test_overflow_on_one_replica_skips_the_step_on_all(make: MakeEngine, replica: int) -> None:
    images = random_images(40)
    images[0] = 255
    engine = make(
        2, OVERFLOWING, images, precision="mixed_float16", seed=seed_of(replica, 1, BATCH, 40)
    )
    trained(engine, 1)
    before = engine.state()
    engine.run(1)
    after = engine.state()
    changed = {
        name.rpartition("/")[2] for name in before if not np.array_equal(before[name], after[name])
    }
    assert {"step", "dynamic_scale"} <= changed <= {"step", "dynamic_scale", "step_counter"}
    scales = {
        float(after[name] / before[name]) for name in before if name.endswith("dynamic_scale")
    }
    assert scales == {0.5}
    for name, (first, *other_copies) in copies_in_use(engine).items():
        assert all(np.array_equal(first, other) for other in other_copies), name
    numbers = engine.run(1).values
    assert [
        numbers[f"loss_scale_{network}"].item() for network in ("generator", "discriminator")
    ] == [
        16_384.0,
        16_384.0,
    ]
    assert not np.array_equal(
        engine.state()["generator/generator/hidden/kernel"],
        after["generator/generator/hidden/kernel"],
    )


def test_float16_without_overflow_trains_like_float32(make: MakeEngine) -> None:
    exact, half = make(1), make(2, precision="mixed_float16")
    result = trained(half, 7)
    scales = {result.pop(f"loss_scale_{network}")[-1] for network in ("generator", "discriminator")}
    assert scales == {32768.0}
    assert_close(result, trained(exact, 7), 0.01)


def test_each_loss_is_scaled_and_unscaled_for_its_own_network(make: MakeEngine) -> None:
    """Powers of two change no float16 number unless one overflows, so any scales give the same
    step.
    """
    after = {}
    for scales in (
        {"generator": 2.0**10, "discriminator": 2.0**10},
        {"generator": 2.0**8, "discriminator": 2.0**12},
    ):
        engine = make(1, precision="mixed_float16", **MOVE_BY_THE_GRADIENT)
        state = engine.state()
        arrays = {
            name: scales[name.split("/")[0].removeprefix("optimizer_")]
            for name in state
            if name.endswith("dynamic_scale")
        }
        assert len(arrays) == 2
        before = state | {name: np.float32(scale) for name, scale in arrays.items()}
        engine.load(before)
        trained(engine, 1)
        after[scales["generator"]] = engine.state()
    assert_moves_alike(before, after[2.0**8], after[2.0**10], 1e-3)


def test_bfloat16_updates_float32_weights_like_float32(make: MakeEngine) -> None:
    options = {
        "optimizer": "sgd",
        "learning_rate_generator": 0.1,
        "learning_rate_discriminator": 0.1,
    }
    exact, rough = (make(2, precision=name, **options) for name in ("float32", "mixed_bfloat16"))
    before = exact.state()
    assert_close(trained(rough, 3), trained(exact, 3), 0.02)
    states = exact.state(), rough.state()
    assert {str(array.dtype) for name, array in states[1].items() if "kernel" in name} == {
        "float32"
    }
    for network in ("generator", "discriminator"):
        expected, result = (moved(before, state, network) for state in states)
        assert cosine(result, expected) > 0.98
        assert np.linalg.norm(result) == pytest.approx(np.linalg.norm(expected), rel=0.05)


def test_dcgan_gradients_in_bfloat16_align_with_float32(
    make: MakeEngine,
) -> None:
    """Each layer separately, within 18°. At rate 1 the weights move by the gradient.

    Rounding turns them by 13° on processors without bfloat16 arithmetic, because the sums are
    rounded too. A filter gradient that is off by one pixel turns by more than 60°.
    """
    after = {}
    for precision in ("float32", "mixed_bfloat16"):
        engine = make(1, dcgan_mnist.WORKLOAD, precision=precision, **MOVE_BY_THE_GRADIENT)
        before = engine.state()
        trained(engine, 1)
        after[precision] = engine.state()
    kernels = [name for name in before if name.endswith("/kernel")]
    assert len(kernels) == 4 + 3
    for name in kernels:
        expected, result = ((after[precision][name] - before[name]).ravel() for precision in after)
        assert cosine(result, expected) > 0.95, name
        assert np.linalg.norm(result) == pytest.approx(np.linalg.norm(expected), rel=0.05), name
