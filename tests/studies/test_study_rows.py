"""A study in the queue and in the store: two batch sizes, two repeats each, with trainer journals
written for these tests.

The first epoch of a finished run takes 10 s, each later one 4 s at batch 64 and 3 s at batch 128;
both have 3 epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import HomeError, SpecError
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.studies.design import StudyDesign
from tests.studies.hand_written import At, from_now, train
from tests.support.asking import ask, ask_of, ids

BASE = {"workload": "mlp_gan", "epochs": 3}


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def study(home: Home, host: Host) -> list[RunDir]:
    """Queued runs: batch 64, batch 128, batch 64, batch 128."""
    return ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"], 2))


@pytest.fixture
def at() -> At:
    """See `from_now`."""
    return from_now()


@pytest.fixture
def take_in(home: Home, store: Store) -> Callable[[], None]:
    ingestor = Ingestor(home, store)
    return lambda: ingestor.catch_up() and None


def test_study_runs_know_their_place_and_are_queued_in_order(
    study: list[RunDir], store: Store, take_in: Callable[[], None]
) -> None:
    take_in()
    assert [run.run_id for run in study] == [
        "batch-size-0002",
        "batch-size-0003",
        "batch-size-0004",
        "batch-size-0005",
    ]
    waiting = queries.queue(store)
    assert [row.run_id for row in waiting] == [run.run_id for run in study]
    assert [(row.study_id, row.variant, row.repeat, row.name) for row in waiting] == [
        ("study-0001", "batch 64", 1, "batch 64 seed 1"),
        ("study-0001", "batch 128", 1, "batch 128 seed 1"),
        ("study-0001", "batch 128", 2, "batch 128 seed 2"),
        ("study-0001", "batch 64", 2, "batch 64 seed 2"),
    ]
    [row] = queries.studies(store)
    assert (row.title, row.question, row.runs, row.waiting, row.training, row.finished) == (
        "Batch size",
        "batch_size",
        4,
        4,
        0,
        0,
    )
    assert (row.status, row.is_live) == ("queued", True)
    assert store.rows("SELECT study_id, runs, finished FROM studies") == [("study-0001", 4, 0)]


def test_study_with_an_untrainable_run_queues_nothing(home: Home, host: Host) -> None:
    design = StudyDesign.parse("precision", {**BASE, "accelerator": "gpu"})
    with pytest.raises(SpecError):
        ask(home, host).submit_study(design)
    assert home.run_dirs() == []


def test_full_disk_leaves_no_partial_study(
    home: Home,
    host: Host,
    files_end_at: Callable[[int], AbstractContextManager[None]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real, calls = journal.append, []

    def fills_up(path: Path, *records: Any) -> None:
        """Fails at the third run; each run's journal is created when it is queued."""
        with files_end_at(0) if len(calls) == 2 else nullcontext():
            real(path, *records)
        calls.append(path)

    monkeypatch.setattr(journal, "append", fills_up)
    with pytest.raises(HomeError, match="check the disk"):
        ask(home, host).submit_study(StudyDesign.parse("batch_size", BASE, ["64", "128"], 2))
    assert len(calls) == 2
    assert home.run_dirs() == []


def test_a_whole_study_moves_in_the_queue(
    home: Home, host: Host, study: list[RunDir], store: Store, take_in: Callable[[], None]
) -> None:
    single = ask(home, host).submit(RunSpec.parse(BASE))
    ask_of(single).move_in_queue(single.run_id, "up", ids([study, [single]]))
    take_in()
    assert [row.run_id for row in queries.queue(store)] == [
        single.run_id,
        *(run.run_id for run in study),
    ]
    ask_of(study[1]).move_in_queue(study[1].run_id, "up", ids([[single], study]))
    take_in()
    assert [row.run_id for row in queries.queue(store)] == [
        *(run.run_id for run in study),
        single.run_id,
    ]


def test_results_identify_each_run_by_variant_and_repeat(
    study: list[RunDir], store: Store, take_in: Callable[[], None], at: At
) -> None:
    train(study[0], at, 0, 4.0)
    train(study[1], at, 100, 3.0)
    take_in()
    results = queries.study_results(store, "study-0001")
    assert list(results["variant"]) == ["batch 64", "batch 64", "batch 128", "batch 128"]
    assert list(results["repeat"]) == [1, 2, 1, 2]
    first, unborn, second, _ = results.to_dict("records")
    assert (first["run_id"], first["status"], unborn["status"]) == (
        "batch-size-0002",
        "finished",
        "queued",
    )
    assert (first["seconds"], first["epoch_seconds"], first["images_per_s"]) == pytest.approx(
        (18.0, 4.0, 160.0)
    )
    assert (second["seconds"], second["epoch_seconds"]) == pytest.approx((16.0, 3.0))
    assert (first["trace"], first["first_call"], first["steady_step"], first["compile"]) == (
        1.5,
        2.0,
        0.4,
        1.6,
    )
    assert first["memory_bytes"] == 2_000_000_000
    assert (first["loss_generator"], first["loss_discriminator"]) == (3.0, 1.5)  # of the last epoch
    assert first["spread_ratio"] == pytest.approx(0.6)
    assert math.isnan(unborn["epoch_seconds"])


def test_progress_and_time_left_come_from_completed_runs(
    study: list[RunDir], store: Store, take_in: Callable[[], None], at: At
) -> None:
    take_in()
    now = queries.study_progress(store, "study-0001")
    assert (now.share, now.seconds_left) == (0.0, None)
    train(study[0], at, 0, 4.0)  # 20 s from start to end
    take_in()
    now = queries.study_progress(store, "study-0001")
    # Each remaining run is estimated at 20 s: batch 128 as long per epoch as batch 64.
    assert now.share == 0.25
    assert now.seconds_left == pytest.approx(60.0)
    train(study[1], at, 100, 3.0, epochs=2, end="")  # still training: 10 steps are left
    take_in()
    now = queries.study_progress(store, "study-0001")
    assert now.share == pytest.approx((1 + 20 / 30) / 4)
    assert now.seconds_left == pytest.approx(
        10 * (13.0 - 2.0) / 18 + 20.0 + 20.0
    )  # its rate over all steps but the first
    assert queries.studies(store)[0].status == "running"


def test_ended_study_is_finished_only_if_all_runs_finished(
    study: list[RunDir], store: Store, take_in: Callable[[], None], at: At
) -> None:
    for number, run in enumerate(study):
        train(run, at, 100.0 * number, 4.0, end="stopped" if number == 2 else "finished")
    take_in()
    [row] = queries.studies(store)
    assert (row.status, row.is_live, row.finished) == ("stopped", False, 3)
    assert queries.study_progress(store, "study-0001").seconds_left == 0.0


def test_a_rebuilt_database_has_the_studies(study: list[RunDir], home: Home) -> None:
    fresh = Store()
    Ingestor(home, fresh).catch_up()
    assert [row.run_id for row in queries.study_runs(fresh, "study-0001")] == [
        run.run_id for run in study
    ]
