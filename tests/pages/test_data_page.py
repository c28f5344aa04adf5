"""The Data page: the listed data sets, and from user images to a data set, by real jobs."""

from __future__ import annotations

import io
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard import data_summary
from dashboard.data import sets_view
from dashboard.frame import session
from gan_runtime import catalog
from gan_runtime.base.fields import Fields, labels, pair_fields, pictures
from gan_runtime.data import loading, prepared, uploads
from gan_runtime.data.prepared import LiveImage
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from tests.domains.showers.hdf5_showers import challenge_columns, written
from tests.pages.launch_fields import filled_in
from tests.support.own_pictures import encoded, picture, zipped
from tests.support.plain_user import without_rights
from tests.support.stored_films import stored_pairs

Show = Callable[..., AppTest]
Wait = Callable[..., Any]


def said(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.error, app.success, app.info)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


def drop(app: AppTest, *files: tuple[str, bytes]) -> AppTest:
    return app.file_uploader[0].set_value([(name, content, "") for name, content in files]).run()


def previewed(app: AppTest, home: Home, wait_until: Wait) -> AppTest:
    before = len(job_queue.snapshots(home))
    app.button(key="data.preview").click().run()
    wait_until(
        lambda: len(job_queue.snapshots(home)) > before and job_queue.snapshots(home)[0].end,
        "the pictures are looked through",
    )
    return app.run()


@pytest.fixture(autouse=True)
def _no_files_of_the_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))


def test_built_in_datasets_are_listed_before_any_other(show: Show) -> None:
    app = show("data")
    assert not app.exception
    assert "**Digits (embedded)**" in said(app)
    assert "1,797 images · 28 × 28 gray · 10 classes: 0, 1, 2, 3, 4, 5 …" in said(app)
    assert app.button(key="data.download.mnist").label == "Download"
    assert "Drop or pick files, then press Preview" in said(app)


@pytest.mark.parametrize("name", ["digits", "stacked_digits"])
def test_preview_of_an_embedded_dataset_shows_its_first_rows(name: str) -> None:
    picture_file = sets_view.embedded_rows(name)
    assert picture_file is not None
    rows = loading.load(name).read(np.arange(prepared.FIRST_ROWS_COUNT))["images"]
    card = np.asarray(Image.open(picture_file))
    assert np.array_equal(card, np.asarray(Image.open(io.BytesIO(prepared.png(rows)))))
    assert sets_view.embedded_rows("mnist") is None


def test_train_on_it_opens_launch_with_the_dataset_selected(show: Show) -> None:
    app = show("data")
    app.button(key="data.train.fashion_mnist").click().run()
    assert not app.exception
    assert app.title[0].value == "Launch"
    assert filled_in(app, "dataset") == "fashion_mnist"
    assert filled_in(app, "workload") == "dcgan"


def test_train_on_it_selects_a_workload_that_reads_the_dataset(show: Show) -> None:
    app = show("data")
    app.button(key="data.train.stacked_digits").click().run()
    assert not app.exception
    assert (
        filled_in(app, "workload")
        == loading.workloads_for(catalog.DATASETS["stacked_digits"].fields)[0]
    )
    assert filled_in(app, "learning_rate_generator") == "1e-3", (
        "what the preset says of any workload"
    )
    assert not app.error


@pytest.mark.parametrize(
    ("dataset", "offered", "rows", "preset", "options"),
    [
        ("karman_small", flow_fields(40, 96, 2), 1_764, "karman", ("pix2pix", 32, 3, 90)),
        ("karman", flow_fields(80, 192, 2), 1_764, "karman", ("pix2pix", 32, 3, 90)),
        ("facades", pair_fields(256, 256), 400, "karman", ("pix2pix", 256, 1, 397)),
        ("stamps", pair_fields(40, 50, 1, 3), 3_528, "karman", ("pix2pix", 32, 1, 45)),
    ],
)
def test_train_on_it_starts_with_options_that_fit_the_dataset(
    dataset: str, offered: Fields, rows: int, preset: str, options: tuple[object, ...]
) -> None:
    """Image pairs have no frames after their targets, which the flow preset requires. As many rows
    are seen as in 90 epochs of 1,764.
    """
    name, spec = sets_view.starting_point(dataset, offered, rows)
    values = spec.flat()
    assert (name, values["dataset"]) == (preset, dataset)
    assert (values["workload"], values["tile"], values["unrolled"], values["epochs"]) == options
    assert values["restart_epochs"] == values["epochs"]
    assert loading.reads(spec.entry, spec.of_workload, offered)


