"""The evaluation of docs/adding-an-evaluation.md is listed, measures a run, and stores its numbers
in the database. test_adding_a_workload.py checks its types.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support import evaluation_page, guide


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project with the page's file and its line in the table."""
    root = guide.copy_project(tmp_path / "project", "gan_runtime")
    evaluation_page.write_into(root)
    return root


def test_guide_evaluation_measures_a_run(copy: Path) -> None:
    def output(*words: str) -> str:
        return guide.ask(copy, "-m", "gan_runtime", *words)

    options = [f"--set={choice}" for choice in ("workload=mlp_gan", "epochs=2", "accelerator=cpu")]
    output("train", *options)
    offered = {
        each["name"]: each["obstacle"]
        for each in json.loads(output("evaluate", "run-0001", "--json"))
    }
    assert offered["sharpness"] == ""
    said = json.loads(output("evaluate", "run-0001", "sharpness", "--set=images=64", "--json"))
    distance, mean = said["scores"]
    assert [score["name"] for score in (distance, mean)] == ["distance", "mean"]
    assert distance["samples"] == mean["samples"] == 64
    assert distance["floor"] < 0.6 < distance["value"], "a new network makes noise"
    query = "SELECT epoch, metric, value FROM numbers WHERE metric = 'sharpness_mean'"
    assert json.loads(output("sql", query, "--json")) == [
        {"epoch": 2, "metric": "sharpness_mean", "value": pytest.approx(mean["value"])}
    ]
    run = json.loads(output("show", "run-0001", "--json"))["run"]
    assert "the median score is" in run["verdict"]
    curves = "SELECT series, len(x) AS bins FROM evaluation_curves ORDER BY series"
    assert json.loads(output("sql", curves, "--json")) == [
        {"series": "generated", "bins": 24},
        {"series": "real", "bins": 24},
    ]
