"""Images on request with real trainers and the job's real, persistent process."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import uploads
from gan_runtime.jobs.folder import End, JobDir
from gan_runtime.jobs.image_job import (
    ARRAYS_FILE,
    FILM_FILE,
    MOST_NETWORKS,
    PICTURE_FILE,
    ImageRequest,
)
from gan_runtime.records.home import Home
from gan_runtime.records.processes import environment
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.training import checkpoints
from tests.support import drawn_pairs

DIGITS = {
    "workload": "dcgan",
    "base_channels": 4,
    "latent_size": 16,
    "epochs": 2,
    "batch_size_global": 256,
    "precision": "float32",
    "weight_snapshots": "yes",
    "learning_rate_generator": 0.01,
}
PAIRS = {
    "workload": "pix2pix",
    "dataset": drawn_pairs.NAME,
    "precision": "float32",
    "tile": 16,
    "batch_size_global": 4,
    "epochs": 1,
}
Ends = Callable[..., tuple[JobDir, End]]


def trained(home: Home, name: str, options: dict[str, object]) -> RunDir:
    """Trains a run to its end with a real trainer."""
    run = RunDir(home.runs / name)
    run.path.mkdir(parents=True)
    write_json(run.spec_path, options)
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    ended = subprocess.run(command, env=environment(os.environ), capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2_000:]
    return run


@pytest.fixture
def runtime(home: Home) -> Iterator[Runtime]:
    opened = Runtime.open(home)
    yield opened
    opened.close()
    if (process := JobDir(home.jobs / ".generate").process()) is not None:
        process.kill()


@pytest.fixture
def end_of(runtime: Runtime, wait_until: Callable[..., End]) -> Ends:
    """Requests images and waits for the end of the job; prints how long it took."""

    def wait(run_id: str, **options: object) -> tuple[JobDir, End]:
        begin = time.perf_counter()
        job = runtime.commands.request_job("generate", ImageRequest(run_id, **options))
        end = wait_until(job.end, "the job ends")
        print(f"{time.perf_counter() - begin:.2f} s for {options}")
        return job, end

    return wait


def arrays_of(job: JobDir, end: End) -> dict[str, np.ndarray]:
    assert end.state == "finished", f"{end.reason}\n{job.log_tail()}"
    with np.load(job.results / ARRAYS_FILE, allow_pickle=False) as arrays:
        return dict(arrays)


def test_requests_share_a_process_but_use_the_weights_of_their_run(
    home: Home, end_of: Ends
) -> None:
    runs = [trained(home, f"digits-000{seed}", {**DIGITS, "seed": seed}) for seed in (1, 2, 3)]
    assert len(runs) > MOST_NETWORKS, "more than fit into memory"
    images = [
        arrays_of(*end_of(run.run_id, count=20, seeds=[0, 1]))["class_images"] for run in runs
    ]
    process = JobDir(home.jobs / ".generate").process()
    assert process is not None
    again = arrays_of(*end_of(runs[0].run_id, count=20, seeds=[0, 1]))
    np.testing.assert_array_equal(again["class_images"], images[0])
    assert again["labels"].tolist() == np.repeat(np.arange(10), 2).tolist()
    job, end = end_of(runs[0].run_id, seeds=[0, 1])
    np.testing.assert_array_equal(arrays_of(job, end)["class_images"], images[0])
    assert end.result["count"] == 20, "each seed in each class"
    assert np.abs(images[0] - images[1]).max() > 1e-3, "other weights"

    first_epoch = arrays_of(*end_of(runs[0].run_id, count=20, seeds=[0, 1], epoch=1))
    assert np.abs(first_epoch["class_images"] - images[0]).max() > 1e-3
    job, end = end_of(runs[0].run_id, count=20, seeds=[0, 1], epoch=2)
    # Weights of an epoch are stored in float16.
    np.testing.assert_allclose(arrays_of(job, end)["class_images"], images[0], atol=5e-3)
    assert end.result["step"] == 14
    assert JobDir(home.jobs / ".generate").process() == process

    newest = checkpoints.load(runs[0].checkpoints, "newest")
    weights = {name: 0 * array for name, array in newest.arrays.items()}
    checkpoints.save(runs[0].checkpoints, weights, 21, wall_s=1.0, retained=3)
    job, end = end_of(runs[0].run_id, count=20, seeds=[0, 1])
    assert end.result["step"] == 21, "a run that trains on has a newer checkpoint"
    assert np.abs(arrays_of(job, end)["class_images"]).max() < 1e-6


def test_strips_planes_and_truncation_use_the_named_latents(home: Home, end_of: Ends) -> None:
    run_id = trained(home, "digits-0001", {**DIGITS, "epochs": 1}).run_id
    grid = arrays_of(*end_of(run_id, count=3, seeds=[3, 17, 40], label="7"))["class_images"]
    job, end = end_of(run_id, seeds=[3, 17, 40], layout="strip", frames=4, label="7")
    strip = arrays_of(job, end)["class_images"]
    np.testing.assert_allclose(strip[[0, 3, 4, 7]], grid[[0, 1, 1, 2]], atol=1e-5)
    between = np.abs(strip[1:3] - strip[[0, 3]]).max(axis=(1, 2, 3))
    assert between.min() > 1e-4, "images in between are others"
    with (
        Image.open(job.results / PICTURE_FILE) as image,
        Image.open(job.results / FILM_FILE) as gif,
    ):
        assert image.size == (4 * 30 - 2, 2 * 30 - 2), "a line for each pair"
        # There and back, where the second pair begins with the image that ends the first one.
        assert (gif.n_frames, gif.size) == (12, (252, 252))

    job, end = end_of(run_id, seeds=[3, 17], layout="strip", frames=4)
    every = arrays_of(job, end)
    assert every["labels"].tolist() == np.repeat(np.arange(10), 4).tolist()
    np.testing.assert_allclose(every["class_images"][28], grid[0], atol=1e-5)
    plane = arrays_of(*end_of(run_id, seeds=[3, 17, 40], layout="plane", frames=5, label="7"))[
        "class_images"
    ]
    np.testing.assert_allclose(plane[12], grid[0], atol=1e-5)
    cut = arrays_of(*end_of(run_id, count=3, seeds=[3, 17, 40], label="7", truncation=0.5))
    assert np.abs(cut["class_images"] - grid).max() > 1e-4


def test_uploaded_image_is_translated_whole(home: Home, end_of: Ends, tmp_path: Path) -> None:
    drawn_pairs.prepare(home, tmp_path / "drawn")
    run_id = trained(home, "pairs-0001", PAIRS).run_id
    image = Image.fromarray(np.random.RandomState(0).randint(0, 256, (40, 60, 3)).astype(np.uint8))
    file = io.BytesIO()
    image.save(file, format="PNG")
    uploads.store(home, "0123abcd", file.getvalue())
    job, end = end_of(run_id, upload="0123abcd")
    arrays = arrays_of(job, end)
    assert {name: array.shape for name, array in arrays.items()} == {
        "source": (1, 16, 16, 3),
        "generated": (1, 16, 16, 3),
    }
    expected = np.asarray(ImageOps.fit(image, (16, 16))) / 127.5 - 1
    np.testing.assert_allclose(arrays["source"][0], expected, atol=1e-5)
    with Image.open(job.results / PICTURE_FILE) as pair:
        assert pair.size == (34, 16), "input and output"
    uploads.store(home, "0123abce", b"no image")
    assert end_of(run_id, upload="0123abce")[1].reason == (
        "the uploaded image cannot be used: it is not a JPEG, PNG or WebP image. Upload a PNG,"
        " JPEG or WebP."
    )
    uploads.remove(home, "0123abcd")
    assert end_of(run_id, upload="0123abcd")[1].reason == (
        "the uploaded image has expired: upload it again."
    )
