"""The command line: real runs in real processes, and every wrong input as exit code 2 with one sentence and no trace."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from gan_runtime import hosts
from gan_runtime.cli import serving, tables, training
from gan_runtime.cli.app import app
from gan_runtime.cli.follow import Follower
from gan_runtime.data import loading
from gan_runtime.data.contract import Availability
from gan_runtime.errors import HomeError, HomeInUseError
from gan_runtime.home import HOME_VARIABLE, REPOSITORY, Home
from gan_runtime.hosts import Host
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records import journal
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import owner
from gan_runtime.runtime.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS
from gan_runtime.store import export, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support import certificates, local_server
from tests.support.commands_in_processes import starting

TINY = ["--set", "workload=mlp_gan", "--set", "batch_size_global=256", "--set", "precision=float32"]
STEPS_PER_EPOCH = 7  # 1,797 digits in batches of 256
SCALARS = 2 * STEPS_PER_EPOCH * 6 + 2 * 10  # two epochs: 6 numbers each step, 10 at the end of each epoch
ENDLESS = [*TINY, "--set", "epochs=10000"]

WRONG = {
    "name": "a/b",
    "profile_steps": "101",
    "count_kernels": "maybe",
    "weight_snapshots": "maybe",
    "workload": "dcgan_mnits",
    "dataset": "ci/far",
    "engine": "torch",
    "accelerator": "cuda",
    "replicas": "0",
    "tpu_address": "a b",
    "precision": "float16",
    "xla": "on",
    "loop": "estimator",
    "batch_size_global": "65537",
    "epochs": "-1",
    "steps_per_loop": "2.5",
    "learning_rate_generator": "0",
    "learning_rate_discriminator": "fast",
    "seed": "one",
    "workers": "0",
    "all_reduce_pack_mb": "-1",
    "optimizer": "adamw",
    "adam_beta_1": "1",
    "adam_beta_2": "1",
    "rmsprop_epsilon": "beside",
    "momentum": "1",
    "learning_rate_schedule": "cosine",
    "restart_epochs": "0",
    "warmup_epochs": "-1",
    "learning_rate_scaling": "square",
    "reference_batch": "0",
    "clip_norm": "-1",
    "generator_loss": "wgan",
    "updates": "alternating",
    "discriminator_steps": "0",
    "label_smoothing": "0.6",
    "r1_weight": "-1",
    "ema_decay": "1",
    "samples_from": "average",
    "batch_norm": "none",
    "all_reduce_type": "float16",
    "accumulation_steps": "0",
    "sync_every_steps": "0",
    "alarm_action": "ignore",
    "collapse_share": "1",
    "d_wins_score": "0.5",
    "keep_checkpoints": "0",
    "pictures_every": "0",
    "still_action": "roll_back",
    "resume_lost": "maybe",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home that does not exist yet."""
    return tmp_path / "new" / "home"


