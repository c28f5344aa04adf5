"""Views of rollouts: their list, single numbers, numbers by step, and stage times."""

from __future__ import annotations

from collections.abc import Callable

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from tests.support.measured_flows import iteration


def test_each_way_of_a_rollout_is_stored_with_its_own_numbers(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run, other = new_run("quick-0001"), new_run("quick-0002", seconds=1)
    new_run("quick-0003", seconds=2)
    journal.append(
        run.earlier_journal("flow"),
        1,
        iteration(way="naive", steps=4),
        iteration(way="whole", steps=4),
    )
    journal.append(other.earlier_journal("flow"), 1, iteration(steps=4, error=0.2))
    store = ingest.store_of(home)
    assert queries.evaluated_runs(store, "rollout") == ["quick-0002", "quick-0001"]
    assert queries.evaluations(store, ["quick-0003"]) == []
    assert store.rows("SELECT run_id, iteration, way FROM flow ORDER BY ALL") == [
        ("quick-0001", "iterate-0001", "naive"),
        ("quick-0001", "iterate-0001", "whole"),
        ("quick-0002", "iterate-0001", "map_reduce"),
    ]
    of_naive, of_far = "WHERE way = 'naive'", "WHERE run_id = 'quick-0002'"
    assert store.rows(
        f"SELECT cores, tile, reynolds, steps, film, obstacle_width, replay FROM flow {of_naive}"
    ) == [(1, [16, 16], 110.0, 4, "Re 110", 10.0, "Re 100 from frame 7")]
    scores = f"SELECT value, reference, replay FROM flow_scores {of_naive}"
    assert store.rows(f"{scores} AND score = 'rmse'") == [(0.25, 0.3, 0.15)]
    assert str(store.rows(f"{scores} AND score = 'horizon'")) == "[(2.0, nan, nan)]", (
        "it has no reference"
    )
    steps = store.frame(f"SELECT * FROM flow_steps {of_far} ORDER BY score, step")
    errors = steps[steps["score"] == "rmse"]
    assert errors["step"].tolist() == [1, 2, 3, 4]
    assert errors["value"].round(6).tolist() == [0.2, 0.4, 0.6, 0.8]
    assert errors["replay"].tolist() == [0.15] * 4
    assert steps[steps["score"] == "probe"]["step"].tolist() == [0, 1, 2, 3, 4]
    stages = store.rows(f"SELECT stage, times FROM flow_stages {of_naive} ORDER BY number")
    assert stages[:4] == [("preparation", 4), ("transfer_in", 4), ("trace", 1), ("compile", 1)]
