"""The breakdown of step time by network and by variant: one chart with different bars."""

from __future__ import annotations

import pandas as pd

from dashboard import palette, step_charts


def test_the_chart_by_variant_labels_each_kind_of_work() -> None:
    shares = pd.DataFrame(
        {
            "variant": ["off", "jit"],
            "category": ["forward", "idle"],
            "share": [1.0, 1.0],
            "runs": [2, 1],
        }
    )
    chart = step_charts.by_variant(shares)
    assert chart.data["work"].tolist() == ["Forward", "Idle"]
    spec = chart.to_dict()
    assert spec["encoding"]["y"]["sort"] == ["off", "jit"]
    assert [field["title"] for field in spec["encoding"]["tooltip"]][::3] == [
        "Variant",
        "Runs profiled",
    ]


def test_work_without_a_network_has_a_bar_below_the_others() -> None:
    shares = pd.DataFrame(
        {
            "network": ["critic", ""],
            "category": ["backward", "input"],
            "share": [0.75, 0.25],
            "seconds_per_step": [0.3, 0.1],
        }
    )
    spec = step_charts.by_network(shares, {"critic": "Critic"}).to_dict()
    assert spec["encoding"]["y"]["sort"] == ["Critic", "Neither"]
    assert spec["encoding"]["color"]["scale"]["range"][0] == palette.WORK["forward"]
    assert [field["title"] for field in spec["encoding"]["tooltip"]][::3] == [
        "Network",
        "Seconds per step",
    ]


def test_a_phase_bar_combines_the_work_of_all_networks() -> None:
    shares = pd.DataFrame(
        {
            "phase": ["judge", "judge", "paint", ""],
            "network": ["critic", "painter", "painter", ""],
            "category": ["forward", "forward", "backward", "input"],
            "share": [0.25, 0.125, 0.5, 0.125],
            "seconds_per_step": [0.2, 0.1, 0.4, 0.1],
        }
    )
    chart = step_charts.by_phase(shares, ["judge", "paint"])
    assert chart.data[["bar", "work", "share"]].values.tolist() == [
        ["judge", "Forward", 0.375],
        ["paint", "Backward", 0.5],
        ["Neither", "Input", 0.125],
    ]
    assert chart.to_dict()["encoding"]["y"]["sort"] == ["judge", "paint", "Neither"]


def test_totals_summarize_the_work_of_a_step() -> None:
    shares = pd.DataFrame(
        {
            "category": ["backward", "forward", "backward", "idle", "unattributed"],
            "share": [0.4, 0.37, 0.21, 0.0197, 0.0003],
        }
    )
    assert step_charts.totals(shares) == "Forward 37.0%, Backward 61.0%, Input 0.0%, Idle 2.0%"


def test_unknown_work_and_networks_are_drawn_and_labeled() -> None:
    shares = pd.DataFrame(
        {
            **{"variant": ["off"] * 3, "runs": [1] * 3, "phase": ["paint", "sculpt", ""]},
            **{
                "network": ["painter", "sculptor", ""],
                "category": ["forward", "teleport", "unattributed"],
            },
            **{"share": [0.5, 0.25, 0.25], "seconds_per_step": [0.2, 0.1, 0.1]},
        }
    )
    assert step_charts.totals(shares).startswith("Forward 50.0%, ")
    assert "Unattributed 50.0" in step_charts.totals(shares)
    rows = step_charts.by_network(shares, {"painter": "Painter"}).data
    assert rows[["bar", "work", "share"]].values.tolist() == [
        ["Painter", "Forward", 0.5],
        ["Neither", "Unattributed", 0.5],
    ]
    for chart in (step_charts.by_phase(shares, ["paint"]), step_charts.by_variant(shares)):
        assert chart.data["work"].tolist() == ["Forward", "Unattributed", "Unattributed"]