@pytest.fixture
def command(place: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs a command in this process, in `place` unless told otherwise."""
    monkeypatch.delattr(
        os, "execve"
    )  # a `serve` that is not refused would put Streamlit in the place of the tests
    return lambda *words, home=place, typed=None: CliRunner().invoke(
        app, [*words, "--home", str(home)], input=typed
    )


@pytest.fixture
def known_host(monkeypatch: pytest.MonkeyPatch, host: Host) -> None:
    """Spares the seconds in which a child process looks at the real host."""
    monkeypatch.setattr(hosts, "probe", lambda: host)


@pytest.fixture
def start(place: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts commands as processes; none of them, and no trainer, outlives the test."""
    with starting(place) as begin:
        yield begin


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a process has trained run-0001 for two epochs, alone and to its end."""
    path = tmp_path_factory.mktemp("trained")
    words = ["train", *TINY, "--set", "epochs=2", "--set", "profile_steps=2", "--json", "--home", str(path)]
    child = subprocess.run(
        [sys.executable, "-m", "gan_runtime", *words], capture_output=True, text=True, check=False
    )
    assert (child.returncode, child.stderr) == (0, "")
    (path / "train.jsonl").write_text(child.stdout, encoding="utf-8")
    return path


def refused(result: Result) -> str:
    """The one sentence of a command that was refused."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    sentence = result.stderr.strip()
    assert re.search(r"[.?]$", sentence), sentence
    outside_of_brackets = re.sub(r"\([^)]*\)", "", sentence)
    assert "\n" not in sentence, sentence
    assert not re.search(r"[.?!] +[A-Z]", outside_of_brackets), sentence
    return sentence


def answer(result: Result) -> Any:
    """The JSON document that a command printed."""
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def read_until(process: subprocess.Popen[str], condition: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first progress line for which `condition` holds."""
    assert process.stdout is not None
    for line in process.stdout:
        if condition(snapshot := json.loads(line)):
            return dict(snapshot)
    raise AssertionError(f"it ended before: {process.communicate()[1]}")


def last_line(process: subprocess.Popen[str]) -> dict[str, Any]:
    """How the followed run ended."""
    assert process.stdout is not None
    lines = process.stdout.read().splitlines()
    return dict(json.loads(lines[-1]))


# ---- a run from beginning to end --------------------------------------------------------------------------------------


def test_train_prints_a_json_line_per_state_and_epoch(trained: Path) -> None:
    lines = [json.loads(line) for line in (trained / "train.jsonl").read_text().splitlines()]
    statuses = [line["status"] for line in lines]
    assert list(dict.fromkeys(statuses)) == ["queued", "starting", "compiling", "running", "finished"]
    end = lines[-1]
    assert (end["run_id"], end["epochs_done"], end["step"], end["last_step"]) == ("run-0001", 2, 14, 14)
    assert set(end["metrics"]) >= {
        "loss_generator",
        "loss_discriminator",
        "d_real",
        "d_fake",
        "learning_rate_generator",
    }


def test_a_state_that_came_and_went_between_two_looks_is_told(trained: Path) -> None:
    home = Home(trained)
    follower = Follower(home, home.run_dir("run-0001"))
    now = follower.now()
    compiling = replace(now, row=replace(now.row, status="compiling"), progress=replace(now.progress, step=0))
    running, finished = follower.since(compiling)
    assert (running.row.status, running.epochs_done) == ("running", 0)
    assert finished == now
    assert follower.since(now) == [now]


def test_everything_is_in_the_file_when_train_ends(trained: Path) -> None:
    store = Store(trained / "results.duckdb")
    try:
        assert store.rows("SELECT status FROM runs") == [("finished",)]
        assert store.rows("SELECT count(*) FROM scalars WHERE metric = 'loss_generator'") == [(14,)]
    finally:
        store.close()


def test_runs_lists_it(command: Callable[..., Result], trained: Path) -> None:
    (run,) = answer(command("runs", "--json", home=trained))
    assert (run["run_id"], run["status"], run["epochs_done"]) == ("run-0001", "finished", 2)
    table = command("runs", home=trained).stdout
    assert re.search(r"run-0001 +finished +mlp_gan +digits +1 × cpu +256 +2/2", table)


def test_show_tells_everything_of_it(command: Callable[..., Result], trained: Path) -> None:
    shown = answer(command("show", "run-0001", "--json", home=trained))
    assert RunSpec.parse(shown["spec"]).epochs == 2
    assert (shown["run"]["note"], shown["progress"]["step"]) == ("all 2 epochs done", 14)
    assert {"build", "trace", "first_call", "probe"} <= set(shown["phases"])
    assert [event["kind"] for event in shown["events"]][-1] == "finished"
    assert {"steady_step", "step_p05", "step_p95", "step_max"} <= set(shown["phases"])
    assert shown["memory"]["process_bytes"] > 100e6
    assert sum(row["share"] for row in shown["profile"]) == pytest.approx(1.0)
    text = command("show", "run-0001", home=trained).stdout
    assert "all 2 epochs done" in text
    assert "time of a step (2 profiled)" in text


def test_sql_answers_while_another_process_holds_the_file(
    command: Callable[..., Result], trained: Path
) -> None:
    lock = owner.acquire(Home(trained))
    try:
        found = answer(
            command(
                "sql",
                "SELECT metric, count(*) AS steps FROM scalars GROUP BY 1 ORDER BY 1",
                "--json",
                home=trained,
            )
        )
    finally:
        lock.release()
    assert {"metric": "d_fake", "steps": 14} in found
    assert {"metric": "d_accuracy_fake", "steps": 2} in found  # one each epoch


def test_sql_keeps_null_apart_from_numbers_that_are_not_finite(
    command: Callable[..., Result], trained: Path
) -> None:
    statement = "SELECT NULL AS nothing, 'nan'::DOUBLE AS nan, '-inf'::DOUBLE AS low, 1 AS one"
    found = answer(command("sql", statement, "--json", home=trained))
    assert found == [{"nothing": None, "nan": "NaN", "low": "-Infinity", "one": 1}]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_export_writes_tables_pictures_and_specs(
    command: Callable[..., Result], trained: Path, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "out"
    files = answer(
        command("export", "run-0001", "--to", str(folder), "--format", form, "--json", home=trained)
    )["files"]
    assert {folder / name for name in files} == {path for path in folder.rglob("*") if path.is_file()}
    assert {f"{view}.{form}" for view in export.VIEWS} <= set(files)
    scalars = (
        pd.read_csv(folder / "scalars.csv") if form == "csv" else pd.read_parquet(folder / "scalars.parquet")
    )
    assert (len(scalars), scalars["step"].max()) == (SCALARS, 14)
    assert (folder / "samples/run-0001/samples-00002.png").read_bytes().startswith(b"\x89PNG")
    assert RunSpec.read(folder / "specs/run-0001/spec.json") == Home(trained).run_dir("run-0001").spec()


def test_generate_writes_a_picture_and_replaces_no_file_unasked(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "grid.png"
    words = ["generate", "run-0001", "--count", "20", "--seed", "5", "--checkpoint", "best"]
    made = answer(command(*words, "--out", str(picture), "--json", home=trained))
    assert made.pop("step") in (7, 14)
    assert made == {
        "run_id": "run-0001",
        "count": 20,
        "seed": 5,
        "label": "",
        "checkpoint": "best",
        "checkpoint_file": "best.safetensors",
        "warnings": [],
        "file": str(picture),
    }
    with Image.open(picture) as opened:
        assert (opened.mode, opened.size) == ("L", (8 * 30 - 2, 3 * 30 - 2))
        assert len(set(opened.tobytes())) > 20
    kept = picture.read_bytes()
    for out, sentence in {
        picture: f"{picture} exists already: choose another place, or give --overwrite.",
        tmp_path / "grid.gif": f"{tmp_path}/grid.gif does not end in .png or .npz: choose another name.",
        tmp_path
        / "no"
        / "grid.npz": f"{tmp_path}/no/grid.npz cannot be written (No such file or directory): choose another place.",
    }.items():
        assert refused(command(*words, "--out", str(out), home=trained)) == sentence
    assert len(list((trained / "jobs").glob("generate-*"))) == 1, "what is refused is not asked for"
    assert picture.read_bytes() == kept


def test_ctrl_c_cancels_the_job_that_generates(
    trained: Path, tmp_path: Path, wait_until: Callable[..., Any]
) -> None:
    known = set((trained / "jobs").glob("generate-*"))
    words = ["generate", "run-0001", "--out", str(tmp_path / "grid.png"), "--home", str(trained)]
    process = subprocess.Popen(
        [sys.executable, "-m", "gan_runtime", *words], stderr=subprocess.PIPE, text=True
    )
    [path] = wait_until(lambda: set((trained / "jobs").glob("generate-*")) - known, "a job is asked for")
    job = JobDir(path)
    wait_until(lambda: job.progress().sentence, "it has begun")
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=60)[1] == "cancelled: nothing of it was kept.\n"
    assert process.returncode == 1
    assert wait_until(job.end, "it is cancelled").state == "cancelled"
    assert list(tmp_path.iterdir()) == []


def test_rebuild_gives_the_same_rows(command: Callable[..., Result], trained: Path) -> None:
    _take_in_jobs_without_an_owner(trained)
    before = _table_contents(trained)
    (trained / "results.duckdb").unlink()
    rows = answer(command("rebuild", "--json", home=trained))["rows"]
    assert (rows["runs"], rows["scalars"], rows["epochs"], rows["samples"]) == (1, SCALARS, 2, 2)
    assert _table_contents(trained) == before


def test_rebuild_does_not_take_in_the_log_of_a_lost_file(
    command: Callable[..., Result], trained: Path
) -> None:
    _take_in_jobs_without_an_owner(trained)
    file = trained / "results.duckdb"
    before = _table_contents(trained)
    file.unlink()
    killed = f"import duckdb, os; c = duckdb.connect({str(file)!r}); c.execute('CREATE TABLE stray (x INT)'); os._exit(0)"
    subprocess.run([sys.executable, "-c", killed], check=True)
    file.unlink()
    assert (trained / "results.duckdb.wal").exists()
    answer(command("rebuild", "--json", home=trained))
    assert _table_contents(trained) == before


def test_rebuild_keeps_a_damaged_file_aside(command: Callable[..., Result], trained: Path) -> None:
    _take_in_jobs_without_an_owner(trained)
    before = _table_contents(trained)
    (trained / "results.duckdb").write_bytes(b"not a database" * 1000)
    (trained / "results.duckdb.wal").write_bytes(b"its log")
    damaged = Path(answer(command("rebuild", "--json", home=trained))["damaged"])
    assert damaged.read_bytes().startswith(b"not a database")
    assert damaged.with_name(f"{damaged.name}.wal").read_bytes() == b"its log"
    assert _table_contents(trained) == before
    assert not list(trained.glob("results.duckdb.new-*"))


def test_rebuild_is_refused_while_the_home_is_in_use(command: Callable[..., Result], trained: Path) -> None:
    before = (trained / "results.duckdb").read_bytes()
    lock = owner.acquire(Home(trained))
    try:
        assert f"is in use by process {os.getpid()}" in refused(command("rebuild", home=trained))
    finally:
        lock.release()
    assert (trained / "results.duckdb").read_bytes() == before


def test_an_ended_run_is_neither_stopped_nor_resumed(command: Callable[..., Result], trained: Path) -> None:
    assert refused(command("stop", "run-0001", home=trained)).startswith("run run-0001 is finished already")
    assert "only a stopped, failed or lost run can be resumed" in refused(
        command("resume", "run-0001", home=trained)
    )


def _take_in_jobs_without_an_owner(home: Path) -> None:
    """`generate` works while nobody owns the home: its jobs are taken in by the next owner."""
    store = Store(home / "results.duckdb")
    Ingestor(Home(home), store).catch_up()
    store.close()


def _table_contents(home: Path) -> dict[str, set[str]]:
    store = Store(home / "results.duckdb")
    try:
        return {
            view: {repr(row) for row in store.rows(f"SELECT * FROM {view}")}
            for view in ("samples", *export.VIEWS)
        }
    finally:
        store.close()


# ---- stop, resume, and homes that others own --------------------------------------------------------------------------


def test_ctrl_c_saves_the_run_and_resume_goes_on(
    place: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    first = start("train", *ENDLESS, "--json")
    read_until(first, lambda snapshot: snapshot["epochs_done"] >= 1)
    first.send_signal(signal.SIGINT)
    stopped = last_line(first)
    assert (first.wait(), stopped["status"]) == (0, "stopped")
    assert re.fullmatch(r"stopped on request after step \d+ of 70000; saved, can be resumed", stopped["note"])
    assert list(Home(place).run_dir("run-0001").checkpoints.glob("*.safetensors"))

    second = start("resume", "run-0001", "--json")
    resumed = read_until(second, lambda snapshot: snapshot["step"] > stopped["step"])
    assert resumed["attempt"] == 2
    second.send_signal(signal.SIGTERM)
    assert (last_line(second)["status"], second.wait()) == ("stopped", 0)


def test_the_owner_of_the_home_trains_what_another_process_asks_for(
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
def test_train_takes_over_when_the_owner_goes_before_the_run_has_started(
    place: Path,
    command: Callable[..., Result],
    wait_until: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "ORPHANED_SECONDS", 0.5)
    home = Home(place).prepare()
    lock = owner.acquire(home)

    def go() -> None:
        wait_until(home.run_dirs, "the queued run")
        lock.release()

    goes = threading.Thread(target=go)
    goes.start()
    result = command("train", *TINY, "--set", "epochs=1")
    goes.join()
    assert (result.exit_code, result.stdout) == (0, "run run-0001 is finished: its one epoch is done\n")


@pytest.mark.usefixtures("known_host")
def test_a_run_that_fails_gives_exit_code_1_and_its_reason(
    command: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    write_idx: Callable[..., Path],
) -> None:
    path = write_idx(tmp_path / "data/mnist/train-images-idx3-ubyte", np.zeros((300, 28, 28), np.uint8))
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
def test_a_detached_run_waits_and_train_says_so(place: Path, command: Callable[..., Result]) -> None:
    result = command("train", "--preset", "quick", "--detach")
    assert result.exit_code == 0
    assert "the run waits until a dashboard or another `train` is started" in result.stdout
    (run,) = answer(command("runs", "--json"))
    assert (run["run_id"], run["status"]) == ("quick-0001", "queued")
    assert not (place / "results.duckdb").exists()
    assert answer(command("stop", "quick-0001", "--json"))["stop_requested"]
    assert Home(place).run_dir("quick-0001").stop_file.exists()


# ---- what is read, and from where -------------------------------------------------------------------------------------


def test_devices_names_what_is_missing_and_why(known_host: None, command: Callable[..., Result]) -> None:  # noqa: ARG001
    found = answer(command("devices", "--json"))["devices"]
    assert (found["cpu"]["count"], found["gpu"]["available"]) == (8, False)
    assert "this host has no TPU." in command("devices").stdout


def test_the_command_line_loads_no_framework_and_no_streamlit() -> None:
    code = "import sys, gan_runtime.cli.app; print(sorted({'tensorflow', 'keras', 'sklearn', 'streamlit'} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )


def test_the_home_comes_from_the_environment_if_none_is_given(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(trained))
    assert [run["run_id"] for run in answer(CliRunner().invoke(app, ["runs", "--json"]))] == ["run-0001"]


def test_a_run_that_cannot_be_read_is_named_and_left_out(place: Path, command: Callable[..., Result]) -> None:
    bad = place / "runs" / "quick-0001"
    bad.mkdir(parents=True)
    (bad / "journal-supervisor.jsonl").write_text('{"kind": "created"}\n')
    (place / "runs" / "\x1b[31mred").mkdir()
    for words in (["runs"], ["runs", "--json"]):
        told = command(*words).stderr.splitlines()
        assert (
            told[0]
            == "\\x1b[31mred is no run that can be read, and is left out: its folder has a name that no run can have."
        )
        assert told[1].startswith(
            "quick-0001 is no run that can be read, and is left out: the first line of journal-supervisor"
        )
        assert len(told) == 2
    assert answer(command("sql", "SELECT run_id FROM set_aside ORDER BY ALL", "--json"))[1] == {
        "run_id": "quick-0001"
    }
    for words in (["show"], ["stop"], ["resume"], ["export", "--to", str(place / "out")]):
        refused = command(*words, "quick-0001")
        assert (refused.exit_code, len(refused.stderr.splitlines())) == (2, 1), refused.output
        assert "quick-0001 cannot be read: " in refused.stderr


def test_reading_an_unknown_home_makes_nothing(place: Path, command: Callable[..., Result]) -> None:
    assert command("runs").stdout.startswith("no runs yet")
    assert answer(command("runs", "--json")) == []
    assert answer(command("sql", "SELECT count(*) AS runs FROM runs", "--json")) == [{"runs": 0}]
    assert "there is no such folder" in refused(command("show", "run-0001"))
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_set_wins_over_the_spec_file_and_the_file_over_the_preset(
    place: Path, command: Callable[..., Result], tmp_path: Path
) -> None:
    file = tmp_path / "spec.json"
    file.write_text('{"epochs": 4, "seed": 5}', encoding="utf-8")
    command("train", "--preset", "quick", "--spec", str(file), "--set", "seed=6", "--detach")
    spec = Home(place).run_dir("quick-0001").spec()
    assert (spec.batch_size_global, spec.epochs, spec.seed) == (
        PRESETS["quick"].values["batch_size_global"],
        4,
        6,
    )


# ---- the dashboard's door ---------------------------------------------------------------------------------------------


def test_serve_prints_its_address_and_answers_there_with_its_certificate(
    start: Callable[..., subprocess.Popen[str]], wait_until: Callable[..., Any], tmp_path: Path
) -> None:
    port = local_server.free_port()
    certificate, key = certificates.made(tmp_path)
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
    left, told = process.communicate()
    assert (left, process.returncode) == ("", 0)
    assert "Aborted" not in told
    assert "http" not in told  # no other address, and none that had to be asked for


def test_serve_ends_where_the_secrets_file_cannot_be_understood(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a slip in it nobody would have to sign in, and everyone on this machine would be an operator."""
    file = tmp_path / "secrets.toml"
    file.write_text('[operators]\npasword = "$argon2id$"', encoding="utf-8")
    monkeypatch.setenv("STREAMLIT_SECRETS_FILES", str(file))
    process = start("serve", "--port", str(local_server.free_port()), "--json")
    told = process.communicate()[1]
    assert process.returncode == 2
    assert "operators.pasword is not understood: allowed are emails, subjects and password." in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("address", "opened", "warned"),
    [
        ("127.0.0.1", "http://127.0.0.1:8501", False),
        ("::1", "http://[::1]:8501", False),
        ("localhost", "http://localhost:8501", False),
        ("0.0.0.0", "http://127.0.0.1:8501", True),
        ("::", "http://127.0.0.1:8501", True),
        ("192.168.1.5", "http://192.168.1.5:8501", True),
    ],
)
def test_serve_names_what_to_open_and_warns_of_others(address: str, opened: str, warned: bool) -> None:
    assert serving.Place(address, 8501).url == opened
    assert (
        serving.danger(serving.Place(address, 8501)).startswith("Everyone who reaches this machine") == warned
    )


def test_serve_says_who_else_will_see_the_pages(
    command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "become_dashboard", lambda *_, **__: None)
    result = command("serve", "--address", "0.0.0.0", "--port", str(port := local_server.free_port()))
    assert result.stdout == f"The dashboard is at http://127.0.0.1:{port}\n"
    assert (
        f"at http://{platform.node()}:{port} or another name of this machine can look at all runs. Pages change nothing until sign-in is set up"
        in result.stderr
    )


def test_serve_refuses_a_certificate_without_its_key(command: Callable[..., Result], tmp_path: Path) -> None:
    certificate, _ = certificates.made(tmp_path)
    (tmp_path / "other").mkdir()
    _, other = certificates.made(tmp_path / "other")
    assert "needs its key" in refused(command("serve", "--tls-cert", str(certificate)))
    for key in (other, tmp_path / "none.pem", tmp_path):
        sentence = refused(command("serve", "--tls-cert", str(certificate), "--tls-key", str(key)))
        assert sentence.startswith(f"certificate {certificate} with key {key} cannot be used (")


def test_the_operator_password_is_printed_as_a_hash_only(command: Callable[..., Result]) -> None:
    asked = command("operator-password", typed="correct horse battery\ncorrect horse battery\n")
    assert asked.stdout.strip().startswith('[operators]\npassword = "$argon2id$')
    assert "correct horse" not in asked.stdout + asked.stderr
    short = command("operator-password", typed="short\nshort\n")
    # Without a terminal the end of each question is on stdout, which is nothing that a person or a script would see.
    assert (short.exit_code, short.stdout.strip()) == (2, "")
    assert "has 5 characters" in short.stderr


def test_serve_refuses_a_port_in_use(place: Path, command: Callable[..., Result]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        sentence = refused(command("serve", "--port", str(port)))
    assert sentence.startswith(f"port {port} is in use")
    assert f"`make run PORT={port + 1}`" in sentence
    assert not place.exists()


def test_serve_refuses_an_address_of_another_machine(place: Path, command: Callable[..., Result]) -> None:
    assert refused(command("serve", "--address", "192.0.2.1")).startswith(
        "address 192.0.2.1 with port 8501 cannot"
    )
    assert not place.exists()


def test_serve_refuses_a_home_that_cannot_be_written(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    port = str(local_server.free_port())
    assert "cannot be written (Not a directory)" in refused(
        command("serve", "--port", port, home=tmp_path / "file" / "x")
    )


# ---- what is wrong is one sentence, and leaves nothing behind ---------------------------------------------------------


def test_a_wrong_value_is_tried_for_every_option() -> None:
    assert set(WRONG) == set(RunSpec.options("dcgan_mnist"))


@pytest.mark.parametrize("option", WRONG)
def test_a_wrong_value_is_refused(place: Path, command: Callable[..., Result], option: str) -> None:
    sentence = refused(command("train", "--set", f"{option}={WRONG[option]}"))
    assert sentence.startswith(f"{RunSpec.options('dcgan_mnist')[option].named} is ")
    assert "allowed is" in sentence
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["--preset", "quik"],
            "preset is 'quik', but allowed is quick, paper, showers, karman: did you mean quick?",
        ),
        (["--set", "epoch=3"], "epoch is not an option of a run: did you mean epochs?"),
        (
            ["--set", "mlp_gan.label_smoothing=0.1"],
            "mlp_gan.label_smoothing belongs to workload mlp_gan, but workload is dcgan_mnist: leave it out, or use workload=mlp_gan.",
        ),
        (["--set", "epochs"], "--set 'epochs' has no '=': write it as key=value, such as epochs=3."),
        (
            ["--set", "batch_size_global=30", "--set", "replicas=4"],
            "Global batch (batch_size_global) is 30, but 4 replicas need a multiple of 4: use 28 or 32.",
        ),
        (
            ["--spec", "/no/such.json"],
            "spec file /no/such.json cannot be read (No such file or directory): give the path of a JSON file.",
        ),
    ],
)
def test_a_wrong_word_is_refused(
    place: Path, command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    assert refused(command("train", *words)) == sentence
    assert not place.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["train", "--detac"],
            r"no such option: --detac \(Possible options: .+\): see `.+ -m gan_runtime train --help`\.",
        ),
        (["--detach"], r"no such option: --detach: see `.+ -m gan_runtime --help`\."),
        (["shw"], r"no such command 'shw', did you mean 'show': see `.+ -m gan_runtime --help`\."),
        (["x" * 10_000], r"no such command 'x{150,190}…: see `.+ -m gan_runtime --help`\."),
        (["show"], r"missing argument 'RUN': see `.+ -m gan_runtime show --help`\."),
        (["serve", "--port", "0"], r"invalid value for '--port': .+: see `.+ -m gan_runtime serve --help`\."),
        (
            ["study", "batch_size", "--values", ""],
            r"values has 1 value\(s\), but a study compares at least 2: try .+\.",
        ),
        (
            ["serve", "--address", "x" * 64],
            r"address x{64} with port 8501 cannot be listened on \(.+\): use --address .+\.",
        ),
    ],
)
def test_a_word_that_no_command_knows_is_refused_in_one_line(
    command: Callable[..., Result], words: list[str], sentence: str
) -> None:
    result = command(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert re.fullmatch(sentence, result.stderr.strip()), result.stderr


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert CliRunner().invoke(app, ["--version"]).stdout == f"{project['name']} {project['version']}\n"


# ---- terminals and what else takes the output -------------------------------------------------------------------------


@pytest.fixture
def hostile(new_run: Callable[..., RunDir]) -> RunDir:
    """A run as a stranger may have made it: its name rings, clears the screen and turns text round."""
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, journal.Renamed(name="\x1b[2J\x07\u202eé\x9b1m"))
    reason = "=HYPERLINK(1) \x1b]0;owned\x07"
    journal.append(run.supervisor_journal, 1, journal.StatusChange(status="failed", reason=reason))
    return run


