"""What pages ask of iterations: which there are, single numbers, numbers by step, times."""

from __future__ import annotations

from collections.abc import Callable

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import memory, queries
from tests.support.measured_flows import iteration


def test_every_way_of_an_iteration_is_found_with_its_own_numbers(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run, other = new_run("quick-0001"), new_run("quick-0002", seconds=1)
    new_run("quick-0003", seconds=2)
    journal.append(run.flow_journal, 1, iteration(way="naive", steps=4), iteration(way="whole", steps=4))
    journal.append(other.flow_journal, 1, iteration(steps=4, error=0.2))
    store = memory.from_journals(home)
    assert queries.runs_with_flow(store) == ["quick-0002", "quick-0001"]
    assert queries.flows(store, ["quick-0003"]) == []
    rows = {row.key: row for row in queries.flows(store, ["quick-0001", "quick-0002"])}
    assert set(rows) == {
        "quick-0001.iterate-0001.naive",
        "quick-0001.iterate-0001.whole",
        "quick-0002.iterate-0001.map_reduce",
    }
    naive, far = rows["quick-0001.iterate-0001.naive"], rows["quick-0002.iterate-0001.map_reduce"]
    assert (naive.cores, naive.tile, naive.reynolds, naive.steps) == (1, [16, 16], 110.0, 4)
    assert queries.flow_scores(store, naive)["rmse"] == (0.25, 0.3, 0.15)
    assert queries.flow_scores(store, naive)["horizon"] == (2.0, None, None), "it has no reference"
    assert (naive.film, naive.obstacle_width, naive.replay) == ("Re 110", 10.0, "Re 100 from frame 7")
    steps = queries.flow_steps(store, far)
    errors = steps[steps["score"] == "rmse"]
    assert errors["step"].tolist() == [1, 2, 3, 4]
    assert errors["value"].round(6).tolist() == [0.2, 0.4, 0.6, 0.8]
    assert errors["replay"].tolist() == [0.15] * 4
    assert steps[steps["score"] == "probe"]["step"].tolist() == [0, 1, 2, 3, 4]
    stages = queries.flow_stages(store, naive)
    assert stages["stage"].tolist()[:2] == ["preparation", "transfer_in"]
    assert stages["times"].tolist()[1:4] == [4, 1, 1], "traced and compiled once"
