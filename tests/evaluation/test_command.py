"""`evaluate RUN [NAME]` on the command line: available evaluations, declared options, and result
files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from gan_runtime.catalog.evaluations import evaluations
from gan_runtime.cli import evaluating, following
from gan_runtime.cli.app import app
from gan_runtime.commands import Commands
from gan_runtime.evaluation.catalog import EvaluationResult
from gan_runtime.evaluation.jobs import store
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from tests.evaluation.hand_made import ended
from tests.support import measured_showers

NewRun = Callable[..., RunDir]


@pytest.fixture
def command(home: Home) -> Callable[..., Result]:
    return lambda *words: CliRunner().invoke(app, [*words, "--home", str(home.path)])


@pytest.fixture
def requests(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """The requests; the job has a result immediately."""
    values: list[tuple[str, str, Mapping[str, Any]]] = []

    def evaluate(_: Commands, run_id: str, name: str, options: Mapping[str, Any]) -> JobDir:
        values.append((run_id, name, options))
        job = JobDir(home.jobs / "physics-0001")
        job.results.mkdir(parents=True, exist_ok=True)
        (job.results / "submission.hdf5").write_text("showers", encoding="utf-8")
        return job

    monkeypatch.setattr(Commands, "evaluate", evaluate)
    monkeypatch.setattr(following, "to_its_end", lambda *_: {"epochs": [2], "warnings": []})
    return values


def test_evaluate_without_a_name_lists_evaluations_and_obstacles(
    new_run: NewRun, command: Callable[..., Result]
) -> None:
    run = ended(new_run("quick-0001"))
    result = command("evaluate", run.run_id)
    assert result.exit_code == 0, result.output
    assert "loss_surface" in result.output
    assert "rollout" not in result.output, "it is not an image-to-image model"
    assert "Start one: `" in result.output
    waiting = new_run("quick-0002")
    record, quality = json.loads(command("evaluate", waiting.run_id, "--json").output)
    assert (record["name"], record["options"]) == ("loss_surface", ["size"])
    assert record["obstacle"].startswith("run quick-0002 is queued")
    assert (quality["name"], quality["options"]) == (
        "quality",
        ["checkpoint", "samples", "features", "while_training", "seed"],
    )
    assert quality["obstacle"].startswith("run quick-0002 has no checkpoint to evaluate")


def test_result_file_is_copied_to_the_requested_path(
    new_run: NewRun,
    command: Callable[..., Result],
    requests: list[Any],
    tmp_path: Path,
) -> None:
    run, out = new_run("quick-0001"), tmp_path / "out.hdf5"
    measured_showers.measured(run, 2)
    words = ("evaluate", "quick-0001", "physics", "--set", f"submission={out}")
    result = command(*words)
    assert result.exit_code == 0, result.output
    assert requests == [("quick-0001", "physics", {"submission": "yes"})]
    assert out.read_text(encoding="utf-8") == "showers"
    again = command(*words)
    assert (again.exit_code, len(requests)) == (
        2,
        1,
    ), "nothing is asked for where nothing may be written"
    assert "--overwrite" in again.output


def test_declared_scores_are_printed_without_a_custom_report(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    measured_showers.measured(run, 2)
    declared = evaluations()["physics"]
    plain = evaluating.report_of(replace(declared, report=""), home, run, {})
    assert plain.document["evaluation"] == "physics"
    names = {f"physics_{score['name']}" for score in plain.document["scores"]}
    assert names <= {metric.name for metric in declared.scores}
    sentence, grid, facts = plain.parts
    assert sentence == f"{declared.title} of quick-0001 after epoch 2 (best):"
    assert not isinstance(grid, str)
    assert facts == "showers 150."
    assert len(grid.rows) == len(plain.document["scores"]) > 0
    assert {row[0] for row in grid.rows} <= {metric.title for metric in declared.scores}


def test_unknown_evaluation_is_refused_with_the_valid_names(
    new_run: NewRun, command: Callable[..., Result]
) -> None:
    new_run("quick-0001")
    refused = command("evaluate", "quick-0001", "physic")
    assert refused.exit_code == 2
    assert (
        "'physic' is not an evaluation: choose one of loss_surface, quality, physics,"
        in " ".join(refused.output.split())
    )


def test_surface_report_names_the_journal_that_its_job_writes(home: Home, new_run: NewRun) -> None:
    run, declared = new_run("quick-0001"), evaluations()["loss_surface"]
    answer = Answer(
        evaluation="loss_surface", key="generator", epoch=1, step=1, checkpoint="newest", scores=[]
    )
    store(run, EvaluationResult([answer]))
    document = evaluating.report_of(declared, home, run, {}).document
    assert [record.key for record in journal.read_all(document["journal"])] == ["generator"]
