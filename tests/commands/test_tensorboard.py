"""Runs to TensorBoard event files and back, without TensorFlow. Damage is refused as a whole."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from gan_runtime.base.errors import BundleError, RoleError, TargetError
from gan_runtime.bundles import event_files, tensorboard
from gan_runtime.bundles.event_files import EventImage, StepEvent
from gan_runtime.bundles.export import export_event_files
from gan_runtime.records import image_files, journal, run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.record import Actor
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.store.store import Store
from tests.support.asking import ask
from tests.support.measured_images import answer
from tests.support.small_pictures import png

NewRun = Callable[..., RunDir]
BEGIN = 1_700_000_000.0  # 14 November 2023


def event_file(folder: Path, *events: StepEvent, name: str = "events.out.tfevents.1.host") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    with path.open("wb") as file:
        event_files.write(file, events)
    return path


def numbers(store: Store, run_id: str) -> list[tuple[object, ...]]:
    return store.rows(
        "SELECT metric, step, epoch, value, wall_s FROM scalars WHERE run_id = ? ORDER BY ALL",
        [run_id],
    )


def jpeg(width: int, height: int) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(content, "JPEG")
    return content.getvalue()


@pytest.fixture
def stored(new_run: NewRun) -> RunDir:
    """A finished run of two epochs with two steps each, and an image of each epoch."""
    run = new_run("quick-0001", batch_size_global=32)
    run.samples.mkdir()
    for epoch in (1, 2):
        run.sample_file("samples", epoch).write_bytes(png(10 + epoch))
    journal.append(
        run.trainer_journal(),
        1,
        journal.AttemptPlan(images=64, steps_per_epoch=2, epochs=2),
        *(
            record
            for epoch in (1, 2)
            for record in (
                journal.Scalars(
                    epoch=epoch,
                    first_step=2 * epoch - 1,
                    wall_s=[2.0 * epoch - 1, 2.0 * epoch],
                    values={"loss_generator": [0.5, math.nan], "loss_discriminator": [1.5, 1e300]},
                ),
                journal.Sample(
                    epoch=epoch,
                    step=2 * epoch,
                    sample_kind="samples",
                    file=f"samples/samples-{epoch:05d}.png",
                    meta={},
                ),
            )
        ),
        journal.StatusChange(status="finished", reason="all 2 epochs done"),
    )
    return run


def test_event_files_round_trip_numbers_images_and_options(
    home: Home, stored: RunDir, tmp_path: Path
) -> None:
    (path,) = export_event_files(ingest.store_of(home), ["quick-0001"], tmp_path / "out")
    assert path.parent == tmp_path / "out" / "quick-0001"
    assert path.name == "events.out.tfevents.1767268800.gan-dashboard"
    other = Home(tmp_path / "other").prepare()
    (run_id,) = tensorboard.import_folder(tmp_path / "out", other)
    store = ingest.store_of(other)
    single = math.inf  # 1e300, in single precision
    expected = [
        (name, step, (step + 1) // 2, value, float(step))
        for name, first, second in (
            ("loss_discriminator", 1.5, single),
            ("loss_generator", 0.5, math.nan),
        )
        for step, value in ((1, first), (2, second), (3, first), (4, second))
    ]
    assert str(numbers(store, run_id)) == str(expected)
    row = queries.run(store, run_id)
    assert (row.name, row.status, row.workload) == ("quick-0001", "finished", "dcgan_mnist")
    assert (row.batch_size_global, row.epochs) == (32, 30)
    assert row.tags == ["TensorBoard"]
    assert row.created_at == queries.run(ingest.store_of(home), "quick-0001").created_at
    times = store.rows("SELECT epoch, step, seconds, images, images_per_s FROM epochs")
    assert times == [(1, 2, 2.0, 64, 32.0), (2, 4, 2.0, 64, 32.0)]
    grids = [queries.sample(store, run_id, epoch) for epoch in (1, 2)]
    assert [grid and (grid.epoch, grid.step, grid.kind) for grid in grids] == [
        (1, 2, "samples"),
        (2, 4, "samples"),
    ]
    widths = [Image.open(io.BytesIO(grid.png)).size[0] for grid in grids if grid]
    assert widths == [11, 12]
    assert stored.samples.exists()


def test_exported_scores_from_before_training_stay_in_epoch_0(
    home: Home, stored: RunDir, tmp_path: Path
) -> None:
    journal.append(stored.evaluations_journal, 1, answer(0))
    export_event_files(ingest.store_of(home), [stored.run_id], tmp_path / "out")
    other = Home(tmp_path / "other").prepare()
    tensorboard.import_folder(tmp_path / "out", other)
    store = ingest.store_of(other)
    assert store.rows("SELECT DISTINCT step, epoch FROM numbers ORDER BY step") == [
        (0, 0),
        (1, 1),
        (2, 1),
        (3, 2),
        (4, 2),
    ]
    assert store.rows("SELECT epoch, step, images FROM epochs") == [(1, 2, 64), (2, 4, 64)]


def test_epochs_that_files_count_from_0_become_epochs_from_1(home: Home, tmp_path: Path) -> None:
    event_file(
        tmp_path / "logs",
        *(
            StepEvent(BEGIN + step, step, {"loss": 1.0, "epoch": float((step - 1) // 10)})
            for step in range(5, 41, 5)
        ),
    )
    tensorboard.import_folder(tmp_path / "logs", home)
    assert ingest.store_of(home).rows("SELECT epoch, step FROM epochs") == [
        (epoch, 10 * epoch) for epoch in (1, 2, 3, 4)
    ]


def test_event_folders_of_other_programs_become_comparable_runs(home: Home, tmp_path: Path) -> None:
    for number, name in enumerate(("train", "nested/eval")):
        event_file(
            tmp_path / "logs" / name,
            *(
                StepEvent(BEGIN + step, step, {"Loss/g": number + step / 8, "acc": 0.5})
                for step in range(0, 500, 100)
            ),
            StepEvent(BEGIN + 500, 500, images={"Fake images!": [EventImage(jpeg(8, 6))] * 3}),
            StepEvent(BEGIN + 600, 600, {"Loss/g": 9.0}),
        )
    run_ids = tensorboard.import_folder(tmp_path / "logs", home)
    store = ingest.store_of(home)
    rows = [queries.run(store, run_id) for run_id in run_ids]
    assert {row.name for row in rows} == {"train", "nested/eval"}
    assert {(row.workload, row.status, row.note) for row in rows} == {
        ("tensorboard", "finished", "imported from event files of TensorBoard")
    }
    curves = queries.curves(store, run_ids, ("Loss/g",))
    assert sorted(curves["step"].unique()) == [0, 100, 200, 300, 400, 600]
    assert list(curves[curves["step"] == 100]["mean"]) in ([12.5, 13.5], [13.5, 12.5])
    assert store.rows("SELECT DISTINCT epoch FROM scalars WHERE step = 600") == [(2,)]
    grid = queries.sample(store, run_ids[0], 1)
    assert grid is not None
    assert (grid.kind, Image.open(io.BytesIO(grid.png)).size) == ("fake_images", (16, 12))


def test_a_second_import_of_a_log_changes_nothing(home: Home, tmp_path: Path) -> None:
    event_file(tmp_path / "logs", *(StepEvent(BEGIN + at, at, {"loss": 1.0}) for at in (1, 2)))
    (run_id,) = ask(home).import_event_files(tmp_path / "logs")
    assert run_folder.marks_of(home.run_dir(run_id)).remark.endswith(": logs")
    journals = [path.read_bytes() for path in home.run_dir(run_id).journals()]
    assert ask(home).import_event_files(tmp_path / "logs") == []
    assert [run.run_id for run in home.run_dirs()] == [run_id]
    assert [path.read_bytes() for path in home.run_dir(run_id).journals()] == journals


def epoch_of(number: int, value: float, delay_s: float = 0.0) -> list[StepEvent]:
    """Two steps, the second with an image, which ends the epoch."""
    first = 2 * number - 1
    image = {"fakes": [EventImage(png(10 + number))]}
    return [
        StepEvent(BEGIN + delay_s + first, first, {"loss": value}),
        StepEvent(BEGIN + delay_s + first + 1, first + 1, {"loss": value}, image),
    ]


def test_a_log_that_has_grown_continues_its_run(home: Home, tmp_path: Path) -> None:
    """With what the user has written about the run, in an open database, and after a rebuild."""
    log, store = tmp_path / "logs", Store()
    event_file(log, *epoch_of(1, 0.5), *epoch_of(2, 0.25), *epoch_of(3, 0.125)[:1])
    (run_id,) = ask(home).import_event_files(log)
    ask(home).rename(run_id, "mine")
    ingestor = ingest.Ingestor(home, store)
    ingestor.catch_up()
    assert (queries.run(store, run_id).epochs, len(numbers(store, run_id))) == (3, 5)
    later = (*epoch_of(3, 0.125)[1:], *epoch_of(4, 0.5), *epoch_of(5, 0.5)[:1])
    event_file(log, *later, name="events.out.tfevents.2.host")
    assert ask(home).import_event_files(log) == [run_id]
    assert ask(home).import_event_files(log) == []
    ingestor.catch_up()
    for read in (store, ingest.store_of(home)):
        assert [(step, epoch, value) for _, step, epoch, value, _ in numbers(read, run_id)] == [
            *((1, 1, 0.5), (2, 1, 0.5), (3, 2, 0.25), (4, 2, 0.25), (5, 3, 0.125), (6, 3, 0.125)),
            *((7, 4, 0.5), (8, 4, 0.5), (9, 5, 0.5)),
        ]
        assert read.rows("SELECT epoch, step FROM epochs ORDER BY ALL") == [
            *((1, 2), (2, 4), (3, 6), (4, 8), (5, 9))
        ]
        assert read.rows("SELECT epoch, step FROM samples ORDER BY ALL") == [
            *((1, 2), (2, 4), (3, 6), (4, 8))
        ]
        row = queries.run(read, run_id)
        assert (row.name, row.status, row.epochs, row.attempt) == ("mine", "finished", 5, 2)


def test_a_log_whose_writer_went_back_replaces_later_steps(home: Home, tmp_path: Path) -> None:
    event_file(tmp_path / "logs", *epoch_of(1, 0.5), *epoch_of(2, 0.25), *epoch_of(3, 0.25))
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    again = (StepEvent(BEGIN + 50, 3, is_restart=True), *epoch_of(2, 9.0, delay_s=50.0))
    event_file(tmp_path / "logs", *again, name="events.out.tfevents.2.host")
    assert tensorboard.import_folder(tmp_path / "logs", home) == [run_id]
    stored = numbers(ingest.store_of(home), run_id)
    assert [(step, value) for _, step, _, value, _ in stored] == [
        *((1, 0.5), (2, 0.5), (3, 9.0), (4, 9.0))
    ]


def test_an_unknown_batch_gives_no_speed_and_no_negative_time(home: Home, tmp_path: Path) -> None:
    event_file(
        tmp_path / "logs",
        *(StepEvent(BEGIN + at, at, {"loss": 1.0, "epoch": at // 4 + 1.0}) for at in range(11)),
    )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    store = ingest.store_of(home)
    assert store.rows("SELECT DISTINCT images, images_per_s FROM epochs") == [(None, None)]
    assert store.rows("SELECT images_per_step FROM runs") == [(None,)]
    progress = queries.progress(store, run_id)
    assert (progress.step, progress.images_per_s) == (10, None)
    assert progress.last_step >= 10
    assert progress.seconds_left is None or progress.seconds_left >= 0.0


def test_values_without_a_step_are_numbered_in_their_order(home: Home, tmp_path: Path) -> None:
    event_file(
        tmp_path / "logs",
        *(StepEvent(BEGIN + at, 0, {"loss": float(at)}) for at in range(3)),
        *(StepEvent(BEGIN + 9 + at, 0, {"accuracy": float(at)}) for at in range(2)),
    )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    store = ingest.store_of(home)
    assert [(tag, step, value) for tag, step, _, value, _ in numbers(store, run_id)] == [
        *(("accuracy", 0, 0.0), ("accuracy", 1, 1.0)),
        *(("loss", 0, 0.0), ("loss", 1, 1.0), ("loss", 2, 2.0)),
    ]
    messages = store.rows("SELECT message FROM events WHERE kind = 'import'")
    assert [message.partition(":")[2] for (message,) in messages] == [
        " each tag's values are numbered in their order."
    ]


def test_values_left_out_at_step_0_are_counted(home: Home, tmp_path: Path) -> None:
    event_file(
        tmp_path / "logs",
        *(StepEvent(BEGIN + at, 0, {"rate": float(at)}) for at in range(4)),
        StepEvent(BEGIN + 9, 7, {"loss": 1.0}),
    )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    store = ingest.store_of(home)
    assert [row[:2] for row in numbers(store, run_id)] == [("loss", 7), ("rate", 0)]
    ((message,),) = store.rows("SELECT message FROM events WHERE kind = 'import'")
    assert message.startswith("3 values left out on import (without a step, or at step 0 again")


def test_imports_with_other_numbers_of_epochs_are_imported_only_once(
    home: Home, tmp_path: Path
) -> None:
    for name, epochs in (("short", 2.0), ("long", 20_000.0)):
        event_file(
            tmp_path / "logs" / name,
            *(StepEvent(BEGIN + epoch, int(epoch), {"epoch": epoch}) for epoch in (1.0, epochs)),
        )
    run_ids = tensorboard.import_folder(tmp_path / "logs", home)
    rows = [queries.run(ingest.store_of(home), run_id) for run_id in run_ids]
    assert {row.name: row.epochs for row in rows} == {"short": 2, "long": 10_000}  # the most
    assert tensorboard.import_folder(tmp_path / "logs", home) == []


def test_a_viewer_cannot_import(home: Home, tmp_path: Path) -> None:
    event_file(tmp_path / "logs", StepEvent(BEGIN, 1, {"loss": 1.0}))
    with pytest.raises(RoleError):
        ask(home, actor=Actor("dashboard")).import_event_files(tmp_path / "logs")
    assert home.run_dirs() == []


def test_a_restarted_writer_voids_its_later_steps(home: Home, tmp_path: Path) -> None:
    event_file(
        tmp_path / "logs",
        *(StepEvent(BEGIN + step, step, {"loss": 1.0}) for step in (1, 2, 3)),
        name="events.out.tfevents.1.host",
    )
    event_file(
        tmp_path / "logs",
        StepEvent(BEGIN + 10, 2, is_restart=True),
        StepEvent(BEGIN + 11, 2, {"loss": 5.0}),
        name="events.out.tfevents.2.host",
    )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    stored = numbers(ingest.store_of(home), run_id)
    assert [(step, value) for _, step, _, value, _ in stored] == [(1, 1.0), (2, 5.0)]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda content: b"PK" + content, "no event begins at byte 0"),
        (lambda content: content[:-20] + b"X" + content[-19:], "the event at byte .* is damaged"),
        (lambda content: struct.pack("<Q", 2**60) + content[8:], "no event begins at byte 0"),
    ],
    ids=["another format", "a changed byte", "a huge length"],
)
def test_a_damaged_file_is_named_and_nothing_is_imported(
    home: Home, tmp_path: Path, damage: Callable[[bytes], bytes], sentence: str
) -> None:
    event_file(tmp_path / "logs" / "whole", StepEvent(BEGIN, 1, {"loss": 1.0}))
    path = event_file(tmp_path / "logs" / "zdamaged", StepEvent(BEGIN, 1, {"loss": 1.0}))
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BundleError, match=f"{path} cannot be read .{sentence}.: copy it again"):
        tensorboard.import_folder(tmp_path / "logs", home)
    assert [entry.name for entry in home.runs.iterdir()] == []


def test_an_unfinished_event_is_skipped(home: Home, tmp_path: Path) -> None:
    events = [StepEvent(BEGIN + step, step, {"loss": 1.0}) for step in (1, 2)]
    path = event_file(tmp_path / "logs", *events)
    path.write_bytes(path.read_bytes()[:-3])
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    assert [row[1] for row in numbers(ingest.store_of(home), run_id)] == [1]


def test_a_folder_without_event_files_is_refused_with_advice(home: Home, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello", encoding="utf-8")
    with pytest.raises(BundleError, match=r"no event files .* the log folder that TensorBoard"):
        tensorboard.import_folder(tmp_path, home)


def test_hostile_events_are_skipped_or_refused(home: Home, tmp_path: Path) -> None:
    """Impossible steps and times, invalid or huge images, invalid options, and a path as a tag."""
    wide = png(image_files.MAX_SIDE + 1)
    event_file(
        tmp_path / "logs",
        StepEvent(math.nan, 2**63 - 1, {"../../loss": 1.0}, texts={"options": "[" * 100_000}),
        StepEvent(1e300, 1, {"loss": math.inf}),
        StepEvent(BEGIN, 2, images={"../a": [EventImage(b"no image")], "a": [EventImage(wide)]}),
    )
    with pytest.raises(BundleError, match="step 9,223,372,036,854,775,807"):
        tensorboard.import_folder(tmp_path / "logs", home)
    event_file(
        tmp_path / "logs",
        StepEvent(math.nan, 7, {"../../loss": 1.0}, texts={"options": "[" * 100_000}),
        StepEvent(1e300, 1, {"loss": math.inf, "epoch": 9.0}),
        StepEvent(BEGIN, 10**12, {"epoch": 3.0}),
        StepEvent(BEGIN, 2, images={"../a": [EventImage(b"no image")], "a": [EventImage(wide)]}),
    )
    (run_id,) = tensorboard.import_folder(tmp_path / "logs", home)
    store = ingest.store_of(home)
    assert [row[:2] for row in numbers(store, run_id)] == [("../../loss", 7), ("loss", 1)]
    assert list(home.run_dir(run_id).samples.iterdir()) == []
    messages = [row[0] for row in store.rows("SELECT message FROM events WHERE kind = 'import'")]
    assert [message.partition(" (")[0] for message in messages] == ["2 images left out on import"]


def test_event_files_are_overwritten_only_on_request(
    home: Home, stored: RunDir, tmp_path: Path
) -> None:
    store = ingest.store_of(home)
    (path,) = export_event_files(store, [stored.run_id], tmp_path)
    path.write_bytes(b"mine")
    with pytest.raises(TargetError):
        export_event_files(store, [stored.run_id], tmp_path)
    assert path.read_bytes() == b"mine"
    export_event_files(store, [stored.run_id], tmp_path, overwrite=True)
    assert len(list(event_files.read(path))) == 6  # the version, the options, four steps
