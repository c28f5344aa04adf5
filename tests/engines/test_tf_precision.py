"""Loss scales of float16, and an overflow on one replica alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from keras import ops

from gan_runtime.engines.tf_devices import make_strategy
from gan_runtime.engines.tf_input import distributed_batches
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Forward, Objective, Phase
from gan_runtime.workloads.mlp_gan import MlpGan
from gan_runtime.workloads.pair import pair_phases
from tests.engines.small_engines import (
    BATCH,
    MakeEngine,
    assert_close,
    copies_in_use,
    kept,
    random_images,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")
[INNER] = pair_phases(MlpGan.latent_size, Objective())  # each network follows a loss of its own


class Overflowing(MlpGan):
    """Its losses are infinite on the replica that sees the white image, and as usual on the others."""

    def phases(self, objective: Objective) -> tuple[Phase, ...]:  # noqa: ARG002
        """One phase with the losses below."""
        return (Phase(self.forward, INNER.updates),)

    def forward(self, networks: Any, batch: Any, stream: Any) -> Forward:
        """As the inner forward pass, times infinity where the white image is."""
        inner = INNER.forward(networks, batch, stream)
        factor = ops.where(ops.max(batch["images"]) > 0.999, np.float32(np.inf), np.float32(1.0))
        return Forward({name: loss * factor for name, loss in inner.losses.items()}, inner.scalars)


def white_on_replica(seed: int) -> list[int | None]:
    """For each of the first five steps, an epoch, the replica that sees image 0."""
    spec = RunSpec.parse({"replicas": 2, "batch_size_global": BATCH, "seed": seed})
    numbers = np.arange(40, dtype=np.uint8).reshape(40, 1, 1, 1)
    strategy = make_strategy(spec, "cpu")
    iterator = kept(distributed_batches(strategy, spec, numbers, 0))
    steps = [[0 in share.numpy() for share in strategy.experimental_local_results(next(iterator))] for _ in range(5)]
    return [step.index(True) if any(step) else None for step in steps]


@pytest.mark.usefixtures("exchange")
@pytest.mark.parametrize("replica", [0, 1])
def test_an_overflow_on_one_replica_skips_the_step_on_all(make: MakeEngine, replica: int) -> None:
    seed, step = next((seed, seen.index(replica)) for seed in range(1, 60) if replica in (seen := white_on_replica(seed))[1:4])
    images = random_images(40)
    images[0] = 255
    engine = make(2, Overflowing(), images, precision="mixed_float16", seed=seed)
    trained(engine, step)
    before = engine.state()
    engine.run(1)
    after = engine.state()
    changed = {name.rpartition("/")[2] for name in before if not np.array_equal(before[name], after[name])}
    assert {"step", "dynamic_scale"} <= changed <= {"step", "dynamic_scale", "step_counter"}
    scales = {float(after[name] / before[name]) for name in before if name.endswith("dynamic_scale")}
    assert scales == {0.5}
    for name, (first, *others) in copies_in_use(engine).items():
        assert all(np.array_equal(first, other) for other in others), name
    numbers = engine.run(1).values
    assert [numbers[f"loss_scale_{network}"].item() for network in ("generator", "discriminator")] == [16_384.0, 16_384.0]
    assert not np.array_equal(engine.state()["generator/generator/hidden/kernel"], after["generator/generator/hidden/kernel"])


def test_float16_without_overflow_trains_as_float32_does(make: MakeEngine) -> None:
    exact, half = make(1), make(2, precision="mixed_float16")
    found = trained(half, 7)
    scales = {found.pop(f"loss_scale_{network}")[-1] for network in ("generator", "discriminator")}
    assert scales == {32768.0}
    assert_close(found, trained(exact, 7), 0.01)
