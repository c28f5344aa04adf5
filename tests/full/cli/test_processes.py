"""Commands as processes: real training, jobs and a dashboard, and the effect of Ctrl-C."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import Result

from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading
from gan_runtime.data.contract import Availability
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.home import Home
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support import certificates, local_server
from tests.support.command_line import answer
from tests.support.stored_tables import contents
from tests.support.trained_home import SCALARS, STEPS_PER_EPOCH, TINY

ENDLESS = [*TINY, "--set", "epochs=10000"]


def read_until(
    process: subprocess.Popen[str], condition: Callable[[dict[str, Any]], bool]
) -> dict[str, Any]:
    """Returns the first progress line for which `condition` is true."""
    assert process.stdout is not None
    for line in process.stdout:
        if condition(snapshot := json.loads(line)):
            return dict(snapshot)
    raise AssertionError(f"it ended before: {process.communicate()[1]}")


def last_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Returns the last progress line."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    return dict(json.loads(lines[-1]))


def test_ctrl_c_saves_the_run_and_resume_continues(
    place: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    first = start("train", *ENDLESS, "--json")
    read_until(first, lambda snapshot: snapshot["epochs_done"] >= 1)
    first.send_signal(signal.SIGINT)
    stopped = last_line(first)
    assert (first.wait(), stopped["status"]) == (0, "stopped")
    assert re.fullmatch(
        r"stopped on request after step \d+ of 70,000; saved, can be resumed", stopped["note"]
    )
    assert list(Home(place).run_dir("run-0001").checkpoints.glob("*.safetensors"))

    second = start("resume", "run-0001", "--json")
    resumed = read_until(second, lambda snapshot: snapshot["step"] > stopped["step"])
    assert resumed["attempt"] == 2
    second.send_signal(signal.SIGTERM)
    assert (last_line(second)["status"], second.wait()) == ("stopped", 0)


def test_home_owner_trains_runs_requested_by_another_process(
    place: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    runtime = Runtime.open(Home(place))
    try:
        process = start("train", *TINY, "--set", "epochs=1", "--json")
        end = last_line(process)
        assert (process.wait(), end["status"], end["step"]) == (0, "finished", STEPS_PER_EPOCH)
        runtime.refresh()
        assert queries.run(runtime.store, "run-0001").status == "finished"
    finally:
        runtime.close()


@pytest.mark.usefixtures("known_host")
def test_failed_run_gives_exit_code_1_and_its_reason(
    command: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_idx: Callable[..., Path],
) -> None:
    path = write_idx(
        tmp_path / "data/mnist/train-images-idx3-ubyte", np.zeros((300, 28, 28), np.uint8)
    )
    path.write_bytes(path.read_bytes()[:-1])
    monkeypatch.setattr(
        loading, "availability", lambda *_: Availability(True, 300, "")
    )  # so that only the trainer finds out
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / "data"))
    result = command("train", *TINY, "--set", "dataset=mnist")
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"run run-0001 is failed: {path} is not a readable IDX image file")


@pytest.mark.usefixtures("known_host")
def test_run_fails_with_the_reason_if_its_data_cannot_be_downloaded(
    command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GAN_DATA_DIR", "KERAS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nothing listens on the discard port
    result = command("train", "--preset", "paper")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith(
        "run paper-0001 is failed: data set mnist was not prepared (failed): mnist is not on this"
        " machine, and Keras cannot download it"
    )


def test_generate_writes_an_image_and_rebuild_restores_its_job(
    command: Callable[..., Result], trained_copy: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "grid.png"
    words = ["generate", "run-0001", "--count", "20", "--seed", "5", "--checkpoint", "newest"]
    document = answer(command(*words, "--to", str(picture), "--json", home=trained_copy))
    expected = {
        "run_id": "run-0001",
        "count": 20,
        "seed": 5,
        "label": "",
        "checkpoint": "newest",
        "step": 14,
        "checkpoint_file": "step-00000014.safetensors",
        "warnings": [],
        "file": str(picture),
    }
    assert document | expected == document
    with Image.open(picture) as opened:
        assert (opened.mode, opened.size) == ("L", (8 * 30 - 2, 3 * 30 - 2))
        assert len(set(opened.tobytes())) > 20
    home = Home(trained_copy)
    _take_in_jobs_without_an_owner(home)
    before = contents(home)
    home.database.unlink()
    rows = answer(command("rebuild", "--json", home=trained_copy))["rows"]
    assert (rows["runs"], rows["scalars"]) == (1, SCALARS)
    assert contents(home) == before, "what a job has made is there again, too"


def test_generate_writes_a_strip_between_seeds_as_a_gif(
    command: Callable[..., Result], trained_copy: Path, tmp_path: Path
) -> None:
    strip = ["generate", "run-0001", "--layout", "strip", "--frames", "4"]
    seeds = ["--seeds", "3,17,5", "--truncation", "1.5"]
    film = tmp_path / "strip.gif"
    said = command(*strip, *seeds, "--to", str(film), home=trained_copy)
    assert said.exit_code == 0, said.output
    assert said.stdout == (
        f"{film} holds 8 images of run-0001, from its newest checkpoint (after step 14).\n"
    )
    with Image.open(film) as opened:
        assert (opened.format, opened.n_frames) == ("GIF", 12), "there and back; 17 twice in one"

    ends = tmp_path / "ends.npz"
    grid = ["generate", "run-0001", "--to", str(ends), "--json"]
    assert answer(command(*grid, *seeds, home=trained_copy))["count"] == 3
    whole = tmp_path / "strip.npz"
    assert command(*strip, *seeds, "--to", str(whole), home=trained_copy).exit_code == 0
    with np.load(ends) as alone, np.load(whole) as between:
        np.testing.assert_allclose(between["images"][[0, 3, 7]], alone["images"], atol=1e-5)


def _take_in_jobs_without_an_owner(home: Home) -> None:
    """`generate` works while the home has no owner; the next owner ingests its jobs."""
    store = Store(home.database)
    Ingestor(home, store).catch_up()
    store.close()


def test_ctrl_c_cancels_the_generate_job(
    trained_copy: Path, tmp_path: Path, wait_until: Callable[..., Any]
) -> None:
    existing = set((trained_copy / "jobs").glob("generate-*"))
    words = [
        "generate",
        "run-0001",
        "--to",
        str(tmp_path / "grid.png"),
        "--home",
        str(trained_copy),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "gan_runtime", *words], stderr=subprocess.PIPE, text=True
    )
    [path] = wait_until(
        lambda: set((trained_copy / "jobs").glob("generate-*")) - existing, "a job is asked for"
    )
    job = JobDir(path)
    wait_until(lambda: job.progress().sentence, "it has begun")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "cancelled: nothing was stored.\n"
    assert process.returncode == 1
    assert wait_until(job.end, "it is cancelled").state == "cancelled"
    assert list(tmp_path.iterdir()) == [trained_copy]


def test_serve_prints_its_url_and_answers_only_with_its_certificate(
    start: Callable[..., subprocess.Popen[str]], wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    port = local_server.free_port()
    certificate, key = certificates.make_certificate(tmp_path)
    options = ("--tls-cert", str(certificate), "--tls-key", str(key))
    process = start("serve", "--port", str(port), "--json", *options)
    assert process.stdout is not None
    where = json.loads(process.stdout.readline())
    assert where["url"] == f"https://127.0.0.1:{port}"
    health = where["url"] + "/_stcore/health"
    wait_until(lambda: local_server.answers(health, certificate), "the dashboard's health page")
    assert not local_server.answers(health), "nobody else vouches for this certificate"
    assert not local_server.answers(health.replace("https", "http")), "not in the clear"
    process.send_signal(signal.SIGINT)
    output, stderr = process.communicate()
    assert (output, process.returncode) == ("", 0)
    assert "Aborted" not in stderr
    assert "http" not in stderr  # no other address, and none that had to be looked up
