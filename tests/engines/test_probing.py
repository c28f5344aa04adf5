"""What a probe tells where values are not finite, for both engines."""

from __future__ import annotations

import numpy as np

from gan_runtime.engines.probing import probed

GOOD = (np.array([3, 1], np.int32), np.array([0.0, 1.0], np.float32))
OVERFLOWED = (np.array([4, 0], np.int32), np.array([-1.0, np.inf], np.float32))
NAN = float("nan")


def test_a_histogram_without_bins_is_left_out_and_others_are_in_the_order_of_their_names() -> None:
    found = probed({"weight/g": GOOD, "gradient/g": OVERFLOWED, "gradient/d": GOOD}, {}, loss_scaled=True)
    assert [(item.name, item.edges.tolist(), item.counts.tolist()) for item in found.histograms] == [
        ("gradient/d", [0.0, 0.5, 1.0], [3, 1]),
        ("weight/g", [0.0, 0.5, 1.0], [3, 1]),
    ]


def test_a_norm_that_overflows_under_a_loss_scale_is_left_out_and_nothing_else() -> None:
    scores = {"gradient_norm_generator": np.inf, "gradient_norm_discriminator": 2.0, "spread_fake": NAN}
    assert list(probed({}, scores, loss_scaled=True).scores) == ["gradient_norm_discriminator", "spread_fake"]
    assert list(probed({}, scores, loss_scaled=False).scores) == [
        "gradient_norm_discriminator",
        "gradient_norm_generator",
        "spread_fake",
    ]


def test_scores_that_are_no_numbers_are_not_drawn_as_zeros() -> None:
    scores = {"probe_score_real": NAN, "probe_score_fake": 0.5}
    found = probed({"score/real": GOOD, "score/fake": GOOD}, scores, loss_scaled=False)
    assert [item.name for item in found.histograms] == ["score/fake"]
