"""Event files: TensorBoard's reader opens exported runs, and files written by TensorFlow are
imported.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gan_runtime.records.home import Home
from gan_runtime.store import ingest, queries
from tests.support.command_line import answer, refused, run
from tests.support.trained_home import SCALARS

# Runs in its own process: TensorBoard loads TensorFlow with its own settings.
READER = """
import json, sys
from tensorboard.backend.event_processing.event_multiplexer import EventMultiplexer
reader = EventMultiplexer(size_guidance={"scalars": 0, "images": 0, "tensors": 0})
reader.AddRunsFromDirectory(sys.argv[1])
reader.Reload()
answer = {}
for name, tags in reader.Runs().items():
    answer[name] = {
        "scalars": {tag: [[event.step, event.wall_time, event.value] for event in reader.Scalars(name, tag)] for tag in tags["scalars"]},
        "images": {tag: [[event.step, event.width, event.height, event.encoded_image_string.hex()] for event in reader.Images(name, tag)] for tag in tags["images"]},
        "texts": {tag: reader.Tensors(name, tag)[0].tensor_proto.string_val[0].decode() for tag in tags["tensors"]},
    }
print(json.dumps(answer))
"""  # noqa: E501
WRITER = """
import sys
import numpy as np
import tensorflow as tf
for name in ("first", "second"):
    with tf.summary.create_file_writer(f"{sys.argv[1]}/{name}").as_default():
        for step in (10, 20, 30):
            tf.summary.scalar("loss", 1.0 / step, step)
            tf.summary.scalar("double", np.float64(step), step)
            tf.summary.histogram("weights", np.arange(9.0), step)
        tf.summary.image("fakes", np.full((4, 6, 5, 1), 0.5, np.float32), 30, max_outputs=4)
        tf.summary.text("note", "hello", 30)
"""


def python(code: str, *words: str) -> str:
    """Runs a program and returns its output."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_tensorboard_reads_an_exported_run(trained: Path, tmp_path: Path) -> None:
    words = ["--to", str(tmp_path), "--format", "tensorboard", "--home", str(trained)]
    files = answer(run("export", "run-0001", *words, "--json"))["files"]
    assert [Path(file).parent.name for file in files] == ["run-0001"]
    read = json.loads(python(READER, str(tmp_path)))["run-0001"]

    store = ingest.store_of(Home(trained))
    rows = store.rows("SELECT metric, step, value, wall_s FROM numbers WHERE run_id = 'run-0001'")
    begin = queries.run(store, "run-0001").created_at.timestamp()
    expected = sorted((metric, step, np.float32(value)) for metric, step, value, _ in rows)
    assert len(expected) >= SCALARS
    assert (
        sorted(
            (tag, step, np.float32(value))
            for tag, events in read["scalars"].items()
            if tag != "epoch"
            for step, _, value in events
        )
        == expected
    )
    ends = {step: begin + wall_s for metric, step, _, wall_s in rows if metric == "loss_generator"}
    times = {step: wall for step, wall, _ in read["scalars"]["loss_generator"]}
    assert times == pytest.approx(ends)

    kind = queries.sample_kinds(store, ["run-0001"])[0]
    grids = [queries.sample(store, "run-0001", epoch, kind) for epoch in (1, 2)]
    assert [(step, bytes.fromhex(content)) for step, _, _, content in read["images"][kind]] == [
        (grid.step, grid.png) for grid in grids if grid
    ]
    width, height = read["images"][kind][0][1:3]
    assert (width, height) == Image.open(io.BytesIO(grids[0].png)).size  # type: ignore[union-attr]
    assert json.loads(read["texts"]["options"])["workload"] == "mlp_gan"


def test_tensorflow_event_files_are_imported_as_runs(tmp_path: Path) -> None:
    python(WRITER, str(tmp_path / "logs"))
    home = Home(tmp_path / "home")
    words = ["import", str(tmp_path / "logs"), "--home", str(home.path)]
    run_ids = answer(run(*words, "--json"))["runs"]
    store = ingest.store_of(home)
    assert sorted(queries.run(store, run_id).name for run_id in run_ids) == ["first", "second"]
    numbers = store.rows("SELECT DISTINCT metric, step, value FROM scalars ORDER BY ALL")
    assert numbers == [
        *(("double", step, float(step)) for step in (10, 20, 30)),
        *(("loss", step, float(np.float32(1.0 / step))) for step in (10, 20, 30)),
    ]
    grid = queries.sample(store, run_ids[0], 1)
    assert grid is not None
    assert Image.open(io.BytesIO(grid.png)).size == (10, 12)  # four images of 5 × 6 pixels
    messages = store.rows("SELECT DISTINCT message FROM events WHERE kind = 'import'")
    assert messages == [("2 tags left out on import (neither numbers nor images: note, weights).",)]
    assert run(*words).stdout == "all of these runs are imported already.\n"


def test_folder_without_event_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"")
    sentence = refused(run("import", str(tmp_path), "--home", str(tmp_path / "home")))
    assert sentence.startswith(f"{tmp_path} holds no event files")


def test_event_files_are_read_and_written_without_tensorflow(tmp_path: Path, trained: Path) -> None:
    code = (
        "import sys; from gan_runtime.cli.app import app; app(sys.argv[1:], standalone_mode=False);"
        "print(sorted({'tensorflow', 'tensorboard', 'keras', 'jax'} & sys.modules.keys()))"
    )
    words = ["--to", str(tmp_path / "out"), "--format", "tensorboard", "--home", str(trained)]
    assert python(code, "export", "run-0001", *words).splitlines()[-1] == "[]"
    there = python(code, "import", str(tmp_path / "out"), "--home", str(tmp_path / "home"))
    assert there.splitlines()[-1] == "[]"
