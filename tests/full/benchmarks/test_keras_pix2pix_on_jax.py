"""The peer of the row `pair_cycles` is the same GAN: equal weights and pairs give equal losses,
step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_frames import small_pairs

STEPS = 2
LOSSES = ("loss_generator", "loss_discriminator")
# Two devices with two pairs each. No dropout: each side draws it from its own random generator.
OPTIONS: dict[str, Any] = {
    "seed": 3,
    "tile": 16,
    "dropout": 0.0,
    "batch_size_global": 4,
    "replicas": 2,
}


def test_peer_losses_match_only_synchronized_batch_norm(
    jax: JaxProcess,
) -> None:
    data = small_pairs(4)
    theirs = jax("tests.full.benchmarks.jax_peers:pix2pix_peer", data, OPTIONS, STEPS)
    for scope, least, most in (("synchronised", 0.0, 1e-5), ("per_replica", 1e-3, 1.0)):
        ours, _ = jax("trained", "pix2pix", data, (STEPS,), {**OPTIONS, "batch_norm": scope})
        apart = np.max([np.abs(ours[loss] / theirs[loss] - 1.0) for loss in LOSSES])
        assert least <= apart <= most, f"{scope}: the losses are {apart:.1e} apart"
    moved = [abs(theirs[loss][1] / theirs[loss][0] - 1.0) for loss in LOSSES]
    assert min(moved) > 5e-3, "an update moves both losses 500 times as far as they may be apart"
