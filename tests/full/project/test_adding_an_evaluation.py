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
    (score,) = said["scores"]
    assert (score["name"], score["samples"]) == ("ratio", 64)
    assert score["value"] > 0
    assert abs(score["floor"] - 1.0) < 4 * score["floor_error"], (
        "real rows are as sharp as real rows"
    )
    query = "SELECT epoch, metric, value FROM numbers WHERE metric = 'sharpness_ratio'"
    assert json.loads(output("sql", query, "--json")) == [
        {"epoch": 2, "metric": "sharpness_ratio", "value": pytest.approx(score["value"])}
    ]
    curves = "SELECT series, len(x) AS bins FROM evaluation_curves ORDER BY series"
    assert json.loads(output("sql", curves, "--json")) == [
        {"series": "generated", "bins": 24},
        {"series": "real", "bins": 24},
    ]
