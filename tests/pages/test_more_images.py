"""More images in the Samples tab of a run: valid requests, a running job, and its results."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.samples import generate_view, seed_sheet
from gan_runtime import pictures
from gan_runtime.jobs import job_queue
from gan_runtime.jobs.folder import End, JobDir, JobRequest
from gan_runtime.jobs.image_job import ARRAYS_FILE, PICTURE_FILE, ImageRequest
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.pages.reading import texts, titles

Show = Callable[..., AppTest]
Make = Callable[..., RunDir]


@pytest.fixture
def asleep() -> Iterator[subprocess.Popen[bytes]]:
    """A process that does no work."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True)
    yield process
    process.kill()
    process.wait()


def saved(run: RunDir, *steps: int) -> None:
    """Saves checkpoints without networks; the first is the best."""
    for step in steps:
        arrays = {"weights": np.zeros(3, np.float32)}
        checkpoints.save(
            run.checkpoints, arrays, step, wall_s=1.0, retained=3, shortfall=step / 100
        )


def image_job(home: Home, number: int, request: ImageRequest) -> JobDir:
    """The folder of a job that no process runs."""
    job = JobDir(home.jobs / f"generate-{number:04d}")
    job.path.mkdir(parents=True)
    job.write_request(JobRequest(kind="generate", options=asdict(request), asker="a test"))
    return job


def done(job: JobDir, *warnings: str) -> None:
    """Writes the results of a job that has generated sixteen gray images."""
    images = np.zeros((16, 28, 28, 1), np.float32)
    pictures.save(pictures.render("grey_grid", (images,)), job.results / PICTURE_FILE)
    np.savez(job.results / ARRAYS_FILE, images=images)
    result = {
        "step": 1_050,
        "checkpoint_file": "step-00001050.safetensors",
        "warnings": list(warnings),
    }
    job.write_end(End(state="finished", reason="done", result=result))


def offered(app: AppTest, key: str) -> list[str]:
    """The choices of a select box, or none if it is not drawn."""
    return [option for box in app.selectbox if box.key == key for option in box.options]


def button(app: AppTest) -> Any:
    return app.button(key="generate.start")


def test_a_run_without_a_checkpoint_shows_no_form(show: Show, trained: Make) -> None:
    trained("quick-0001")
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    assert "This run has no checkpoint here" in texts(app)
    assert "generate.start" not in [button.key for button in app.button]


def test_the_form_offers_only_options_of_the_run(show: Show, trained: Make) -> None:
    saved(trained("quick-0001", workload="mlp_gan"), 1_050)
    saved(trained("quick-0002", seconds=10, workload="dcgan"), 700, 1_050)
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    assert [box.label for box in app.selectbox] == ["Run", "Truncation"]
    assert app.text_input(key="generate.seeds.grid.False").value == "0-63"
    app = show("run", tab="samples", run="quick-0002")
    assert not app.exception
    assert offered(app, "generate.class.True.quick-0002") == ["All classes", *"0123456789"]
    assert offered(app, "generate.checkpoint.quick-0002") == [
        "Newest, step 1,050",
        "Best, step 700",
    ]
    assert app.text_input(key="generate.seeds.grid.True").value == "0-7", "of each class"
    app.text_input(key="generate.seeds.grid.True").set_value("three").run()
    assert "seeds has 'three': use numbers such as" in app.error[0].value.replace("\\", "")


def test_the_started_job_reports_a_damaged_checkpoint(
    show: Show, home: Home, trained: Make, wait_until: Callable[..., Any]
) -> None:
    run = trained("quick-0001", workload="dcgan")
    saved(run, 1_050)
    for path in run.checkpoints.iterdir():
        path.write_bytes(b"torn")
    app = show("run", tab="samples", run="quick-0001")
    app.selectbox(key="generate.class.True.quick-0001").set_value("7").run()
    app.text_input(key="generate.seeds.grid.False").set_value("3-18")
    button(app).click().run()
    assert not app.exception
    [look] = job_queue.snapshots(home)
    assert (look.request.asker, look.request.options) == (
        "dashboard",
        asdict(ImageRequest("quick-0001", 16, 3, "7", "newest", seeds=list(range(3, 19)))),
    )
    wait_until(look.job.end, "the job ends")
    app.run()
    [error] = app.error
    assert error.value.startswith("none of the 2 checkpoints in ")
    assert not button(app).disabled


