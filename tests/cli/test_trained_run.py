"""Command-line output and exports of a run trained by a process."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import Result

from gan_runtime.bundles import export
from gan_runtime.cli.following import Follower
from gan_runtime.records.home import HOME_VARIABLE, Home
from gan_runtime.spec import RunSpec
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner
from tests.support.command_line import answer, refused, run
from tests.support.trained_home import PRINTED, SCALARS


def test_train_prints_a_json_line_per_state_and_epoch(trained: Path) -> None:
    lines = [json.loads(line) for line in (trained / PRINTED).read_text().splitlines()]
    statuses = [line["status"] for line in lines]
    assert list(dict.fromkeys(statuses)) == [
        "queued",
        "starting",
        "compiling",
        "running",
        "finished",
    ]
    end = lines[-1]
    assert (end["run_id"], end["epochs_done"], end["step"], end["last_step"]) == (
        "run-0001",
        2,
        14,
        14,
    )
    assert set(end["metrics"]) >= {
        "loss_generator",
        "loss_discriminator",
        "d_real",
        "d_fake",
        "learning_rate_generator",
    }


def test_a_state_missed_between_two_polls_is_reported(trained: Path) -> None:
    home = Home(trained)
    follower = Follower(home, home.run_dir("run-0001"))
    now = follower.now()
    compiling = replace(
        now, row=replace(now.row, status="compiling"), progress=replace(now.progress, step=0)
    )
    running, finished = follower.since(compiling)
    assert (running.row.status, running.epochs_done) == ("running", 0)
    assert finished == now
    assert follower.since(now) == [now]


def test_the_database_is_complete_when_train_ends(trained: Path) -> None:
    store = Store(trained / "results.duckdb")
    try:
        assert store.rows("SELECT status FROM runs") == [("finished",)]
        assert store.rows("SELECT count(*) FROM scalars WHERE metric = 'loss_generator'") == [(14,)]
    finally:
        store.close()


def test_runs_lists_the_run(command: Callable[..., Result], trained: Path) -> None:
    (run,) = answer(command("runs", "--json", home=trained))
    assert (run["run_id"], run["status"], run["epochs_done"]) == ("run-0001", "finished", 2)
    table = command("runs", home=trained).stdout
    assert re.search(r"run-0001 +finished +mlp_gan +digits +1 × cpu +256 +2/2", table)


def test_show_prints_all_details_of_the_run(command: Callable[..., Result], trained: Path) -> None:
    description = answer(command("show", "run-0001", "--json", home=trained))
    assert RunSpec.parse(description["spec"]).epochs == 2
    assert (description["run"]["note"], description["progress"]["step"]) == (
        "all 2 epochs done",
        14,
    )
    assert {"build", "trace", "first_call", "probe"} <= set(description["phases"])
    assert [event["kind"] for event in description["events"]][-1] == "finished"
    assert {"steady_step", "step_p05", "step_p95", "step_max"} <= set(description["phases"])
    assert description["memory"]["process_bytes"] > 100e6
    assert sum(row["share"] for row in description["profile"]) == pytest.approx(1.0)
    text = command("show", "run-0001", home=trained).stdout
    assert "all 2 epochs done" in text
    assert "time of a step (2 profiled)" in text


def test_sql_works_while_another_process_owns_the_home(
    command: Callable[..., Result], trained: Path
) -> None:
    lock = owner.acquire(Home(trained))
    try:
        rows = answer(
            command(
                "sql",
                "SELECT metric, count(*) AS steps FROM scalars GROUP BY 1 ORDER BY 1",
                "--json",
                home=trained,
            )
        )
    finally:
        lock.release()
    assert {"metric": "d_fake", "steps": 14} in rows
    assert {"metric": "d_accuracy_fake", "steps": 2} in rows  # one per epoch


def test_sql_distinguishes_null_from_non_finite_numbers(
    command: Callable[..., Result], trained: Path
) -> None:
    statement = "SELECT NULL AS nothing, 'nan'::DOUBLE AS nan, '-inf'::DOUBLE AS low, 1 AS one"
    rows = answer(command("sql", statement, "--json", home=trained))
    assert rows == [{"nothing": None, "nan": "NaN", "low": "-Infinity", "one": 1}]


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_export_writes_tables_images_and_specs(
    command: Callable[..., Result], trained: Path, tmp_path: Path, form: str
) -> None:
    folder = tmp_path / "out"
    files = answer(
        command("export", "run-0001", "--to", str(folder), "--format", form, "--json", home=trained)
    )["files"]
    assert {folder / name for name in files} == {
        path for path in folder.rglob("*") if path.is_file()
    }
    assert {f"{view}.{form}" for view in export.VIEWS} <= set(files)
    scalars = (
        pd.read_csv(folder / "scalars.csv")
        if form == "csv"
        else pd.read_parquet(folder / "scalars.parquet")
    )
    assert (len(scalars), scalars["step"].max()) == (SCALARS, 14)
    assert (folder / "samples/run-0001/samples-00002.png").read_bytes().startswith(b"\x89PNG")
    assert (
        RunSpec.read(folder / "specs/run-0001/spec.json")
        == Home(trained).run_dir("run-0001").spec()
    )


def test_an_export_into_a_file_is_refused(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    target = str(tmp_path / "file" / "out")
    assert refused(command("export", "run-0001", "--to", target, home=trained)).startswith(
        f"{target} cannot be written"
    )


def test_export_overwrites_only_regular_files_on_request(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    words = ["export", "run-0001", "--to", str(tmp_path / "out"), "--format", "csv"]
    assert command(*words, home=trained).exit_code == 0
    (tmp_path / "out/specs/run-0001/spec.json").write_text("mine")
    assert "runs.csv exists already: choose another path, or add --overwrite." in refused(
        command(*words, home=trained)
    )
    (tmp_path / "out/runs.csv").unlink()
    os.mkfifo(tmp_path / "out/runs.csv")
    assert "runs.csv is a named pipe, not a regular file" in refused(
        command(*words, "--overwrite", home=trained)
    )
    assert (tmp_path / "out/specs/run-0001/spec.json").read_text() == "mine"
    (tmp_path / "out/runs.csv").unlink()
    assert command(*words, "--overwrite", home=trained).exit_code == 0
    assert RunSpec.read(tmp_path / "out/specs/run-0001/spec.json").epochs == 2
    assert not list((tmp_path / "out").rglob(".*"))


def test_a_finished_run_can_be_neither_stopped_nor_resumed(
    command: Callable[..., Result], trained: Path
) -> None:
    assert refused(command("stop", "run-0001", home=trained)).startswith(
        "run run-0001 is finished already"
    )
    assert "only a stopped, failed or lost run can be resumed" in refused(
        command("resume", "run-0001", home=trained)
    )


def test_the_home_defaults_to_the_environment_variable(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME_VARIABLE, str(trained))
    assert [run["run_id"] for run in answer(run("runs", "--json"))] == ["run-0001"]


@pytest.mark.parametrize(
    "words",
    [
        ["show"],
        ["stop"],
        ["resume"],
        ["export", "--to", "/tmp/never-made"],
        ["generate", "--to", "/tmp/never-made.png"],
        ["generate", "--out", "/tmp/never-made.png"],  # as earlier versions called it
        ["report", "--out", "/tmp/never-made.html"],
    ],
    ids=lambda words: words[0],
)
def test_an_unknown_run_is_refused(
    command: Callable[..., Result], trained: Path, words: list[str]
) -> None:
    sentence = refused(command(*words, "run-0404", home=trained))
    assert sentence == f"run 'run-0404' is not in {trained}: the newest runs are run-0001."


@pytest.mark.parametrize("statement", ["DROP TABLE ingest.scalars", "SELECT 1; SELECT 2", ""])
def test_sql_other_than_one_reading_statement_is_refused(
    command: Callable[..., Result], trained: Path, statement: str
) -> None:
    assert refused(command("sql", statement, home=trained)).startswith(
        "sql accepts one statement that reads"
    )


def test_invalid_sql_shows_the_error_position(
    command: Callable[..., Result], trained: Path
) -> None:
    result = command("sql", "SELECT lss FROM scalars", home=trained)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "docs/schema.md" in result.stderr
    assert "LINE 1: SELECT lss FROM scalars" in result.stderr


def test_generate_refuses_an_invalid_output_path(
    command: Callable[..., Result], trained: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "grid.png"
    picture.write_bytes(b"mine")
    for out, sentence in {
        picture: f"{picture} exists already: choose another path, or add --overwrite.",
        tmp_path / "grid.jpg": (
            f"{tmp_path}/grid.jpg does not end in .png or .gif or .npz: choose another name."
        ),
        tmp_path / "grid.gif": (
            f"{tmp_path}/grid.gif needs a strip or a plane: add --layout strip, or write a .png."
        ),
        tmp_path / "no" / "grid.npz": (
            f"{tmp_path}/no/grid.npz cannot be written (No such file or directory): choose another"
            " place."
        ),
    }.items():
        words = ("generate", "run-0001", "--count", "20", "--seed", "5", "--checkpoint", "newest")
        assert refused(command(*words, "--to", str(out), home=trained)) == sentence
    assert not list((trained / "jobs").glob("generate-*")), "what is refused is not asked for"
    assert picture.read_bytes() == b"mine"