@pytest.mark.parametrize(
    ("rows", "epochs"), [(300, 228), (1_797, 38), (20, 1_000), (6_828, 10), (200_000, 5)]
)
def test_train_on_it_shows_as_many_images_as_the_preset(rows: int, epochs: int) -> None:
    """The quick preset shows 38 × 1,797 images, and at least 5 epochs."""
    name, spec = sets_view.starting_point("own", {"images": pictures(28, 28, 1)}, rows)
    assert (name, spec.dataset, spec.epochs) == ("quick", "own", epochs)


def test_train_on_it_opens_launch_without_errors_for_image_pairs(show: Show, home: Home) -> None:
    """16 pixels are too few for the default tile."""
    stored_pairs(home, pairs=100)
    app = show("data")
    app.button(key="data.train.edges").click().run()
    assert app.title[0].value == "Launch"
    assert not app.exception
    assert [error.value for error in app.error] == []
    assert [filled_in(app, name) for name in ("dataset", "workload", "tile")] == [
        "edges",
        "pix2pix",
        "16",
    ]
    assert filled_in(app, "epochs") == "1000"
    assert "Shows 98,000 pairs. On its own data set, the preset" in said(app)


def test_images_are_previewed_prepared_and_removed(
    show: Show, home: Home, wait_until: Wait
) -> None:
    tiny = encoded(picture(0, red=True, side=20), "PNG")
    app = drop(
        show("data"),
        ("My shapes.zip", zipped(20, {"shapes/disks/tiny.png": tiny, "shapes/notes.txt": b"hi"})),
    )
    app = previewed(app, home, wait_until)
    assert [(metric.label, metric.value) for metric in app.metric][:2] == [
        ("Images", "36"),
        ("Held out", "4"),
    ]
    assert list(app.dataframe[0].value.itertuples(index=False, name=None)) == [
        ("disks", 17, 3),
        ("squares", 19, 1),
    ]
    assert "2 files skipped: " in said(app)
    assert "too small 1 (shapes/disks/tiny.png)" in said(app)
    assert "no image 1 (shapes/notes.txt)" in said(app)
    assert not home.data.exists()  # nothing is stored yet

    app.button(key="data.prepare").click().run()
    messages = said(app)  # once: here, if the job ended before the page was redrawn
    wait_until(lambda: job_queue.snapshots(home)[0].end, "the set is prepared")
    app.run()
    assert "Data set my-shapes is ready: 36 images." in messages + said(app)
    assert "36 images · 64 × 64 RGB · 2 classes: disks, squares" in said(app)
    assert "36 to train on, 4 held out · 2 files skipped" in said(app)
    assert [label.label for label in app.expander if "Summary" in label.label] == [
        "Summary of the preparation"
    ]
    assert loading.load("my-shapes", home).rows == 36
    assert list((home.jobs / uploads.FOLDER).iterdir()) == []

    app.button(key="data.remove.my-shapes").click().run()
    assert "Deletes the files of **my-shapes**." in said(app)
    session.runtime().commands.remove_data("my-shapes")
    assert "my-shapes" not in said(app.run())
    assert prepared.names(home) == []


@pytest.mark.usefixtures("stalled_jobs")
def test_running_jobs_show_their_progress_and_can_be_cancelled(
    show: Show, home: Home, tmp_path: Path, wait_until: Wait
) -> None:
    app = drop(show("data"), ("photos.zip", zipped(1)))
    app.button(key="data.preview").click().run()
    (tmp_path / "shapes.zip").write_bytes(zipped(1))
    session.runtime().commands.prepare_data(
        "pictures", "shapes", tmp_path / "shapes.zip", {"pixels": 32}
    )
    app.run()
    goes_on = "starting. You can close the page: it continues."
    assert [bar.proto.text for bar in app.get("progress")] == [
        f"Data set shapes: {goes_on}",
        f"Preview: {goes_on}",
    ]
    preparing, looking = job_queue.snapshots(home)
    for look in (looking, preparing):
        app.button(key=f"data.cancel.{look.job.job_id}").click().run()
        assert not app.exception
        assert look.job.stop_file.read_text(encoding="utf-8") == "dashboard"
    assert said(app).count("cancelling …") == 2
    for look in (looking, preparing):
        job_queue.signal_group(look.job, signal.SIGCONT)
        wait_until(look.job.end, "the job ends")
    app.run()
    assert not app.get("progress")
    assert app.button(key="data.preview").label == "Preview again"


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            b"no zip at all",
            "is not a zip file, or is damaged: give a folder, or a .zip that opens on this"
            " machine.",
        ),
        (zipped(1, {"../outside.png": b"x"}), "which is outside of its folder, so it is not read"),
        (zipped(0, {"a.txt": b"x"}), "no image can be used"),
    ],
)
def test_an_unusable_zip_shows_one_error(
    show: Show, home: Home, wait_until: Wait, content: bytes, sentence: str
) -> None:
    app = previewed(drop(show("data"), ("bad.zip", content)), home, wait_until)
    assert len(app.error) == 1
    assert sentence in app.error[0].value.replace("\u2060", "")
    assert app.button(key="data.preview").label == "Preview again"


