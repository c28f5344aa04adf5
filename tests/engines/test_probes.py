"""Probe results with values that are not finite, for both engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.base.fields import labels
from gan_runtime.catalog.entries import Judgement
from gan_runtime.engines.probes import ProbeClasses, gradient_names, probe_result, score_range
from gan_runtime.records.journal import EpochScores
from gan_runtime.workloads.contract import Forward, Phase, Program, Update

GOOD = (np.array([3, 1], np.int32), np.array([0.0, 1.0], np.float32))
OVERFLOWED = (np.array([4, 0], np.int32), np.array([-1.0, np.inf], np.float32))
NAN = float("nan")


def test_overflowed_histograms_are_skipped_and_the_rest_sorted() -> None:
    result = probe_result(
        {"weight/g": GOOD, "gradient/g": OVERFLOWED, "gradient/d": GOOD}, {}, loss_scaled=True
    )
    assert [
        (histogram.name, histogram.edges.tolist(), histogram.counts.tolist())
        for histogram in result.histograms
    ] == [
        ("gradient/d", [0.0, 0.5, 1.0], [3, 1]),
        ("weight/g", [0.0, 0.5, 1.0], [3, 1]),
    ]


def test_only_overflowed_norms_are_skipped_under_a_loss_scale() -> None:
    scores = {
        "gradient_norm_generator": np.inf,
        "gradient_norm_discriminator": 2.0,
        "spread_fake": NAN,
    }
    assert list(probe_result({}, scores, loss_scaled=True).scores) == [
        "gradient_norm_discriminator",
        "spread_fake",
    ]
    assert list(probe_result({}, scores, loss_scaled=False).scores) == [
        "gradient_norm_discriminator",
        "gradient_norm_generator",
        "spread_fake",
    ]


def test_nan_scores_are_skipped_instead_of_drawn_as_zeros() -> None:
    strange = (GOOD[0], np.array([NAN, NAN], np.float32))
    result = probe_result({"score/real": strange, "score/fake": GOOD}, {}, loss_scaled=False)
    assert [histogram.name for histogram in result.histograms] == ["score/fake"]


def test_judged_values_have_means_for_each_class_with_rows() -> None:
    fields = {"labels": labels(("cat", "dog", "fish"))}
    classes = ProbeClasses.of(fields, {"labels": np.array([2, 0, 2, 0, 2], np.int32)})
    judged = np.array([0.25, 0.5, 0.75, 1.0, 2.0], np.float32)
    assert classes.means({"real": judged}) == {"score/real/cat": 0.75, "score/real/fish": 1.0}
    assert np.isnan(classes.means({"fake": np.array([1, NAN, 1, 1, 1])})["score/fake/cat"]), (
        "that is an alarm"
    )


@pytest.mark.parametrize("count", [0, 1, 21])
def test_zero_one_or_too_many_classes_have_no_class_scores(count: int) -> None:
    fields = {"labels": labels(tuple(map(str, range(count))))}
    classes = ProbeClasses.of(fields if count else {}, {"labels": np.zeros(2, np.int32)})
    assert classes.means({"real": np.zeros(2, np.float32)}) == {}


def test_long_class_names_with_a_common_prefix_stay_distinct() -> None:
    long = tuple(f"{'x' * 250}{number}" for number in range(2))
    classes = ProbeClasses.of({"labels": labels(long)}, {"labels": np.array([0, 1, 1])})
    means = classes.means({"real": np.array([1.0, 2.0, 4.0])})
    assert list(means.values()) == [1.0, 3.0]
    assert EpochScores(epoch=1, step=1, wall_s=1.0, values=means).values == means


def no_forward(*_: object) -> Forward:
    raise AssertionError


def test_gradients_are_named_by_phase_if_several_update_a_network() -> None:
    critic, painter = Update("critic", "loss"), Update("painter", "loss")
    first, second = (Phase(name, no_forward, (critic,)) for name in ("first", "second"))
    paint = Phase("paint", no_forward, (painter,))
    program = Program((first, second, paint))
    assert gradient_names(program, first, "critic") == (
        "gradient@first",
        "gradient_norm_critic@first",
    )
    assert gradient_names(program, second, "critic") == (
        "gradient@second",
        "gradient_norm_critic@second",
    )
    assert gradient_names(program, paint, "painter") == ("gradient", "gradient_norm_painter")


@pytest.mark.parametrize(
    ("low", "high", "ends"), [(0.0, 1.0, (0.0, 1.0)), (None, None, None), (0.0, None, None)]
)
def test_judged_values_have_fixed_bins_only_with_both_ends_declared(
    low: float | None, high: float | None, ends: tuple[float, float] | None
) -> None:
    entry = replace(
        catalog.WORKLOADS["mlp_gan"], judgements=(Judgement("realism", "", "", low, high),)
    )
    assert score_range(entry, "realism") == ends
    assert score_range(entry, "undeclared") is None
