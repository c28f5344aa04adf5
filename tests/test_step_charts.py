"""Where the time of a step goes, by network and by variant: one chart, of other bars."""

from __future__ import annotations

import pandas as pd

from dashboard import palette, step_charts


def test_the_work_of_each_variant_is_named() -> None:
    shares = pd.DataFrame(
        {"variant": ["off", "jit"], "category": ["forward", "idle"], "share": [1.0, 1.0], "runs": [2, 1]}
    )
    chart = step_charts.by_variant(shares)
    assert chart.data["work"].tolist() == ["Forward", "Idle"]
    spec = chart.to_dict()
    assert spec["encoding"]["y"]["sort"] == ["off", "jit"]
    assert [field["title"] for field in spec["encoding"]["tooltip"]][::3] == ["Variant", "Runs profiled"]


def test_work_of_no_network_has_a_bar_below_those_of_the_networks() -> None:
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
    assert [field["title"] for field in spec["encoding"]["tooltip"]][::3] == ["Network", "Seconds per step"]


def test_a_phase_has_a_bar_with_the_work_of_all_networks_in_it() -> None:
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


def test_all_the_work_of_a_step_in_a_sentence() -> None:
    shares = pd.DataFrame(
        {
            "category": ["backward", "forward", "backward", "idle", "unattributed"],
            "share": [0.4, 0.37, 0.21, 0.0197, 0.0003],
        }
    )
    assert (
        step_charts.totals(shares).replace("\u2009", " ")
        == "Forward 37.0 %, Backward 61.0 %, Input 0.0 %, Idle 2.0 %"
    )