def test_generated_images_are_shown_with_their_origin(
    show: Show, home: Home, trained: Make
) -> None:
    saved(trained("quick-0001", workload="dcgan"), 1_050)
    done(
        image_job(home, 1, ImageRequest("quick-0001", 16, 3, "7", seeds=[*range(3, 19)])),
        "checkpoint step-2 is damaged; taking the one before.",
    )
    image_job(home, 2, ImageRequest("quick-0001")).stop_file.touch()  # canceled before it starts
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    sentence = (
        "16 images of quick-0001, class 7, seeds 3 to 18, by its newest checkpoint (after step"
        " 1,050)."
    )
    assert titles(app) == ["Click images to pick their seeds"]
    [chart] = app.get("vega_lite_chart")
    rows = pa.ipc.open_stream(chart.proto.datasets[0].data.data).read_pandas()
    assert rows["seed"].tolist() == [*range(3, 19)]
    assert rows["url"].str.startswith("data:image/png;base64,").all()
    assert sentence in texts(app).replace("\\", "")
    assert "checkpoint step-2 is damaged" in texts(app).replace("\\", "")
    files = [element.proto.label for element in app.get("download_button")]
    assert files == ["Time-lapse", "Image", "Arrays"]
    for path in (home.jobs / "generate-0001" / "results").iterdir():
        path.unlink()
    assert "The last images were deleted" in texts(app.run())


def test_a_strip_of_images_is_one_picture(show: Show, home: Home, trained: Make) -> None:
    saved(trained("quick-0001", workload="dcgan"), 1_050)
    request = ImageRequest("quick-0001", 16, 3, "7", seeds=[3, 9], layout="strip", frames=16)
    done(image_job(home, 1, request))
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    assert titles(app) == []
    images = [picture.alt for element in app.get("image") for picture in element.proto.imgs]
    assert images[-1].startswith("16 images from each seed to the next, of quick-0001, class 7,")


def stored(path: Path, labels: list[int] | None, count: int) -> str:
    """A file of color images, of which the second is white."""
    images = np.zeros((count, 16, 32, 3), np.float32)
    images[1] = 1.0
    if labels is None:
        np.savez(path, images=images)
    else:
        np.savez(path, class_images=images, labels=np.array(labels, np.float32))
    return str(path)


@pytest.mark.parametrize(
    ("labels", "seeds", "names", "rows", "columns"),
    [
        (None, 9, (), [0] * 8 + [1], [*range(8), 0]),
        (
            [4, 4, 4, 30, 30, 30],
            3,
            ("a", "b", "c", "d", "e"),
            ["e"] * 3 + ["30"] * 3,
            [0, 1, 2] * 2,
        ),
        ([4] * 4, 4, ("a",), [0] * 4, [*range(4)]),
    ],
    ids=["without classes", "a row per class", "one class"],
)
def test_sheet_has_a_place_for_each_image(
    tmp_path: Path,
    labels: list[int] | None,
    seeds: int,
    names: tuple[str, ...],
    rows: list[object],
    columns: list[int],
) -> None:
    images = seed_sheet.images_of(stored(tmp_path / "a.npz", labels, len(rows)), seeds)
    assert images is not None
    assert len(set(images.urls)) == 2
    assert all(url.startswith("data:image/webp;base64,") for url in images.urls)
    chart, width = seed_sheet.chart(images, [*range(3, 3 + seeds)], names)
    cells = chart.data
    assert cells["row"].tolist() == rows
    assert cells["column"].tolist() == columns
    assert cells["seed"].tolist() == [*range(3, 3 + seeds)] * (len(rows) // seeds)
    assert chart.to_dict()["height"] < width


@pytest.mark.parametrize(
    ("count", "seeds"), [(34, 17), (9, 4)], ids=["too narrow for a row per class", "no whole rows"]
)
def test_other_grids_are_one_picture(tmp_path: Path, count: int, seeds: int) -> None:
    labels = np.arange(count) // seeds
    assert seed_sheet.images_of(stored(tmp_path / "a.npz", labels.tolist(), count), seeds) is None


def test_picked_seeds_of_too_many_images_name_the_limit(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    saved(new_run("quick-0001", workload="dcgan"), 1_050)
    strip = ImageRequest("quick-0001", seeds=[1, 2, 3, 4, 5], layout="strip", frames=8)
    assert "320" in generate_view.obstacle_of(home, strip)
    assert generate_view.obstacle_of(home, replace(strip, seeds=[1, 2])) == ""
    assert generate_view.obstacle_of(home, replace(strip, seeds=[1])) == "Pick one more image."


def test_a_running_job_shows_progress_and_can_be_cancelled(
    show: Show, home: Home, trained: Make, asleep: subprocess.Popen[bytes]
) -> None:
    saved(trained("quick-0001", workload="mlp_gan"), 1_050)
    job = image_job(home, 1, ImageRequest("quick-0001", 64))
    job.write_process(asleep.pid)
    job.add_progress(1, 3, "generating")
    app = show("run", tab="samples", run="quick-0001")
    assert not app.exception
    [bar] = app.get("progress")
    assert (bar.proto.value, bar.proto.text) == (
        33,
        "Generating images: generating. You can close the page: it continues.",
    )
    assert button(app).disabled
    app.button(key="generate.cancel.generate-0001").click().run()
    assert not app.exception
    assert job.stop_file.read_text(encoding="utf-8") == "dashboard"
    asleep.wait(10)
    app.run()
    assert app.get("progress") == []
    assert not button(app).disabled
