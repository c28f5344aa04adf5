"""The export of a generator: refusals before a job starts, and the stored run in the model card."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.base.errors import CheckpointError, ExportError, JobError
from gan_runtime.base.fields import IMAGES, LABELS, SOURCE, TARGET, Field, labels, pictures
from gan_runtime.bundles import generator_export
from gan_runtime.bundles.generator_export import (
    CONVERTERS,
    EXPORT,
    ArrayShape,
    ExportedGenerator,
    ExportRequest,
)
from gan_runtime.jobs import job_queue
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.support.measured_images import answer

LATENTS = ArrayShape("latents", "float32", (100,))
DIGITS = ArrayShape("images", "float32", (28, 28, 1))
NewRun = Callable[..., RunDir]


@pytest.fixture
def run(new_run: NewRun) -> RunDir:
    """A run of two epochs of ten steps on two replicas, with a checkpoint without networks."""
    run = new_run("quick-0001", epochs=2, batch_size_global=32, replicas=2, label_smoothing=0.1)
    facts = {"cpu_model": "A processor", "cores": 8, "memory_bytes": 16e9, "hostname": "secret"}
    devices = {"devices": [f"/job:localhost/replica:0/task:0/device:CPU:{n}" for n in range(2)]}
    journal.append(
        run.trainer_journal(),
        1,
        journal.HostFacts(facts={**facts, **devices, "keras": "3.15.1"}),
        *(
            journal.Scalars(
                epoch=epoch,
                first_step=10 * epoch - 9,
                wall_s=[10.0 * epoch - 9 + step for step in range(10)],
                values={"loss_generator": [0.5] * 10},
            )
            for epoch in (1, 2)
        ),
    )
    checkpoints.save(run.checkpoints, {"weights": np.zeros(3)}, 20, wall_s=20.0, retained=2)
    return run


def generator(run: RunDir, step: int = 20) -> ExportedGenerator:
    return ExportedGenerator(
        spec=run.spec(),
        checkpoint="newest checkpoint",
        step=step,
        epoch=step // 10,
        rows=1_797,
        parameters=2_330_944,
        fields={IMAGES: pictures(28, 28, 1)},
        inputs=(LATENTS,),
        outputs=(DIGITS,),
        opset=17,
    )


# ---- refusals ------------------------------------------------------------------------------------


def refusal(home: Home, request: ExportRequest) -> str:
    with pytest.raises((CheckpointError, ExportError)) as refused:
        job_queue.request(home, EXPORT, request, "a test")
    assert job_queue.snapshots(home) == []
    return str(refused.value)


def test_export_refuses_a_run_without_a_checkpoint(home: Home, new_run: NewRun) -> None:
    new_run("quick-0002")
    assert refusal(home, ExportRequest("quick-0002")) == (
        "run quick-0002 has no checkpoint to export. Runs save one after each epoch; bundles"
        " contain none. Choose another run."
    )


def test_export_refuses_an_epoch_without_stored_weights(home: Home, run: RunDir) -> None:
    assert refusal(home, ExportRequest(run.run_id, epoch=1)).startswith("epoch is 1, but run")
    assert refusal(home, ExportRequest(run.run_id, "best")).startswith(
        "checkpoint is 'best', but run quick-0001 has newest"
    )


@pytest.mark.parametrize("package", CONVERTERS)
def test_export_names_the_missing_package_and_its_fix(
    home: Home, run: RunDir, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else found(name)
    )
    assert refusal(home, ExportRequest(run.run_id)) == (
        f"ONNX files need the package {package}, which is not installed: run `make setup`, or"
        f" install the {package} of requirements.txt."
    )


def test_an_export_already_in_progress_is_refused(
    home: Home, run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "start", lambda _job: None)
    job_queue.request(home, EXPORT, ExportRequest(run.run_id), "a test")
    with pytest.raises(JobError, match="the generator of run quick-0001 is being exported already"):
        job_queue.request(home, EXPORT, ExportRequest(run.run_id), "a test")
    newest = generator_export.newest_export(home, run.run_id)
    assert newest is not None
    assert newest.request.options == {
        "run_id": "quick-0001",
        "checkpoint": "newest",
        "epoch": None,
    }


# ---- texts ---------------------------------------------------------------------------------------


def test_model_card_shows_the_stored_facts_of_the_run(home: Home, run: RunDir) -> None:
    card = generator_export.card(generator(run), run, home)
    for line in (
        "| Model | DCGAN (paper, Table 1): generator with 2,330,944 weights |",
        "| Checkpoint | newest checkpoint, epoch 2, step 20; trained weights |",
        "| 1,797 | CC BY 4.0 |",
        "| Processor | A processor |",
        "| Devices | CPU:0, CPU:1 |",
        "| Software | Keras 3.15.1 |",
        "Training up to this step: 20 s on 2 devices, 40.0 device seconds.",
        "| Replicas | 2 | `replicas` |",
    ):
        assert line in card
    assert "secret" not in card


def test_model_card_counts_training_time_up_to_the_exported_step(home: Home, run: RunDir) -> None:
    assert "10 s on 2 devices, 20.0 device" in generator_export.card(generator(run, 10), run, home)


def test_model_card_shows_scores_of_the_exported_weights_only(home: Home, run: RunDir) -> None:
    assert "Not measured: no evaluation" in generator_export.card(generator(run), run, home)
    journal.append(run.evaluations_journal, 1, answer(2, warning="Beware."), answer(1, fcd=8.0))
    card = generator_export.card(generator(run), run, home)
    assert "| 4 | 3 | 5 | 1 | 90 |" in card
    assert "| 8 | 7 | 9 |" not in card
    assert "Quality of images (samples 898, reference training images, seed 0," in card
    assert "Beware." in card
    assert "Not measured" not in card
    second = answer(2, fcd=6.0)
    by_other = {**second.facts, "features": "imagenet", "warning": ""}
    journal.append(run.evaluations_journal, 1, second.model_copy(update={"facts": by_other}))
    card = generator_export.card(generator(run), run, home)
    assert "| 4 | 3 | 5 | 1 | 90 |" in card, "one table for each network that read the images"
    assert "| 6 | 5 | 7 | 1 | 90 |" in card


def test_readme_explains_each_array(run: RunDir) -> None:
    fields = {
        **{IMAGES: pictures(28, 28, 1), LABELS: labels(("cat", "dog"))},
        "energy": Field((), dtype="float32", unit="100 GeV"),
    }
    inputs = (
        LATENTS,
        ArrayShape("labels", "int32", ()),
        ArrayShape("energy", "float32", ()),
        ArrayShape("jitter", "float32", (3,)),
    )
    shown = ArrayShape("class_images", "float32", (28, 28, 1))
    text = generator_export.readme(
        replace(generator(run), fields=fields, inputs=inputs, outputs=(shown,)), "quick-0001"
    )
    for line in (
        "| input | `latents` | float32 (rows, 100) | standard normal numbers |",
        "| input | `labels` | int32 (rows) | class, 0: cat, 1: dog |",
        "| input | `energy` | float32 (rows) | in 100 GeV |",
        "| input | `jitter` | float32 (rows, 3) | drawn at random |",
        "| output | `class_images` | float32 (rows, 28, 28, 1) | a byte is (value + 1) × 127.5 |",
    ):
        assert line in text


def test_readme_gives_free_sizes_as_multiples_of_the_tile(new_run: NewRun) -> None:
    run = new_run("quick-0002", workload="pix2pix", dataset="karman_small", tile=32)
    flow = Field((40, 96, 3), dtype="float16")
    frames = replace(
        generator(run),
        fields={SOURCE: replace(flow, shape=(40, 96, 4)), TARGET: flow},
        inputs=(ArrayShape("source", "float32", (None, None, 4)),),
        outputs=(ArrayShape("generated", "float32", (None, None, 3)),),
    )
    text = generator_export.readme(frames, "quick-0002")
    assert "float32 (rows, any, any, 4) | no unit; sides are multiples of 32 |" in text
    assert "float32 (rows, any, any, 3) | no unit; sides are multiples of 32 |" in text


def test_export_omits_the_tpu_address(home: Home, run: RunDir, tmp_path: Path) -> None:
    spec = run.spec().model_copy(update={"tpu_address": "grpc://10.0.0.1:8470"})
    folder = tmp_path / "exported"
    folder.mkdir()
    generator_export.write(folder, replace(generator(run), spec=spec), run, home)
    texts = [path.read_text(encoding="utf-8") for path in folder.iterdir()]
    assert len(texts) == 3
    assert not [text for text in texts if "10.0.0.1" in text]


def test_the_names_of_many_classes_are_in_a_file(home: Home, run: RunDir, tmp_path: Path) -> None:
    names = tuple(f"größe {number}" for number in range(23))
    fields = {IMAGES: pictures(28, 28, 1), LABELS: labels(names)}
    inputs = (LATENTS, ArrayShape("labels", "int32", ()))
    generator_export.write(
        tmp_path, replace(generator(run), fields=fields, inputs=inputs), run, home
    )
    assert json.loads((tmp_path / "classes.json").read_text(encoding="utf-8")) == {
        "labels": list(names)
    }
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "18: größe 18, 19: größe 19, … (all 23 in classes.json) |" in readme
