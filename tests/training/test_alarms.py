"""Alarms: when they are raised, and the evidence they give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gan_runtime import catalog
from gan_runtime.base.metrics import Metric, Network, Role
from gan_runtime.spec import RunSpec
from gan_runtime.training import alarms

SPEC = RunSpec()
HEALTHY = {
    "probe_score_real": 0.6,
    "probe_score_fake": 0.4,
    "spread_real": 0.2,
    "spread_fake": 0.15,
}


def test_a_healthy_epoch_raises_nothing() -> None:
    assert alarms.raised(SPEC, HEALTHY, epoch=2) == []


def test_nearly_identical_images_are_a_collapse() -> None:
    [alarm] = alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0178}, epoch=7)
    assert alarm.topic == "alarm_collapse"
    assert (
        alarm.message
        == "The generator collapsed in epoch 7: spread 0.018 in generated images, 0.2 in real"
        " images (share 8.9%, alarm below 10.0%)."
    )
    assert alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0201}, epoch=7) == []


def test_steeply_rising_spread_is_not_a_collapse() -> None:
    little = HEALTHY | {"spread_fake": 0.01}
    assert alarms.raised(SPEC, little, 2, HEALTHY | {"spread_fake": 0.0066}) == []
    for before in (HEALTHY | {"spread_fake": 0.0067}, HEALTHY, {}, None):
        assert [alarm.topic for alarm in alarms.raised(SPEC, little, 2, before)] == [
            "alarm_collapse"
        ]
    nothing = alarms.raised(
        SPEC, HEALTHY | {"spread_fake": 0.0019}, 2, HEALTHY | {"spread_fake": 0.0}
    )
    assert [alarm.topic for alarm in nothing] == ["alarm_collapse"], (
        "a hundredth of the real spread"
    )
    won = little | {"probe_score_fake": 0.002, "probe_score_real": 0.995}
    assert [
        alarm.topic for alarm in alarms.raised(SPEC, won, 2, HEALTHY | {"spread_fake": 0.001})
    ] == ["alarm_d_wins"]


def test_a_discriminator_that_is_always_right_has_won() -> None:
    [alarm] = alarms.raised(
        SPEC, HEALTHY | {"probe_score_fake": 0.002, "probe_score_real": 0.995}, epoch=3
    )
    assert alarm.topic == "alarm_d_wins"
    assert (
        alarm.message
        == "The discriminator won in epoch 3: mean score 0.002 of generated images, 0.99 of real"
        " images (alarm below 0.01 and above 0.99)."
    )
    assert (
        alarms.raised(SPEC, HEALTHY | {"probe_score_fake": 0.002}, epoch=3) == []
    )  # D doubts the real ones too


def test_the_first_epoch_raises_no_alarm() -> None:
    assert alarms.raised(SPEC, HEALTHY | {"spread_fake": 0.0}, epoch=1) == []


@pytest.mark.parametrize("option", ["collapse_share", "d_wins_score"])
def test_an_alarm_can_be_turned_off(option: str) -> None:
    spec = RunSpec.parse({"collapse_share": 0.1, "d_wins_score": 0.01, option: 0})
    scores = {
        "probe_score_real": 1.0,
        "probe_score_fake": 0.0,
        "spread_real": 0.2,
        "spread_fake": 0.0,
    }
    assert len(alarms.raised(spec, scores, epoch=2)) == 1


def test_workload_without_metric_roles_raises_no_alarm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hopeless = {
        "probe_score_real": 1.0,
        "probe_score_fake": 0.0,
        "spread_real": 0.2,
        "spread_fake": 0.0,
    }
    assert len(alarms.raised(SPEC, hopeless, epoch=2)) == 2
    silent = replace(catalog.WORKLOADS[SPEC.workload], metrics=())
    monkeypatch.setitem(catalog.WORKLOADS, SPEC.workload, silent)
    assert alarms.raised(SPEC, hopeless, epoch=2) == []


def test_alarm_uses_the_workloads_names_for_networks_and_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles: tuple[tuple[str, str, Role], ...] = (
        ("true_edge", "Simulated showers", "judged_real"),
        ("made_edge", "Made showers", "judged_generated"),
        ("true_width", "Simulated showers", "spread_of_real"),
        ("made_width", "Made showers", "spread_of_generated"),
    )
    showers = replace(
        catalog.WORKLOADS[SPEC.workload],
        networks=(Network("referee", "Referee"),),
        metrics=tuple(
            Metric(name, "A long title", "Value", role=role, network="referee", label=label)
            for name, label, role in roles
        ),
    )
    monkeypatch.setitem(catalog.WORKLOADS, SPEC.workload, showers)
    scores = {"true_edge": 1.0, "made_edge": 0.001, "true_width": 0.5, "made_width": 0.01}
    collapse, won = alarms.raised(SPEC, scores, epoch=2)
    assert collapse.message.startswith(
        "The referee collapsed in epoch 2: spread 0.01 in made showers, 0.5 in simulated showers"
    )
    assert won.message.startswith(
        "The referee won in epoch 2: mean score 0.001 of made showers, 1 of simulated showers"
    )


WELL = {
    "sampling_fraction_error": 0.05,
    "energy_response": 0.9,
    "empty_showers": 0.02,
    "probe_score_fake": 0.4,
    "probe_score_real": 0.6,
}
OF_SHOWERS = RunSpec.parse({"workload": "shower_3dgan"})


@pytest.mark.parametrize(("response", "said"), [(0.49, "have 0.49 times"), (1.6, "have 1.6 times")])
def test_showers_far_too_faint_or_too_bright_raise_an_alarm(response: float, said: str) -> None:
    assert alarms.raised(OF_SHOWERS, WELL, epoch=2) == []
    [alarm] = alarms.raised(OF_SHOWERS, WELL | {"energy_response": response}, epoch=2)
    assert alarm.topic == "alarm_response"
    assert (
        alarm.message
        == f"The generator is off by more than 50% in epoch 2: generated showers {said} the true"
        " size (alarm below 0.5 and above 1.5)."
    )


def test_many_empty_showers_raise_an_alarm() -> None:
    assert alarms.raised(OF_SHOWERS, WELL | {"empty_showers": 0.1}, epoch=2) == []
    [alarm] = alarms.raised(OF_SHOWERS, WELL | {"empty_showers": 0.25}, epoch=2)
    assert alarm.topic == "alarm_empty"
    assert (
        alarm.message
        == "The generator fails in epoch 2: 25.0% of its rows are empty (alarm above 10%)."
    )


def test_shortfall_is_the_quality_metric_where_the_workload_has_one() -> None:
    assert alarms.shortfall(OF_SHOWERS, WELL) == 0.05
    assert alarms.shortfall(OF_SHOWERS, {"probe_score_fake": 0.4, "probe_score_real": 0.6}) is None
    assert alarms.shortfall(SPEC, HEALTHY) is None, "D's scores are no measure of quality"


def test_the_best_epoch_has_the_highest_quality_if_higher_is_better(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sharpness = Metric("sharpness", "Sharpness", "Sharpness", role="quality", better="higher")
    entry = replace(catalog.WORKLOADS[SPEC.workload], metrics=(sharpness,))
    monkeypatch.setitem(catalog.WORKLOADS, SPEC.workload, entry)
    by_epoch = [alarms.shortfall(SPEC, {"sharpness": value}) for value in (0.2, 0.9, 0.4)]
    assert by_epoch.index(min(by_epoch)) == 1


def test_no_scores_give_no_shortfall() -> None:
    assert alarms.shortfall(SPEC, {}) is None