def test_several_images_are_accepted_but_not_mixed_with_a_zip(show: Show) -> None:
    files = [(f"{number}.png", encoded(picture(number, red=True), "PNG")) for number in range(3)]
    app = drop(show("data"), *files)
    assert app.button(key="data.preview").label == "Preview"
    app = drop(app, *files, ("more.zip", zipped(1)))
    assert [error.value for error in app.error] == [
        "a .zip and other files cannot be one data set: upload either one .zip or several images."
    ]


def test_form_errors_are_shown_and_hide_the_preview_button(show: Show) -> None:
    app = drop(show("data"), ("photos.zip", zipped(1)))
    app.text_input(key="data.option.pictures.held_out_percent").set_value("90").run()
    assert "allowed is at least 0 and at most 50" in said(app)
    app.text_input(key="data.option.pictures.held_out_percent").set_value("0").run()
    (name,) = [field for field in app.text_input if field.label == "Name"]
    name.set_value("Über uns").run()
    assert "cannot name a data set" in said(app)
    assert "data.preview" not in [button.key for button in app.button]


def test_a_host_folder_can_be_selected(
    show: Show, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wait_until: Wait
) -> None:
    for number in range(3):
        path = tmp_path / "data" / "cats" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(picture(number, red=True), "PNG"))
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / "data"))
    app = show("data")
    app.selectbox(key="data.host.gan_runtime.data.images.0").set_value("cats").run()
    app = previewed(app, home, wait_until)
    assert app.metric[0].value == "3"


