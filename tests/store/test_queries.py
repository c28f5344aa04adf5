"""Queries of the pages, on a journal written for these tests.

The run "quick-0001" has 8 images in batches of 2, so 4 steps per epoch. The first step takes 10 s
(compilation), every other step 1 s. At step n the generator loss is n/10, the discriminator loss
n/100. The run is at step 6, in the second of two epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pandas as pd
import pytest

from gan_runtime.base.errors import UnknownRunError
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries, scalar_blocks
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.queries import PeakMemory, SampleGrid, run_curves
from gan_runtime.store.store import Store
from tests.support.small_pictures import png

At = Callable[[float], datetime]
NewRun = Callable[..., RunDir]
LOSSES = ("loss_generator", "loss_discriminator")


def calls(
    first_step: int, last_step: int, epoch: int, written: datetime | None = None
) -> journal.Scalars:
    """Steps of one epoch of "quick-0001"."""
    numbers = range(first_step, last_step + 1)
    values = {
        "loss_generator": [number / 10 for number in numbers],
        "loss_discriminator": [number / 100 for number in numbers],
        "d_real": [0.75] * len(numbers),
    }
    wall_s = [9.0 + number for number in numbers]
    return journal.Scalars(
        at=written or journal.now(),
        epoch=epoch,
        first_step=first_step,
        wall_s=wall_s,
        values=values,
    )


def without(values: dict[str, Any], *options: str) -> dict[str, Any]:
    """Options of a run that predates some of them."""
    return {
        name: value for name, value in RunSpec.parse(values).flat().items() if name not in options
    }


@pytest.fixture
def quick(new_run: NewRun, take_in: Callable[[], None], at: At) -> RunDir:
    """The run of the module docstring, ingested."""
    run = new_run("quick-0001", batch_size_global=2, epochs=2, precision="float32")
    run.samples.mkdir()
    (run.samples / "epoch-00001.png").write_bytes(png())
    journal.append(
        run.supervisor_journal,
        1,
        journal.StatusChange(at=at(1), status="starting", reason="starting a trainer on cpu"),
    )
    journal.append(
        run.trainer_journal(),
        1,
        journal.Event(at=at(2), level="info", topic="data", message="Only a few images."),
        journal.StatusChange(at=at(3), status="compiling", reason="building"),
        journal.HostFacts(at=at(3), facts={"cores": 8}),
        journal.PhaseSeconds(at=at(4), phase="build", seconds=1.5),
        journal.AttemptStart(at=at(4), resume_step=0),
        journal.AttemptPlan(at=at(4), images=8, steps_per_epoch=4, epochs=2),
        journal.StatusChange(at=at(14), status="running", reason="training up to step 8"),
        calls(1, 1, epoch=1, written=at(14)),
        calls(2, 4, epoch=1, written=at(17)),
        journal.EpochDone(at=at(17), epoch=1, step=4, seconds=13.0, images=8, images_per_s=0.625),
        journal.Histogram(
            at=at(18),
            epoch=1,
            step=4,
            name="score/real",
            bin_left=[0.0, 0.5],
            bin_right=1.0,
            count=[1, 3],
        ),
        journal.Histogram(
            at=at(18),
            epoch=1,
            step=4,
            name="score/fake",
            bin_left=[0.0, 0.5],
            bin_right=1.0,
            count=[4, 0],
        ),
        journal.Sample(
            at=at(18),
            epoch=1,
            step=4,
            sample_kind="fixed_latents",
            file="samples/epoch-00001.png",
            meta={"seed": 1},
        ),
        journal.PhaseSeconds(at=at(18), phase="probe", seconds=0.5),
        calls(5, 6, epoch=2, written=at(20)),
    )
    take_in()
    return run


def records(frame: pd.DataFrame) -> list[tuple[object, ...]]:
    return list(frame.itertuples(index=False, name=None))


# ---- runs ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_run_row_has_its_state_options_and_times(store: Store, at: At) -> None:
    row = queries.run(store, "quick-0001")
    assert (row.name, row.status, row.note, row.attempt) == (
        "quick-0001",
        "running",
        "training up to step 8",
        1,
    )
    assert (row.workload, row.dataset, row.accelerator, row.replicas) == (
        "dcgan_mnist",
        "digits",
        "cpu",
        1,
    )
    assert (row.precision, row.batch_size_global, row.epochs, row.color) == ("float32", 2, 2, 0)
    assert (row.created_at, row.started_at, row.finished_at) == (at(0), at(1), None)
    assert row.host == '{"cores": 8}'
    assert row.is_live


def test_runs_are_newest_first_and_filtered_by_status(
    quick: RunDir, store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    journal.append(
        quick.supervisor_journal, 1, journal.StatusChange(at=at(30), status="lost", reason="gone")
    )
    new_run("paper-0002", seconds=50)
    take_in()
    assert [row.run_id for row in queries.runs(store)] == ["paper-0002", "quick-0001"]
    assert [row.run_id for row in queries.runs(store, status=("lost", "failed"))] == ["quick-0001"]
    assert queries.runs(store, status=("finished",)) == []
    ended = queries.run(store, "quick-0001")
    assert (ended.finished_at, ended.is_live) == (at(30), False)


def test_later_attempt_hides_the_end_of_the_previous_one(
    quick: RunDir, store: Store, take_in: Callable[[], None], at: At
) -> None:
    journal.append(
        quick.supervisor_journal, 1, journal.StatusChange(at=at(30), status="lost", reason="gone")
    )
    journal.append(
        quick.supervisor_journal,
        2,
        journal.StatusChange(at=at(40), status="queued", reason="resumed", queue_rank=40.0),
    )
    take_in()
    row = queries.run(store, "quick-0001")
    assert (row.status, row.attempt, row.finished_at, row.started_at) == ("queued", 2, None, at(1))


def test_name_is_the_newest_name_else_the_spec_name_else_the_run_id(
    store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    new_run("quick-0001")
    new_run("quick-0002", seconds=1, name="from the form")
    renamed = new_run("quick-0003", seconds=2, name="from the form")
    journal.append(
        renamed.supervisor_journal,
        1,
        journal.Renamed(at=at(3), name="first"),
        journal.Renamed(at=at(4), name="second"),
    )
    take_in()
    assert [row.name for row in queries.runs(store)] == ["second", "from the form", "quick-0001"]


def test_queue_lists_runs_in_order(
    store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    first = new_run("quick-0001", seconds=1)
    new_run("quick-0002", seconds=2)
    take_in()
    assert [row.run_id for row in queries.queue(store)] == ["quick-0001", "quick-0002"]
    journal.append(
        first.supervisor_journal,
        1,
        journal.StatusChange(
            at=at(9), status="queued", reason="moved in the queue", queue_rank=3.0
        ),
    )
    take_in()
    assert [row.run_id for row in queries.queue(store)] == ["quick-0002", "quick-0001"]


@pytest.mark.usefixtures("quick")
def test_unknown_run_lists_the_existing_runs(store: Store) -> None:
    with pytest.raises(UnknownRunError) as refused:
        queries.run(store, "quick-9")
    assert str(refused.value) == "run 'quick-9' is not stored here: the newest runs are quick-0001."


def test_empty_store_has_no_runs(store: Store) -> None:
    assert (queries.runs(store), queries.queue(store)) == ([], [])
    assert queries.run_table(store).empty
    with pytest.raises(UnknownRunError, match="there are no runs yet"):
        queries.run(store, "quick-0001")


def test_run_table_has_last_losses_and_rates(
    quick: RunDir, store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    journal.append(
        quick.trainer_journal(),
        1,
        journal.EpochDone(epoch=2, step=8, seconds=4.0, images=8, images_per_s=2.0),
    )
    new_run("paper-0002", seconds=50, replicas=2)
    take_in()
    table = queries.run_table(store)
    assert list(table.columns) == [
        "run_id",
        "name",
        "status",
        "workload",
        "dataset",
        "accelerator",
        "replicas",
        "workers",
        "precision",
        "xla",
        "batch_size_global",
        "epochs",
        "epochs_done",
        "images_per_s",
        "loss_generator",
        "loss_discriminator",
        "seconds",
        "created_at",
        "note",
        "color",
        "preset",
        "spec",
        "tags",
        "remark",
        "pinned",
        "hidden",
        "sync_every_steps",
    ]
    first, second = table.to_dict("records")
    assert (first["run_id"], first["status"], first["replicas"], first["epochs_done"]) == (
        "paper-0002",
        "queued",
        2,
        0,
    )
    assert all(
        math.isnan(first[column])
        for column in ("images_per_s", "loss_generator", "loss_discriminator", "seconds")
    )
    assert (second["run_id"], second["epochs_done"], second["images_per_s"]) == (
        "quick-0001",
        2,
        1.3125,
    )
    assert (second["loss_generator"], second["loss_discriminator"], second["seconds"]) == (
        0.6,
        0.06,
        15.0,
    )
    assert second["created_at"] == at(0)


# ---- progress ------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_progress_shows_step_and_rate_without_compile_time(store: Store, at: At) -> None:
    progress = queries.progress(store, "quick-0001")
    assert (progress.step, progress.epoch, progress.last_step, progress.steps_per_epoch) == (
        6,
        2,
        8,
        4,
    )
    assert (progress.seconds_per_step, progress.images_per_s) == (1.0, 2.0)
    assert progress.seconds_left == 2 * 1.0 + 0.5 * 0.5
    assert progress.written_at == at(20)
    assert progress.newest == {"loss_generator": 0.6, "loss_discriminator": 0.06, "d_real": 0.75}


def test_progress_before_the_first_numbers_is_zero_and_unknown(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    new_run("quick-0001")
    take_in()
    progress = queries.progress(store, "quick-0001")
    assert (progress.step, progress.epoch, progress.last_step, progress.newest) == (0, 0, 0, {})
    assert (
        progress.seconds_per_step,
        progress.images_per_s,
        progress.seconds_left,
        progress.written_at,
    ) == (None,) * 4


def test_progress_after_one_step_has_no_rate_yet(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    run = new_run("quick-0001", batch_size_global=2, epochs=2)
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=8, steps_per_epoch=4, epochs=2),
        calls(1, 1, epoch=1),
    )
    take_in()
    progress = queries.progress(store, "quick-0001")
    assert (progress.step, progress.seconds_per_step, progress.seconds_left) == (1, None, None)


def test_rate_covers_the_last_fifty_steps(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    run = new_run("quick-0001", batch_size_global=2, epochs=1)
    slow, fast = (
        [2.0 * number for number in range(1, 101)],
        [200.0 + 0.5 * number for number in range(1, 101)],
    )
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=800, steps_per_epoch=400, epochs=1),
        journal.Scalars(
            epoch=1, first_step=1, wall_s=slow + fast, values={"loss_generator": [1.0] * 200}
        ),
    )
    take_in()
    assert queries.progress(store, "quick-0001").seconds_per_step == 0.5


# ---- curves --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_short_curve_has_every_step(store: Store) -> None:
    frame = queries.curves(store, ["quick-0001"], LOSSES)
    assert list(frame.columns) == ["run_id", "metric", "x", "step", "epoch", "low", "mean", "high"]
    discriminator, generator = (
        frame[frame.metric == "loss_discriminator"],
        frame[frame.metric == "loss_generator"],
    )
    assert records(generator[["x", "step", "epoch", "mean"]]) == [
        (1.0, 1, 1, 0.1),
        (2.0, 2, 1, 0.2),
        (3.0, 3, 1, 0.3),
        (4.0, 4, 1, 0.4),
        (5.0, 5, 2, 0.5),
        (6.0, 6, 2, 0.6),
    ]
    assert list(discriminator["mean"]) == [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]
    assert (frame.low == frame.high).all()


@pytest.mark.usefixtures("quick")
def test_window_of_a_curve_has_all_of_its_points(store: Store) -> None:
    part = queries.curves(store, ["quick-0001"], ("d_real",), max_points=3, window=(2.5, 5.0))
    assert list(part["step"]) == [
        3,
        4,
        5,
    ], "the whole curve in three points would be steps 1, 3 and 5"
    assert list(
        queries.curves(store, ["quick-0001"], ("d_real",), x="epoch", window=(1.1, 9.0))["step"]
    ) == [
        5,
        6,
    ]
    assert queries.curves(store, ["quick-0001"], ("d_real",), window=(7.0, 8.0)).empty


@pytest.mark.usefixtures("quick")
def test_curve_x_axis_can_be_epochs_or_seconds(store: Store) -> None:
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="epoch")["x"]) == [
        0.25,
        0.5,
        0.75,
        1.0,
        1.25,
        1.5,
    ]
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="wall_s")["x"]) == [
        10.0,
        11.0,
        12.0,
        13.0,
        14.0,
        15.0,
    ]


def test_curve_x_axis_can_be_images_seen_or_device_seconds(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    several = {
        "batch_size_global": 12,
        "replicas": 2,
        "workers": 3,
        "discriminator_steps": 5,
        "updates": "in_turn",
    }
    run = new_run("quick-0001", **several)
    journal.append(run.trainer_journal(), 1, calls(1, 3, epoch=1))
    take_in()
    # 12 images per batch, five batches per step; two replicas in each of three workers.
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="images")["x"]) == [
        60.0,
        120.0,
        180.0,
    ]
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="device_s")["x"]) == [
        60.0,
        66.0,
        72.0,
    ]


def test_run_without_worker_and_step_options_counts_them_as_one(
    store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    run = new_run("quick-0001")
    run.supervisor_journal.unlink()
    spec = without({"batch_size_global": 2, "replicas": 2}, "workers", "discriminator_steps")
    before = journal.Created(at=at(1), spec=spec, accelerator="cpu", color=0, preset="quick")
    journal.append(
        run.supervisor_journal,
        1,
        before,
        journal.StatusChange(at=at(1), status="queued", reason="waiting", queue_rank=1.0),
    )
    journal.append(run.trainer_journal(), 1, calls(1, 2, epoch=1))
    take_in()
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="images")["x"]) == [2.0, 4.0]
    assert list(queries.curves(store, ["quick-0001"], ("d_real",), x="device_s")["x"]) == [
        20.0,
        22.0,
    ]


def test_charts_of_many_curves_have_fewer_points_each() -> None:
    assert [queries.points_each(count) for count in (1, 3, 4, 10, 2_000)] == [400, 400, 375, 150, 2]


@pytest.mark.usefixtures("quick")
def test_a_thinned_curve_is_the_envelope_of_its_buckets(store: Store) -> None:
    frame = queries.curves(store, ["quick-0001"], ("loss_generator",), max_points=3)
    assert records(frame[["x", "low", "high"]]) == [
        (1.5, 0.1, 0.2),
        (3.5, 0.3, 0.4),
        (5.5, 0.5, 0.6),
    ]
    assert list(frame["mean"]) == pytest.approx([0.15, 0.35, 0.55])


@pytest.mark.parametrize("steps", [1, 399, 400, 401, 800, 801, 5_000])
def test_curve_never_exceeds_the_requested_points(
    store: Store, new_run: NewRun, take_in: Callable[[], None], steps: int
) -> None:
    run = new_run("quick-0001")
    numbers = [float(number) for number in range(steps)]
    journal.append(
        run.trainer_journal(),
        1,
        journal.Scalars(epoch=1, first_step=1, wall_s=numbers, values={"loss_generator": numbers}),
    )
    take_in()
    frame = queries.curves(store, ["quick-0001"], ("loss_generator",), max_points=400)
    assert min(steps, 200) <= len(frame) <= 400
    assert (frame["low"].min(), frame["high"].max()) == (0.0, steps - 1)


@pytest.mark.parametrize(
    ("window", "blocks", "first", "last"),
    [(queries.EVERYTHING, 5, 1, 6_000), ((1_000.0, 4_000.0), 3, 960, 4_031)],
)
def test_curve_of_a_long_run_has_buckets_of_whole_blocks(
    store: Store,
    new_run: NewRun,
    take_in: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    window: queries.Window,
    blocks: int,
    first: int,
    last: int,
) -> None:
    """Of 6,000 steps, 20 points have 300 steps each, which fit into 5 blocks of 64; in the window,
    151 steps fit into 3, from the beginning of a block on.
    """
    for module in (scalar_blocks, run_curves):
        monkeypatch.setattr(module, "LONG", 2_000)
    losses = pd.Series([math.sin(step) for step in range(6_001)])
    losses[3_210], losses[3_500] = 99.0, math.nan
    call = journal.Scalars(
        epoch=1, first_step=1, wall_s=[1.0] * 6_000, values={"d_real": list(losses[1:])}
    )
    journal.append(new_run("quick-0001").trainer_journal(), 1, call)
    take_in()
    frame = queries.curves(store, ["quick-0001"], ("d_real",), max_points=20, window=window)
    part = losses[first : last + 1].dropna()
    buckets = part.groupby((part.index // 64 - first // 64) // blocks)
    assert list(frame["mean"]) == pytest.approx(list(buckets.mean()))
    assert list(frame["low"]) == list(buckets.min())
    assert list(frame["high"]) == list(buckets.max())
    middle = part.index.to_series().groupby(buckets.ngroup()).mean()
    assert list(frame["x"]) == pytest.approx(list(middle))


@pytest.mark.usefixtures("quick")
def test_blocks_answer_as_all_scalars_do(
    home: Home, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_blocks = Store()
    for module in (scalar_blocks, run_curves):
        monkeypatch.setattr(module, "LONG", 2)
    Ingestor(home, with_blocks).catch_up()
    assert with_blocks.rows("SELECT count(*) FROM ingest.scalar_blocks") == [(3,)]
    from_blocks = _changes_and_progress(with_blocks)
    monkeypatch.setattr(run_curves, "LONG", 1_000)
    assert from_blocks == _changes_and_progress(store)


def _changes_and_progress(store: Store) -> tuple[object, ...]:
    changing = queries.changing_curves(store, "quick-0001", (*LOSSES, "d_real"))
    progress = queries.progress(store, "quick-0001")
    return set(changing["metric"]), run_curves.step_ranges(store, "quick-0001"), progress


def test_a_spike_survives_thinning(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    run = new_run("quick-0001")
    losses = [0.7] * 5_000
    losses[3_210], losses[4_321] = 99.0, -5.0
    wall_s = [float(number) for number in range(5_000)]
    journal.append(
        run.trainer_journal(),
        1,
        journal.Scalars(epoch=1, first_step=1, wall_s=wall_s, values={"loss_generator": losses}),
    )
    take_in()
    frame = queries.curves(store, ["quick-0001"], ("loss_generator",), max_points=100)
    assert len(frame) == 100
    assert (frame["high"].max(), frame["low"].min()) == (99.0, -5.0)
    assert (frame["high"] == 99.0).sum() == 1


def test_nan_and_infinity_are_omitted_from_curves_and_distinguished(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    run = new_run("quick-0001")
    losses = [0.5, math.nan, math.inf, 0.25]
    journal.append(
        run.trainer_journal(),
        1,
        journal.Scalars(
            epoch=1, first_step=1, wall_s=[1, 2, 3, 4], values={"loss_generator": losses}
        ),
    )
    take_in()
    assert records(queries.curves(store, ["quick-0001"], LOSSES)[["step", "mean"]]) == [
        (1, 0.5),
        (4, 0.25),
    ]
    assert records(queries.not_finite(store, "quick-0001")) == [
        (2, "loss_generator", "nan"),
        (3, "loss_generator", "inf"),
    ]


def test_curves_of_several_runs_include_only_those_runs(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    for index in (1, 2, 3):
        run = new_run(f"quick-000{index}")
        journal.append(run.trainer_journal(), 1, calls(1, index, epoch=1))
    take_in()
    frame = queries.curves(store, ["quick-0001", "quick-0003"], ("loss_generator",))
    assert frame.groupby("run_id").size().to_dict() == {"quick-0001": 1, "quick-0003": 3}


# ---- epoch scores --------------------------------------------------------------------------------


def scores(epoch: int, spread: float, norm: float = 2.0) -> journal.EpochScores:
    """Scores of one epoch of "quick-0001"."""
    values = {"spread_real": spread, "gradient_norm_generator": norm}
    return journal.EpochScores(epoch=epoch, step=4 * epoch, wall_s=9.0 + 4 * epoch, values=values)


def test_epoch_scores_are_ordered_by_metric_and_epoch(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    journal.append(quick.trainer_journal(), 1, scores(1, 0.25), scores(2, 0.5, norm=math.nan))
    take_in()
    frame = queries.epoch_scores(
        store, "quick-0001", ("spread_real", "gradient_norm_generator", "d_accuracy_real")
    )
    assert list(frame.columns) == ["metric", "epoch", "step", "value"]
    assert records(frame) == [
        ("gradient_norm_generator", 1, 4, 2.0),
        ("spread_real", 1, 4, 0.25),
        ("spread_real", 2, 8, 0.5),
    ]


def test_epoch_scores_of_a_long_run_are_means_of_a_few_epochs(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    journal.append(
        quick.trainer_journal(), 1, *(scores(epoch, float(epoch)) for epoch in range(1, 8))
    )
    take_in()
    frame = queries.epoch_scores(store, "quick-0001", ("spread_real",), max_points=3)
    # Seven epochs in at most three buckets: three epochs each.
    assert records(frame) == [
        ("spread_real", 3, 12, 2.0),
        ("spread_real", 6, 24, 5.0),
        ("spread_real", 7, 28, 7.0),
    ]


@pytest.mark.usefixtures("quick")
def test_no_scores_before_the_first_epoch(store: Store) -> None:
    frame = queries.epoch_scores(store, "quick-0001", ("spread_real",))
    assert frame.empty
    assert list(frame.columns) == ["metric", "epoch", "step", "value"]


@pytest.mark.usefixtures("quick")
def test_changing_curves_include_only_changed_metrics(store: Store) -> None:
    frame = queries.changing_curves(
        store, "quick-0001", ("d_real", "loss_generator", "learning_rate_generator")
    )
    assert set(frame["metric"]) == {"loss_generator"}
    assert list(frame["mean"]) == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert queries.changing_curves(store, "quick-0001", ("d_real",)).empty


@pytest.mark.usefixtures("quick")
def test_recorded_metrics_of_runs_are_listed(store: Store) -> None:
    assert queries.recorded(store, ["quick-0001"]) == [
        "d_real",
        "loss_discriminator",
        "loss_generator",
    ]
    assert queries.recorded(store, ["quick-0099"]) == []


def test_local_sgd_runs_are_distinguished(
    store: Store, new_run: NewRun, take_in: Callable[[], None], at: At
) -> None:
    new_run("quick-0001", replicas=2, sync_every_steps=5)
    old = new_run("quick-0002", seconds=1)
    before = journal.Created(
        at=at(1), spec=without({}, "sync_every_steps"), accelerator="cpu", color=0, preset="quick"
    )
    old.supervisor_journal.unlink()
    waiting = journal.StatusChange(at=at(1), status="queued", reason="waiting", queue_rank=1.0)
    journal.append(old.supervisor_journal, 1, before, waiting)
    take_in()
    assert list(queries.run_table(store)["sync_every_steps"]) == [1, 5]
    assert [row.sync_every_steps for row in queries.runs(store)] == [1, 5]


def test_curves_of_a_run_without_numbers_are_empty_but_have_columns(store: Store) -> None:
    frame = queries.curves(store, ["quick-0001"], LOSSES)
    assert frame.empty
    assert list(frame.columns) == ["run_id", "metric", "x", "step", "epoch", "low", "mean", "high"]


# ---- epochs, histograms, samples, phases, events -------------------------------------------------


@pytest.mark.usefixtures("quick")
def test_epoch_times(store: Store) -> None:
    frame = queries.epoch_times(store, ["quick-0001"])
    assert list(frame.columns) == ["run_id", "epoch", "seconds", "images", "images_per_s"]
    assert records(frame) == [("quick-0001", 1, 13.0, 8, 0.625)]
    assert queries.epoch_times(store, []).empty


@pytest.mark.usefixtures("quick")
def test_a_histogram_has_edges_counts_and_shares(store: Store) -> None:
    frame = queries.histogram(store, "quick-0001", ("score/real", "score/fake"), 1)
    assert list(frame.columns) == ["name", "epoch", "left", "right", "count", "share"]
    assert records(frame) == [
        ("score/fake", 1, 0.0, 0.5, 4, 1.0),
        ("score/fake", 1, 0.5, 1.0, 0, 0.0),
        ("score/real", 1, 0.0, 0.5, 1, 0.25),
        ("score/real", 1, 0.5, 1.0, 3, 0.75),
    ]
    assert set(queries.histogram(store, "quick-0001", ("score/real",), 2)["epoch"]) == {1}
    assert queries.histogram(store, "quick-0001", ("score/real",), 0).empty


@pytest.mark.usefixtures("quick")
def test_sample_is_the_newest_up_to_an_epoch(store: Store) -> None:
    assert queries.sample_epochs(store, ["quick-0001"]) == [1]
    assert queries.sample(store, "quick-0001", 0) is None
    assert queries.sample(store, "quick-0001", 1) == SampleGrid(
        "quick-0001", 1, 4, png(), "samples"
    )
    assert queries.sample(store, "quick-0001", 99) == SampleGrid(
        "quick-0001", 1, 4, png(), "samples"
    )
    assert queries.sample_epochs(store, ["none"]) == []


def test_each_image_kind_has_its_epochs_and_the_catalogs_kind_is_first(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    """A newer version resumed the run, so the old name of the only kind equals its current name."""
    for epoch, kind in ((2, "by_class"), (2, "samples"), (3, "by_class")):
        quick.sample_file(kind, epoch).write_bytes(png(epoch, len(kind)))
        file = f"samples/{kind}-{epoch:05d}.png"
        journal.append(
            quick.trainer_journal(),
            1,
            journal.Sample(epoch=epoch, step=4 * epoch, sample_kind=kind, file=file, meta={}),
        )
    take_in()
    assert store.rows("SELECT epoch, kind FROM samples ORDER BY ALL") == [
        (1, "fixed_latents"),
        (2, "by_class"),
        (2, "samples"),
        (3, "by_class"),
    ]
    assert queries.sample_kinds(store, ["quick-0001"]) == ["samples", "by_class"]
    assert queries.sample_kinds(store, ["none"]) == []
    epochs = {
        kind: queries.sample_epochs(store, ["quick-0001"], kind)
        for kind in ("", "samples", "by_class")
    }
    assert epochs == {"": [1, 2, 3], "samples": [1, 2], "by_class": [2, 3]}

    def sample(epoch: int, kind: str = "") -> tuple[int, str] | None:
        grid = queries.sample(store, "quick-0001", epoch, kind)
        return (grid.epoch, grid.kind) if grid else None

    assert [sample(1), sample(2), sample(3)] == [(1, "samples"), (2, "samples"), (3, "by_class")]
    assert [sample(1, "by_class"), sample(9, "samples"), sample(9, "by_class")] == [
        None,
        (2, "samples"),
        (3, "by_class"),
    ]


def test_phases_of_the_newest_attempt_are_summed(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    assert queries.phases(store, "quick-0001") == {"build": 1.5, "probe": 0.5}
    journal.append(
        quick.trainer_journal(),
        2,
        *(journal.PhaseSeconds(phase="probe", seconds=seconds) for seconds in (0.25, 0.5)),
    )
    take_in()
    assert queries.phases(store, "quick-0001") == {"probe": 0.75}
    assert queries.phases(store, "none") == {}


@pytest.mark.usefixtures("quick")
def test_events_list_everything_oldest_first(store: Store, at: At) -> None:
    frame = queries.events(store, "quick-0001")
    assert list(frame.columns) == ["logged_at", "attempt", "level", "kind", "message"]
    assert records(frame) == [
        (at(0), 1, "info", "queued", "waiting for the accelerator"),
        (at(1), 1, "info", "starting", "starting a trainer on cpu"),
        (at(2), 1, "info", "data", "Only a few images."),
        (at(3), 1, "info", "compiling", "building"),
        (at(14), 1, "info", "running", "training up to step 8"),
    ]


def test_a_failure_is_an_event_of_level_error(
    quick: RunDir, store: Store, take_in: Callable[[], None], at: At
) -> None:
    journal.append(
        quick.trainer_journal(),
        1,
        journal.StatusChange(at=at(30), status="failed", reason="loss_generator became NaN"),
    )
    take_in()
    assert records(queries.events(store, "quick-0001"))[-1] == (
        at(30),
        1,
        "error",
        "failed",
        "loss_generator became NaN",
    )


def profile(step: int, *shares: tuple[str, str, float]) -> journal.Profile:
    """A profile of four steps of half a second."""
    phase_shares = [
        journal.TimeShare(
            network=network,
            category=category,
            seconds=2.0 * share,
            share=share,
            phase="both" if network else "",
        )
        for network, category, share in shares
    ]
    return journal.Profile(step=step, steps=4, seconds=2.0, shares=phase_shares)


def test_profile_is_from_the_newest_attempt_that_has_one(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    assert queries.profile(store, "quick-0001").empty
    first = profile(
        5, ("generator", "forward", 0.25), ("generator", "backward", 0.5), ("", "idle", 0.25)
    )
    journal.append(quick.trainer_journal(), 1, first)
    journal.append(quick.trainer_journal(), 2, journal.PhaseSeconds(phase="trace", seconds=1.0))
    take_in()
    frame = queries.profile(store, "quick-0001")
    assert list(frame.columns) == [
        "phase",
        "network",
        "category",
        "seconds_per_step",
        "share",
        "steps",
    ]
    assert records(frame) == [
        ("both", "generator", "backward", 0.25, 0.5, 4),
        ("", "", "idle", 0.125, 0.25, 4),
        ("both", "generator", "forward", 0.125, 0.25, 4),
    ]
    journal.append(quick.trainer_journal(), 2, profile(6, ("", "unattributed", 1.0)))
    take_in()
    assert records(queries.profile(store, "quick-0001")) == [("", "", "unattributed", 0.5, 1.0, 4)]


def test_profiled_steps_do_not_inflate_the_rate(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    """Steps 7 and 8 were profiled, so the clock was stopped."""
    standing = journal.Scalars(
        epoch=2, first_step=7, wall_s=[15.0, 15.0], values={"loss_generator": [0.7, 0.8]}
    )
    journal.append(quick.trainer_journal(), 1, standing)
    take_in()
    assert queries.progress(store, "quick-0001").step == 8
    assert queries.progress(store, "quick-0001").seconds_per_step == 1.0


def test_peak_memory_is_from_the_newest_attempt(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    def memory(epoch: int, peak: int, device: int | None = None) -> journal.MemoryUse:
        return journal.MemoryUse(
            epoch=epoch,
            step=4 * epoch,
            process_bytes=1,
            process_peak_bytes=peak,
            device_bytes=device,
            device_peak_bytes=device,
        )

    assert queries.peak_memory(store, "quick-0001") is None
    journal.append(quick.trainer_journal(), 1, memory(1, 900), memory(2, 950))
    take_in()
    assert queries.peak_memory(store, "quick-0001") == PeakMemory(950, None)
    journal.append(
        quick.supervisor_journal, 2, journal.StatusChange(status="starting", reason="again")
    )
    take_in()
    assert queries.peak_memory(store, "quick-0001") is None
    journal.append(
        quick.trainer_journal(), 2, journal.AttemptStart(resume_step=4), memory(2, 700, device=80)
    )
    take_in()
    assert queries.peak_memory(store, "quick-0001") == PeakMemory(700, 80)


def test_typical_rate_comes_from_similar_runs_with_the_nearest_batch(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    """First epochs include compilation: 1, 2 and 3 images/s must not count."""
    for number, (batch, rates) in enumerate(
        {64: (1.0, 100.0, 120.0), 512: (2.0, 300.0), 128: (3.0,)}.items()
    ):
        run = new_run(f"quick-{number + 1:04d}", seconds=number, batch_size_global=batch)
        epochs = [
            journal.EpochDone(epoch=epoch, step=epoch, seconds=1.0, images=batch, images_per_s=rate)
            for epoch, rate in enumerate(rates, start=1)
        ]
        journal.append(run.trainer_journal(), 1, *epochs)
    take_in()

    def rate(accelerator: str = "cpu", **options: object) -> float | None:
        return queries.typical_images_per_s(
            store, RunSpec.parse(options), accelerator, "this processor"
        )

    assert rate(batch_size_global=64) == 110.0
    assert (
        rate(batch_size_global=128) == 110.0
    )  # batch 128 has only a first epoch; 64 is nearer than 512
    assert rate(batch_size_global=400) == 300.0
    assert rate(precision="float32") is None
    assert rate(replicas=2) is None
    assert rate(xla="jit") is None
    assert rate(loop="keras") is None
    assert rate(workload="mlp_gan") is None
    assert rate(accelerator="gpu") is None


def test_typical_rate_never_comes_from_another_host(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    """Imported runs have no host name; a run copied from another machine has another processor."""
    machines = (
        ("here", {"cpu_model": "this processor", "hostname": "here"}, 100.0),
        ("here", {"cpu_model": "this processor"}, 9_000.0),
        ("here", {"cpu_model": "another processor", "hostname": "there"}, 9_000.0),
        ("atlas", {"cpu_model": "this processor", "hostname": "n1"}, 500.0),
        ("box", {"cpu_model": "this processor", "hostname": "box"}, 9_000.0),
    )
    for number, (target, facts, rate) in enumerate(machines, 1):
        run = new_run(f"quick-{number:04d}", seconds=number, target=target)
        done = [
            journal.EpochDone(epoch=epoch, step=epoch, seconds=1.0, images=64, images_per_s=rate)
            for epoch in (1, 2)
        ]
        journal.append(run.trainer_journal(), 1, journal.HostFacts(facts=facts), *done)
    take_in()
    assert queries.typical_images_per_s(store, RunSpec.parse({}), "cpu", "this processor") == 100.0
    assert queries.typical_images_per_s(store, RunSpec.parse({}), "cpu", "a third one") is None
    on_atlas = RunSpec.parse({"target": "atlas"})
    assert queries.typical_images_per_s(store, on_atlas, "cpu", "this processor") == 500.0


def test_worker_times_are_medians_of_the_newest_calls(
    quick: RunDir, store: Store, take_in: Callable[[], None]
) -> None:
    columns = ["rank", "step_s", "compute_s", "wait_s", "wait_share"]
    assert list(queries.worker_times(store, "quick-0001").columns) == columns
    for rank, compute_s in ((0, 0.1), (1, 0.3)):
        journal.append(
            quick.trainer_journal(rank),
            1,
            *(
                journal.WorkerTimes(
                    rank=rank,
                    epoch=1,
                    first_step=step,
                    steps=1,
                    step_s=0.4,
                    compute_s=compute_s,
                    wait_s=0.4 - compute_s,
                )
                for step in range(2, 40)
            ),
        )
    take_in()
    times = queries.worker_times(store, "quick-0001")
    assert times["rank"].tolist() == [0, 1]
    assert times["compute_s"].tolist() == [0.1, 0.3]
    assert times["wait_share"].tolist() == pytest.approx([0.75, 0.25])


@pytest.mark.usefixtures("quick")
def test_run_has_workers_from_its_options_and_older_runs_have_one(
    store: Store, new_run: NewRun, take_in: Callable[[], None]
) -> None:
    new_run("pair-0002", seconds=50, workers=2)
    old = {
        name: value for name, value in RunSpec.parse({}).model_dump().items() if name != "workers"
    }
    run = new_run("old-0003", seconds=60)
    run.supervisor_journal.unlink()
    queued = journal.StatusChange(status="queued", reason="waiting", queue_rank=1.0)
    journal.append(
        run.supervisor_journal, 1, journal.Created(spec=old, accelerator="cpu", color=0), queued
    )
    take_in()
    assert {row.run_id: row.workers for row in queries.runs(store)} == {
        "quick-0001": 1,
        "pair-0002": 2,
        "old-0003": 1,
    }