def test_names_do_nothing_to_the_terminal(
    command: Callable[..., Result], home: Home, hostile: RunDir
) -> None:
    shown = command("runs", home=home.path).stdout + command("show", hostile.run_id, home=home.path).stdout
    shown += command("sql", "SELECT name, note FROM runs", home=home.path).stdout
    assert r"\x1b[2J\x07\u202eé\x9b1m" in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)
    (run,) = answer(command("runs", "--json", home=home.path))
    assert run["name"] == "\x1b[2J\x07\u202eé\x9b1m"
    assert "\x9b" not in command("runs", "--json", home=home.path).stdout


@pytest.mark.usefixtures("hostile")
def test_an_output_that_takes_ascii_only_gets_the_rest_written_out(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, expected in ((["runs"], rb"1 \xd7 cpu"), (["runs", "--json"], rb"\u00e9")):
        content = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="ascii"))
        app([*words, "--home", str(home.path)], standalone_mode=False)
        assert expected in content.getvalue()


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("words", [["runs"], ["runs", "--json"]], ids=["table", "json"])
def test_an_output_that_is_full_is_one_sentence(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", full)
        assert app([*words, "--home", str(home.path)], standalone_mode=False) == 2
    sentence = "the answer cannot be written (No space left on device): look after where the output goes.\n"
    assert capsys.readouterr().err == sentence


@pytest.mark.usefixtures("hostile")
def test_an_output_that_is_closed_is_no_trouble(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert app(["runs", "--home", str(home.path)], standalone_mode=False) is None


@pytest.mark.parametrize("content", ["epochs: 3", "[1, 2]", ""])
def test_a_spec_file_that_holds_no_options_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, content: str
) -> None:
    (tmp_path / "spec.json").write_text(content, encoding="utf-8")
    assert refused(command("train", "--spec", str(tmp_path / "spec.json"))).startswith("spec file ")
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
@pytest.mark.parametrize("accelerator", ["gpu", "tpu"])
def test_an_absent_accelerator_is_refused(
    place: Path, command: Callable[..., Result], accelerator: str
) -> None:
    sentence = refused(command("train", *TINY, "--set", f"accelerator={accelerator}"))
    assert sentence == (
        f"accelerator is {accelerator}, but this host has no {accelerator.upper()}; on this host you can use cpu."
    )
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_a_batch_larger_than_the_dataset_is_refused(place: Path, command: Callable[..., Result]) -> None:
    sentence = refused(command("train", "--set", "batch_size_global=2000"))
    assert (
        sentence
        == "Global batch (batch_size_global) is 2000, but digits has only 1797 images: use a smaller batch."
    )
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_an_empty_data_folder_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    assert "but no mnist images are there" in refused(command("train", "--preset", "paper"))
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_a_run_whose_data_cannot_be_downloaded_fails_with_the_reason(
    command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GAN_DATA_DIR", "KERAS_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody answers on the discard port
    result = command("train", "--preset", "paper")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1].startswith(
        "run paper-0001 is failed: data set mnist was not prepared (failed): mnist is not on this machine and Keras could not "
        "download it"
    )


@pytest.mark.usefixtures("known_host")
def test_an_unreadable_idx_file_is_refused(
    place: Path, command: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist/train-images-idx3-ubyte").write_bytes(b"no images at all")
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path))
    assert "does not start like an IDX file" in refused(command("train", "--preset", "paper"))
    assert not place.exists()


