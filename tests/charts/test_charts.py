"""The charts of several workers, as data."""

from __future__ import annotations

import pandas as pd

from dashboard import step_charts, words


def test_worker_bars_split_own_work_and_waiting() -> None:
    times = pd.DataFrame(
        {
            "rank": [0, 1],
            "step_s": 0.4,
            "compute_s": [0.1, 0.3],
            "wait_s": [0.3, 0.1],
            "wait_share": [0.75, 0.25],
        }
    )
    rows = step_charts.worker_bars(times).data
    assert rows.groupby("worker")["milliseconds"].sum().round(6).to_dict() == {
        "Worker 0": 400.0,
        "Worker 1": 400.0,
    }
    work = rows[rows["part"] == "Own work"].set_index("rank")["milliseconds"].round(6)
    assert work.to_dict() == {0: 100.0, 1: 300.0}


def test_the_sentence_names_the_slowest_worker() -> None:
    assert (
        words.waiting([0.1, 0.3], 0.75)
        == "Worker 1 is the slowest: the others wait 75% of each step."
    )
    assert words.waiting([0.1, 0.11], 0.2).startswith("All workers take about the same time.")
