"""Image pairs drawn for this test, from their files to a trained model and its output, with real
trainers and a real job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from gan_runtime.records import image_files, journal
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Scalars
from gan_runtime.records.processes import environment
from gan_runtime.records.run_folder import RunDir, answers_of, write_json
from tests.support import drawn_pairs

TILE = 16


def trained(home: Home) -> RunDir:
    """Trains 24 steps with a real trainer."""
    run = RunDir(home.runs / "pairs-0001")
    run.path.mkdir(parents=True)
    options = {
        "workload": "pix2pix",
        "dataset": drawn_pairs.NAME,
        "engine": "tensorflow",
        "precision": "float32",
    }
    options |= {"tile": TILE, "batch_size_global": 4, "epochs": 12, "dropout": 0.0}
    options |= {"learning_rate_generator": 0.002}  # so that a few steps suffice
    write_json(run.spec_path, options)
    command = [sys.executable, "-m", "gan_runtime.worker", str(run.path), "1", "cpu"]
    ended = subprocess.run(
        command,
        env=environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    return run


def iterated(home: Home, run: RunDir) -> list[Answer]:
    """Rolls out with the command, on one core and on two."""
    command = [
        sys.executable,
        "-m",
        "gan_runtime",
        *("evaluate", run.run_id, "rollout"),
        *("--home", str(home.path), "--json"),
        *("--set", "ways=naive,map_reduce", "--set", "cores=2"),
    ]
    ended = subprocess.run(
        command,
        env=environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    assert [way["way"] for way in json.loads(ended.stdout)["ways"]] == ["naive", "map_reduce"]
    return answers_of(run, "rollout")


@pytest.mark.parametrize("layout", ["side_by_side", "folders"])
def test_drawn_pairs_are_learned_and_rolled_out_equally_on_two_cores(
    home: Home, tmp_path: Path, layout: str
) -> None:
    drawn_pairs.prepare(home, tmp_path / "drawn", layout)
    run = trained(home)
    calls = [
        record for record in journal.read_all(run.trainer_journal(0)) if isinstance(record, Scalars)
    ]
    difference = np.concatenate([call.values["l1_difference"] for call in calls])
    assert len(difference) == 24
    assert difference[-6:].mean() < 0.7 * difference[:6].mean()
    if layout == "folders":
        return  # the rollout does not depend on it
    naive, grouped = iterated(home, run)
    # Tiles of 16 that share 12 pixels, the default: 5 × 5 cover 32 × 32.
    assert (
        naive.facts["tiles"],
        naive.facts["overlap"],
        naive.facts["steps"],
        naive.facts["is_usual"],
    ) == (
        25,
        12,
        1,
        True,
    )
    films = [
        image_files.read_film(run, record.arrays[0].file).predicted for record in (naive, grouped)
    ]
    np.testing.assert_array_equal(films[0], films[1])
    error = np.abs(
        films[0][1].astype(float) - image_files.read_film(run, naive.arrays[0].file).truth[1]
    ).mean()
    assert error < difference[:6].mean()