@pytest.mark.usefixtures("known_host")
def test_a_home_that_cannot_be_written_is_refused(command: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    below_a_file = tmp_path / "file" / "home"  # tests may run as root, whom no permission stops
    for words in (["train"], ["train", "--detach"], ["rebuild"]):
        assert refused(command(*words, home=below_a_file)).startswith(
            f"home {below_a_file} cannot be written (Not a directory)"
        )


@pytest.mark.parametrize("place", ["~nosuch-user/x", "/tmp/" + "x" * 300, "/tmp" + "/x" * 3000])
def test_a_home_that_no_folder_can_be_is_refused(command: Callable[..., Result], place: str) -> None:
    for words in (["runs"], ["train", "--detach"]):
        sentence = refused(command(*words, home=Path(place)))
        assert re.match(
            r"home '.{5,80} cannot be used \(.+\): choose another folder with --home DIR or", sentence
        )


@pytest.mark.usefixtures("known_host")
@pytest.mark.parametrize("words", [["train", *TINY], ["rebuild"]], ids=["train", "rebuild"])
def test_a_results_file_that_another_program_holds_is_refused(
    home: Home, command: Callable[..., Result], words: list[str]
) -> None:
    hold = f"import duckdb, sys; c = duckdb.connect({str(home.database)!r}); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        before = home.database.read_bytes()
        sentence = refused(command(*words, home=home.path))
        assert home.database.read_bytes() == before
        holder.communicate()
    assert f"is held by process {holder.pid}" in sentence
    assert home.run_dirs() == []


def test_a_results_file_that_is_no_database_is_set_aside_and_said_so(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    home.database.write_bytes(b"not a database" * 1000)
    with training.Supervision(home) as supervision:
        assert supervision.runtime is not None
    (old,) = home.path.glob("results.duckdb.damaged-*")
    assert old.read_bytes() == b"not a database" * 1000
    told = " ".join(capsys.readouterr().err.split())
    assert f"{home.database} is not a usable DuckDB database" in told
    assert f"It was set aside as {old.name}. A new one holds 0 runs, read again from their journals." in told


def test_an_export_into_a_file_is_refused(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    target = str(tmp_path / "file" / "out")
    assert refused(command("export", "run-0001", "--to", target, home=trained)).startswith(
        f"{target} cannot be written"
    )


def test_an_export_replaces_no_file_unasked_and_nothing_that_is_no_file(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    words = ["export", "run-0001", "--to", str(tmp_path / "out"), "--format", "csv"]
    assert command(*words, home=trained).exit_code == 0
    (tmp_path / "out/specs/run-0001/spec.json").write_text("mine")
    assert "runs.csv exists already: choose another place, or give --overwrite." in refused(
        command(*words, home=trained)
    )
    (tmp_path / "out/runs.csv").unlink()
    os.mkfifo(tmp_path / "out/runs.csv")
    assert "runs.csv is a named pipe, not a plain file" in refused(
        command(*words, "--overwrite", home=trained)
    )
    assert (tmp_path / "out/specs/run-0001/spec.json").read_text() == "mine"
    (tmp_path / "out/runs.csv").unlink()
    assert command(*words, "--overwrite", home=trained).exit_code == 0
    assert RunSpec.read(tmp_path / "out/specs/run-0001/spec.json").epochs == 2
    assert not list((tmp_path / "out").rglob(".*"))


def test_a_disk_that_runs_full_is_named_by_its_folder(
    command: Callable[..., Result], trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise duckdb.IOException('Could not write file "x": No space left on device')

    before = _table_contents(trained)
    monkeypatch.setattr(Ingestor, "catch_up", full)
    monkeypatch.setattr(Ingestor, "catch_up_run", full)
    sentence = "the disk of {} is full: make space on it; what was to be written there is lost."
    assert refused(command("rebuild", home=trained)) == sentence.format(trained)
    assert refused(command("runs", home=trained)) == sentence.format(tempfile.gettempdir())
    assert _table_contents(trained) == before


def test_a_rebuild_replaces_nothing_that_is_no_file(command: Callable[..., Result], home: Home) -> None:
    os.mkfifo(home.database)
    assert "results.duckdb is a named pipe, not a plain file" in refused(command("rebuild", home=home.path))
    assert home.database.is_fifo()


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["stop"],
        ["resume"],
        ["export", "--to", "/tmp/never-made"],
        ["generate", "--out", "/tmp/never-made.png"],
    ],
    ids=lambda words: words[0],
)
def test_an_unknown_run_is_refused(command: Callable[..., Result], trained: Path, words: list[str]) -> None:
    sentence = refused(command(*words, "run-0404", home=trained))
    assert sentence == f"run 'run-0404' is not stored in {trained}: there are run-0001."


@pytest.mark.parametrize("statement", ["DROP TABLE ingest.scalars", "SELECT 1; SELECT 2", ""])
def test_sql_that_does_not_only_read_is_refused(
    command: Callable[..., Result], trained: Path, statement: str
) -> None:
    assert refused(command("sql", statement, home=trained)).startswith("sql takes one statement that reads")


def test_sql_that_does_not_run_shows_the_place_of_the_mistake(
    command: Callable[..., Result], trained: Path
) -> None:
    result = command("sql", "SELECT lss FROM scalars", home=trained)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "docs/schema.md" in result.stderr
    assert "LINE 1: SELECT lss FROM scalars" in result.stderr


def test_a_home_has_one_owner(home: Home) -> None:
    assert not owner.is_owned(home)
    lock = owner.acquire(home)
    assert owner.is_owned(home)
    begin = time.monotonic()
    with pytest.raises(HomeInUseError, match=f"is in use by process {os.getpid()}"):
        owner.acquire(home)
    assert time.monotonic() - begin < 5
    lock.release()
    assert not owner.is_owned(home)


def test_a_home_whose_lock_cannot_be_written_says_so_and_has_no_owner(home: Home) -> None:
    home.owner_lock.mkdir()
    with pytest.raises(
        HomeError, match=r"\.owner\.lock cannot be written \(Is a directory\): look after its disk"
    ):
        owner.acquire(home)
    assert owner.holder(home) is None


def test_a_command_that_gets_too_little_memory_says_so(
    command: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def take_all(*_: object, **__: object) -> None:
        raise MemoryError

    for module in (
        "gan_runtime.cli.app.commands.make_store_anew",
        "gan_runtime.cli.app.memory.from_journals",
    ):
        monkeypatch.setattr(module, take_all)
    for words in (["rebuild"], ["runs"], ["sql", "SELECT 1"]):
        assert refused(command(*words)).startswith("there is too little memory for this: end other programs")


def test_a_table_of_a_run_ends_somewhere_however_much_its_journals_tell() -> None:
    event = {
        "logged_at": datetime.now(UTC),
        "attempt": 1,
        "level": "info",
        "kind": "t",
        "message": "x" * 10**6,
    }
    parts = {"spec": {}, "phases": {}, "memory": None, "profile": [], "progress": {"newest": {}}, "run": {}}
    [events] = tables.run_tables(
        {**parts, "events": [{**event, "attempt": number} for number in range(100_000)]}
    )
    assert events.row_count == tables.MOST_EVENTS
    assert str(events.title) == "events (99,000 earlier ones are left out: --json has all)"
    *_, (_, newest) = enumerate(events.columns[1].cells)
    assert newest == "99999"
    assert max(map(len, events.columns[4].cells)) == tables.MOST_LETTERS
