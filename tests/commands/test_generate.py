"""Generating images from a run: valid requests, and the errors of jobs that fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gan_runtime.base.errors import (
    CheckpointError,
    DatasetError,
    GanRuntimeError,
    SpecError,
    UnknownRunError,
)
from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.jobs import image_job, job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.jobs.image_job import ImageRequest
from gan_runtime.records import journal, run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from tests.support import own_pictures
from tests.support.asking import ask

NewRun = Callable[..., RunDir]
CONDITIONAL = {"workload": "dcgan", "batch_size_global": 32}


def with_checkpoint(run: RunDir, *steps: int) -> RunDir:
    """Saves valid checkpoints that fit no network."""
    for step in steps:
        arrays = {"weights": np.zeros(3, np.float32)}
        checkpoints.save(
            run.checkpoints, arrays, step, wall_s=1.0, retained=3, shortfall=step / 100
        )
    return run


def test_an_image_request_stores_its_run_class_and_checkpoint(
    home: Home, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "start", lambda _: None)  # only the request
    with_checkpoint(new_run("run-0001", **CONDITIONAL), 7, 14)
    assert image_job.checkpoints_of(home, "run-0001") == {"newest": 14, "best": 7}
    assert image_job.classes_of(home, "run-0001") == tuple("0123456789")
    job = ask(home).request_job("generate", ImageRequest("run-0001", 256, 2**32 - 1, "7", "best"))
    request = job.request()
    assert request is not None
    assert (job.job_id, request.asker) == ("generate-0001", "a test")
    assert request.options == {
        "run_id": "run-0001",
        "count": 256,
        "seed": 2**32 - 1,
        "label": "7",
        "checkpoint": "best",
        "epoch": None,
        "seeds": [],
        "layout": "grid",
        "frames": 8,
        "reach_deg": 90.0,
        "truncation": 0.0,
        "values": {},
        "upload": "",
    }


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("3", [3]), ("3, 17 ,40 - 42", [3, 17, 40, 41, 42]), ("7;7 0–1", [7, 7, 0, 1])],
)
def test_seeds_are_parsed_from_user_input(text: str, seeds: list[int]) -> None:
    assert image_job.seeds_of(text) == seeds


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "seeds is empty: use numbers such as 3, 17, 40-47."),
        ("three", "seeds has 'three': use numbers such as 3, 17, 40-47."),
        ("1-2-3", "seeds has '1-2-3': use numbers"),
        ("5-3", "seed is 3, but allowed is 5 to 4294967295: use a number in this range."),
        ("4294967296", "seed is 4294967296, but allowed is"),
        ("0-256", "the number of seeds is 257, but allowed is 1 to 256: use"),
        ("0-255, 7", "the number of seeds is 257, but allowed is 1 to 256: use"),
    ],
)
def test_invalid_seeds_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(SpecError) as refusal:
        image_job.seeds_of(text)
    assert sentence in str(refusal.value)


@pytest.mark.parametrize(
    ("image_request", "kind", "sentence"),
    [
        (
            ImageRequest("run-0001", 0),
            SpecError,
            "count is 0, but allowed is 1 to 256: use a number in this range.",
        ),
        (ImageRequest("run-0001", 257), SpecError, "count is 257, but allowed is 1 to 256: use"),
        (
            ImageRequest("run-0001", seed=-1),
            SpecError,
            "seed is -1, but allowed is 0 to 4294967295: use",
        ),
        (ImageRequest("run-0404"), UnknownRunError, "run 'run-0404' is not in "),
        (
            ImageRequest("run-0001", label="10"),
            DatasetError,
            "class '10' is unknown to this run: use 0, 1, 2, 3, 4, 5, 6, 7, 8, 9.",
        ),
        (
            ImageRequest("run-0002", label="7"),
            DatasetError,
            (
                "class '7' is unknown to this run: it was trained without labels, so leave out the"
                " class."
            ),
        ),
        (
            ImageRequest("run-0003"),
            CheckpointError,
            "run run-0003 has no checkpoint to generate from. Runs save one after each epoch; ",
        ),
        (
            ImageRequest("run-0002", checkpoint="best"),
            CheckpointError,
            "checkpoint is 'best', but run run-0002 has newest: use one of them.",
        ),
        (
            ImageRequest("run-0002", layout="strip", seeds=[1]),
            SpecError,
            "the number of seeds is 1, but allowed is 2 to 256: use",
        ),
        (
            ImageRequest("run-0002", layout="strip", seeds=[1, 2], frames=17),
            SpecError,
            "frames is 17, but allowed is 2 to 16: use",
        ),
        (
            ImageRequest("run-0001", seeds=[*range(30)]),
            SpecError,
            "the number of images is 300, but allowed is 1 to 256: use",
        ),
        (
            ImageRequest("run-0001", layout="strip", seeds=[*range(4)], frames=10),
            SpecError,
            "the number of images is 300, but allowed is 1 to 256: use",
        ),
        (
            ImageRequest("run-0002", layout="plane", seeds=[1, 2], frames=5),
            SpecError,
            "the number of seeds is 2, but allowed is 3 to 3: use",
        ),
        (
            ImageRequest("run-0001", layout="plane", seeds=[1, 2, 3], frames=5),
            SpecError,
            "a plane shows one class: use one of 0, 1, 2, ",
        ),
        (
            ImageRequest("run-0002", truncation=0.01),
            SpecError,
            "truncation is 0.01, but allowed is 0.05 to 5: use",
        ),
        (
            ImageRequest("run-0002", values={"energy": 100.0}),
            SpecError,
            "'energy' is not a number that this run's networks read: use none.",
        ),
        (
            ImageRequest("run-0002", upload="0123"),
            SpecError,
            "this run's networks change no images: leave out the upload.",
        ),
        (ImageRequest("run-0004"), SpecError, "workload is 'of-tomorrow', but allowed is "),
        (ImageRequest("run-0005"), DatasetError, "there is no data set 'gone', only digits, "),
    ],
)
def test_impossible_image_requests_are_refused_without_a_job(
    home: Home,
    new_run: NewRun,
    image_request: ImageRequest,
    kind: type[GanRuntimeError],
    sentence: str,
) -> None:
    with_checkpoint(new_run("run-0001", **CONDITIONAL), 7)
    checkpoints.save(
        new_run("run-0002", workload="mlp_gan").checkpoints, {}, 7, wall_s=1.0, retained=1
    )
    new_run("run-0003")
    of_tomorrow = with_checkpoint(new_run("run-0004"), 7)
    of_tomorrow.spec_path.write_text(json.dumps({"workload": "of-tomorrow"}), encoding="utf-8")
    with_checkpoint(new_run("run-0005", **CONDITIONAL, dataset="gone"), 7)
    with pytest.raises(kind) as refusal:
        ask(home).request_job("generate", image_request)
    assert sentence in str(refusal.value)
    assert job_queue.job_dirs(home) == []


def test_generating_from_a_changed_data_set_is_refused(home: Home, new_run: NewRun) -> None:
    source = home.path / "photos.zip"
    source.write_bytes(own_pictures.noise(4))
    form = {"pixels": "28", "color": "gray"}
    preparations.prepare(
        home, PreparationRequest("pictures", "photos", source, form), lambda *_: None
    )
    run = with_checkpoint(new_run("run-0001", **CONDITIONAL, dataset="photos"), 7)
    host = journal.HostFacts(facts={run_folder.DATA_FACT: "a" * 64})
    journal.append(run.trainer_journal(), 1, host)
    with pytest.raises(
        DatasetError, match="run run-0001 was trained on another content of data set photos"
    ):
        ask(home).request_job("generate", ImageRequest("run-0001"))
    assert job_queue.job_dirs(home) == []


def test_a_checkpoint_of_other_networks_fails_naming_the_difference(
    home: Home, new_run: NewRun, wait_until: Callable[..., Any]
) -> None:
    """Such as those of an older version, or of a data set prepared again with other classes."""
    with_checkpoint(
        new_run("run-0001", workload="mlp_gan", batch_size_global=32, precision="float32"), 7
    )
    job = ask(home).request_job("generate", ImageRequest("run-0001"))
    wait_until(job.end, "the job ends")
    assert reason(job).startswith(
        "the checkpoint does not fit this run's networks and optimizers (differs in "
    )
    assert not job.results.exists()
    look = image_job.newest_images(home, "run-0001")
    assert look is not None
    assert (look.job, look.state) == (job, "failed")
    assert image_job.newest_images(home, "run-0002") is None


def reason(job: JobDir) -> str:
    """Why a job failed."""
    end = job.end()
    assert end is not None
    return end.reason