def test_unreadable_folders_show_warnings_without_breaking_the_page(
    show: Show, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "data"
    (shared / "cats").mkdir(parents=True)
    stored_pairs(home, pairs=4)
    monkeypatch.setenv("GAN_DATA_DIR", str(shared))
    with without_rights(shared / "cats"):
        app = show("data")
        assert app.warning[0].value.startswith(f"{shared}/cats cannot be read (Permission denied)")
    with without_rights(shared, prepared.folder(home, "edges")):
        app.run()
        assert not app.exception
        assert app.warning[0].value.startswith(f"{shared} cannot be read (Permission denied)")
        assert "edges/manifest.json cannot be read (Permission denied)" in said(app)
    with without_rights(home.data):
        app.run()
    assert not app.exception
    assert f"{home.data} cannot be read (Permission denied)" in said(app)


def with_preparation(app: AppTest, preparation: str) -> AppTest:
    return app.segmented_control(key="data.preparation").set_value(preparation).run()


def test_showers_are_simulated_from_the_form(show: Show, home: Home, wait_until: Wait) -> None:
    app = with_preparation(show("data"), "showers")
    app.text_input(key="data.option.showers.energy_low").set_value("300").run()
    assert "which is 200: swap them." in said(app)
    assert "data.prepare" not in [button.key for button in app.button]
    app.text_input(key="data.option.showers.energy_low").set_value("100").run()
    app.text_input(key="data.option.showers.events").set_value("200").run()
    app.selectbox(key="data.option.showers.grid").set_value("tiny").run()
    assert app.button(key="data.prepare").label == "Prepare showers"
    app.button(key="data.prepare").click().run()
    messages = said(app)
    wait_until(lambda: job_queue.snapshots(home)[0].end, "the showers are simulated")
    app.run()
    assert "Data set showers is ready: 180 rows." in messages + said(app)
    assert "180 rows · 17 × 17 × 25 showers, energy, deposit, angle" in said(app)
    app.button(key="data.train.showers").click().run()
    assert not app.exception
    assert not app.error
    values = [filled_in(app, option) for option in ("preset", "dataset", "workload", "optimizer")]
    assert values == ["showers", "showers", "shower_3dgan", "rmsprop"]


def test_flows_are_simulated_from_the_form(show: Show, home: Home, wait_until: Wait) -> None:
    app = with_preparation(show("data"), "karman_small")
    key = "data.option.karman_small"
    assert (
        app.text_input(key=f"{key}.held_out_reynolds").value
        == "140, 60, 230, 140 shift 12, 140 width 14"
    )
    app.text_input(key=f"{key}.reynolds").set_value("100, 39").run()
    assert "allowed is different flows separated by commas: a number from 40 to 250" in said(app)
    assert "data.prepare" not in [button.key for button in app.button]
    for option, value in (
        ("reynolds", "100"),
        ("held_out_reynolds", "120"),
        ("frames", "5"),
        ("discarded", "0"),
    ):
        app.text_input(key=f"{key}.{option}").set_value(value)
    app.run()
    app.button(key="data.prepare").click().run()
    messages = said(app)
    wait_until(lambda: job_queue.snapshots(home)[0].end, "the flows are simulated")
    app.run()
    assert not app.exception
    assert "Data set karman_small is ready: 2 frames." in messages + said(app)
    assert "2 frames · 40 × 96, each with the next 3 · Reynolds number" in said(app)


@pytest.mark.usefixtures("stalled_jobs")
def test_a_preparation_shows_its_live_image(show: Show) -> None:
    app = show("data")
    folder = session.runtime().commands.prepare_data("karman").work / "new" / "set"
    folder.mkdir(parents=True)
    alternative = "The set being prepared."
    assert alternative not in alternatives(app.run())
    LiveImage(folder).renew(lambda: np.full((8, 8, 3), 200, np.uint8))
    assert alternative in alternatives(app.run())


def alternatives(app: AppTest) -> list[str]:
    """Returns the alternative text of each image."""
    return [picture.alt for element in app.get("image") for picture in element.proto.imgs]


def test_pairs_are_previewed_and_prepared(show: Show, home: Home, wait_until: Wait) -> None:
    both = np.concatenate([np.asarray(picture(0, red=red)) for red in (True, False)], axis=1)
    odd = encoded(picture(0, red=True, side=81), "PNG")
    app = with_preparation(show("data"), "picture_pairs")
    app = drop(app, ("both.png", encoded(Image.fromarray(both), "PNG")), ("odd.png", odd))
    app.selectbox(key="data.option.picture_pairs.pixels").set_value("64").run()
    app = previewed(app, home, wait_until)
    assert [(metric.label, metric.value) for metric in app.metric][:1] == [("Pairs", "1")]
    assert "As they would be stored, source left, target right." in said(app)
    reasons = list(app.dataframe[0].value["Reason"])
    assert reasons == ["it has 81 × 81 pixels, but a pair is about twice as wide as high"]
    app.button(key="data.prepare").click().run()
    wait_until(lambda: job_queue.snapshots(home)[0].end, "the pairs are prepared")
    assert "1 pair · 64 × 64 RGB → 64 × 64 RGB" in said(app.run())


def test_uploaded_shower_files_need_no_preview(
    show: Show, home: Home, wait_until: Wait, tmp_path: Path
) -> None:
    app = with_preparation(show("data"), "calochallenge")
    assert "Drop or pick a file to choose how its rows are converted." in said(app)
    file = written(tmp_path / "part.hdf5", challenge_columns(6_480))
    app = drop(app, ("part.hdf5", file.read_bytes()))
    app.button(key="data.prepare").click().run()
    wait_until(lambda: job_queue.snapshots(home)[0].end, "the showers are converted")
    assert "16 × 9 × 45 showers, energy, deposit" in said(app.run())
    assert prepared.manifest(home, "calochallenge").source == "part.hdf5"
    assert list((home.jobs / uploads.FOLDER).iterdir()) == []


def test_run_page_shows_that_a_run_waits_for_its_data(
    show: Show, new_run: Callable[..., RunDir]
) -> None:
    run = new_run("quick-0001")
    waits = StatusChange(
        status="queued", reason="waiting for data set photos (40%)", queue_rank=0.0
    )
    journal.append(run.supervisor_journal, 1, waits)
    app = show("run", run="quick-0001")
    assert "Waiting for data set photos (40%)" in "".join(
        element.proto.body for element in app.get("html")
    )


def test_class_names_are_escaped_and_abbreviated() -> None:
    names = ("![x](http://evil.example)", "a" * 100, *"bcdefg")
    sentence = data_summary.classes({"labels": labels(names)})
    assert sentence.startswith("8 classes: ")
    assert sentence.endswith(", e …")
    assert "![x](" not in sentence
    assert "a" * 25 not in sentence


def test_a_damaged_dataset_can_be_removed(show: Show, home: Home) -> None:
    (home.data / "photos").mkdir(parents=True)
    (home.data / "photos" / "manifest.json").write_text("{}", encoding="utf-8")
    app = show("data")
    assert "is not a manifest of a data set, or is damaged" in app.error[0].value.replace(
        "\u2060", ""
    )
    assert app.button(key="data.remove.photos").label == "Remove"
