"""Queries find the metrics of a run by role, from the workload's declaration, and work without one
if the workload is unknown.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.compare import results
from gan_runtime import catalog
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.store import Store

NewRun = Callable[..., RunDir]
SCORES = {
    "probe_score_real": 0.75,
    "probe_score_fake": 0.25,
    "spread_real": 0.5,
    "spread_fake": 0.25,
}


@pytest.fixture
def measured(new_run: NewRun) -> Callable[[str, str], None]:
    """Stores a run of a workload with four steps in two epochs, and scores at the end of each."""

    def make(run_id: str, workload: str) -> None:
        run = new_run(run_id)
        text = run.supervisor_journal.read_text(encoding="utf-8")
        run.supervisor_journal.write_text(
            text.replace('"dcgan_mnist"', json.dumps(workload)), encoding="utf-8"
        )
        for epoch in (1, 2):
            steps = [2.0 * epoch - 1, 2.0 * epoch]
            values = {"loss_generator": steps, "cell_energy": [0.5, 0.5]}
            journal.append(
                run.trainer_journal(),
                1,
                journal.Scalars(epoch=epoch, first_step=2 * epoch - 1, wall_s=steps, values=values),
                journal.EpochScores(
                    epoch=epoch,
                    step=2 * epoch,
                    wall_s=2.0 * epoch,
                    values=SCORES | {"mode_count": 9.0},
                ),
            )

    return make


@pytest.fixture
def stored(
    measured: Callable[[str, str], None], take_in: Callable[[], None], store: Store
) -> Store:
    """A run of a known workload and one of a workload that this version does not have."""
    measured("known-0001", "dcgan_mnist")
    measured("other-0001", "removed_gan")
    take_in()
    return store


def test_results_follow_the_roles_of_the_workload(stored: Store) -> None:
    first, second = queries.results(stored, ["known-0001", "other-0001"]).to_dict("records")
    assert (first["score_gap_last"], first["spread_ratio_last"], first["loss_generator"]) == (
        0.5,
        0.5,
        4.0,
    )
    assert (second["seconds"], first["seconds"]) == (4.0, 4.0)
    assert [
        name for name in ("score_gap_last", "spread_ratio_last") if second[name] == second[name]
    ] == []


def test_runs_of_unknown_workloads_have_no_loss_columns(stored: Store) -> None:
    assert queries.declared_of(stored, ["other-0001"]) == declarations.Declarations()
    assert "loss_generator" not in queries.results(stored, ["other-0001"])
    assert {"loss_generator", "loss_discriminator"} < set(queries.run_table(stored))


def test_undeclared_numbers_are_per_step_or_per_epoch_as_recorded(
    stored: Store,
) -> None:
    table = queries.metric_table(stored, ["known-0001"])
    assert (table["cell_energy"].per_epoch, table["mode_count"].per_epoch) == (False, True)
    assert table["mode_count"].title == "Mode count"
    foreign = queries.metric_table(stored, ["other-0001"])
    assert (foreign["loss_generator"].role, foreign["loss_generator"].per_epoch) == ("", False)
    assert foreign["spread_real"].per_epoch


def test_first_step_does_not_make_a_number_per_epoch(
    new_run: NewRun, take_in: Callable[[], None], store: Store
) -> None:
    first = journal.Scalars(epoch=1, first_step=1, wall_s=[1.0], values={"cell_energy": [0.5]})
    journal.append(new_run("known-0001").trainer_journal(), 1, first)
    take_in()
    assert queries.once_an_epoch(store, ["known-0001"], ["cell_energy"]) == set()


def test_speed_of_a_run_does_not_depend_on_metric_names(
    stored: Store,
) -> None:
    progress = queries.progress(stored, "other-0001")
    assert (progress.step, progress.seconds_per_step) == (4, 1.0)


def test_metrics_view_lists_what_each_workload_declares(stored: Store) -> None:
    rows = stored.rows(
        "SELECT workload, metric, axis, network FROM metrics WHERE role = 'loss' AND axis = 'Loss"
        " (nats)' ORDER BY workload, place"
    )
    assert rows == [
        (workload, f"loss_{network}", "Loss (nats)", network)
        for workload in ("dcgan", "dcgan_mnist", "mlp_gan")
        for network in ("generator", "discriminator")
    ]
    quality = "SELECT workload, metric, better FROM metrics WHERE role = 'quality'"
    assert stored.rows(f"{quality} ORDER BY workload") == [
        ("pix2pix", "tile_error", "lower"),
        ("shower_3dgan", "sampling_fraction_error", "lower"),
    ]
    assert stored.rows(
        "SELECT DISTINCT per_epoch FROM metrics WHERE metric = 'gradient_norm_generator'"
    ) == [(True,)]


def test_metric_with_a_better_direction_has_a_best_epoch(
    monkeypatch: pytest.MonkeyPatch, new_run: NewRun, take_in: Callable[[], None], store: Store
) -> None:
    entry = catalog.WORKLOADS["dcgan_mnist"]
    modes = Metric("mode_count", "Modes", "Modes found", per_epoch=True, better="higher")
    monkeypatch.setitem(
        catalog.WORKLOADS, "dcgan_mnist", replace(entry, metrics=(*entry.metrics, modes))
    )
    counted = {1: 7.0, 2: 9.0, 3: 9.0, 4: float("nan"), 5: 8.0}
    journal.append(
        new_run("known-0001").trainer_journal(),
        1,
        *(
            journal.EpochScores(epoch=epoch, step=epoch, wall_s=1.0, values={"mode_count": number})
            for epoch, number in counted.items()
        ),
    )
    take_in()
    [row] = queries.results(store, ["known-0001"]).to_dict("records")
    assert [row[f"mode_count_{part}"] for part in ("best", "best_epoch", "last")] == [
        9.0,
        2.0,
        8.0,
    ]
    declaration = queries.declared_of(store, ["known-0001"])
    assert results.results(declaration)["mode_count_best"].best == "highest"
    names = [metric.name for metric in declaration.compared]
    assert [name for name in names if not name.startswith("quality_")] == [
        "loss_generator",
        "loss_discriminator",
        "mode_count",
    ]


def test_times_have_no_best_epoch() -> None:
    rated = {metric.name for name in catalog.WORKLOADS for metric in declarations.of(name).rated}
    assert {"physics_profiles", "flow_horizon", "flow_horizon_replay"} < rated
    assert rated.isdisjoint({"physics_ms_single", "physics_ms_batch", "flow_ms_frame"})
