"""Alarms: when they are raised, and the evidence they give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gan_runtime import catalog
from gan_runtime.spec import RunSpec
from gan_runtime.training import alarms

SPEC = RunSpec()
HEALTHY = {"probe_score_real": 0.6, "probe_score_fake": 0.4, "spread_real": 0.2, "spread_fake": 0.15}


def test_a_healthy_epoch_raises_nothing() -> None:
    assert alarms.raised(SPEC, HEALTHY, epoch=2) == []


def test_images_that_hardly_differ_are_a_collapse() -> None:
    [alarm] = alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0178}, epoch=7)
    assert alarm.topic == "alarm_collapse"
    assert alarm.message == (
        "The generator has collapsed in epoch 7: its images vary by 0.018, the data by 0.2 (share 8.9%, alarm below 10.0%)."
    )
    assert alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0201}, epoch=7) == []


def test_a_discriminator_that_is_always_right_has_won() -> None:
    [alarm] = alarms.raised(SPEC, HEALTHY | {"probe_score_fake": 0.002, "probe_score_real": 0.995}, epoch=3)
    assert alarm.topic == "alarm_d_wins"
    assert (
        "its mean score is 0.002 for generated and 0.99 for real images (alarm below 0.01 and above 0.99)"
        in alarm.message
    )
    assert (
        alarms.raised(SPEC, HEALTHY | {"probe_score_fake": 0.002}, epoch=3) == []
    )  # it doubts the real ones too


def test_the_first_epoch_is_spared() -> None:
    assert alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0}, epoch=1) == []


@pytest.mark.parametrize("option", ["collapse_share", "d_wins_score"])
def test_an_alarm_can_be_turned_off(option: str) -> None:
    spec = RunSpec.parse({"collapse_share": 0.1, "d_wins_score": 0.01, option: 0})
    scores = {"probe_score_real": 1.0, "probe_score_fake": 0.0, "spread_real": 0.2, "spread_fake": 0.0}
    assert len(alarms.raised(spec, scores, epoch=2)) == 1


def test_a_workload_that_gives_no_number_a_role_has_no_alarm_and_no_best_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hopeless = {"probe_score_real": 1.0, "probe_score_fake": 0.0, "spread_real": 0.2, "spread_fake": 0.0}
    assert len(alarms.raised(SPEC, hopeless, epoch=2)) == 2
    assert alarms.gap(SPEC, hopeless) == 1.0
    silent = replace(catalog.WORKLOADS[SPEC.workload], metrics=())
    monkeypatch.setitem(catalog.WORKLOADS, SPEC.workload, silent)
    assert alarms.raised(SPEC, hopeless, epoch=2) == []
    assert alarms.gap(SPEC, hopeless) is None


def test_within_an_epoch_nothing_is_judged() -> None:
    assert alarms.gap(SPEC, {}) is None
