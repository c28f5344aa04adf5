"""Runs that start from the weights of another run: on both engines, across engines, and by the
command on other images, with trainers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from gan_runtime.data import builtin_sets
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Event, HostFacts
from gan_runtime.records.processes import environment
from gan_runtime.records.run_folder import RunDir
from tests.support.engines.fine_tuning import FineTuned, attempt, fine_tuned
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import assert_equal

EPOCHS = 4
OF_NETWORKS = ("generator/", "discriminator/")
MODULE = "tests.support.engines.fine_tuning"


def assert_began_with_the_first(tuned: FineTuned) -> None:
    """Also checks that the run resumes bit for bit without the other run."""
    weights = [name for name in tuned.begin if name.startswith(OF_NETWORKS)]
    assert_equal(
        {name: tuned.begin[name] for name in weights}, {name: tuned.first[name] for name in weights}
    )
    assert tuned.messages == [
        f"Starts with {len(weights)} of {len(weights)} weight arrays of quick-0001 after step 4."
    ]
    slots = [name for name in tuned.begin if name.startswith("optimizer_") and "momentum" in name]
    assert slots
    assert not any(tuned.begin[name].any() for name in slots)
    assert_equal(tuned.resumed, tuned.straight)


@pytest.mark.usefixtures("cores")
def test_run_starts_with_weights_of_another_and_resumes_from_its_own(
    tmp_path: Path,
) -> None:
    assert_began_with_the_first(fine_tuned("tensorflow", tmp_path))


def test_jax_run_starts_with_weights_of_another_and_resumes_from_its_own(
    tmp_path: Path, jax: JaxProcess
) -> None:
    assert_began_with_the_first(jax(f"{MODULE}:fine_tuned", "jax", tmp_path))


@pytest.mark.usefixtures("cores")
def test_jax_run_starts_with_tensorflow_weights(tmp_path: Path, jax: JaxProcess) -> None:
    earlier = RunDir(tmp_path / "earlier")
    attempt(earlier, engine="tensorflow")
    (tmp_path / "home" / "runs").mkdir(parents=True)
    assert_began_with_the_first(jax(f"{MODULE}:fine_tuned", "jax", tmp_path / "home", earlier.path))


# ---- other images, by the command ----------------------------------------------------------------


def trained(home: Home, *words: str) -> RunDir:
    """Trains a run of the dense networks to its end."""
    options = (
        "workload=mlp_gan",
        "batch_size_global=64",
        "precision=float32",
        "learning_rate_generator=0.001",
    )
    command = [
        sys.executable,
        "-m",
        "gan_runtime",
        "train",
        "--home",
        str(home.path),
        "--json",
        *words,
    ]
    command += [word for option in options for word in ("--set", option)]
    ended = subprocess.run(
        command,
        env=environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert ended.returncode == 0, ended.stderr[-2_000:]
    return home.run_dir(json.loads(ended.stdout.splitlines()[-1])["run_id"])


def turned_digits(home: Home, folder: Path) -> None:
    """Prepares the digits on their side as a user data set called turned."""
    folder.mkdir()
    for number, picture in enumerate(builtin_sets.load_digits().read(np.arange(640))["images"]):
        Image.fromarray(picture[:, :, 0].T).save(folder / f"{number:04}.png")
    command = [
        sys.executable,
        "-m",
        "gan_runtime",
        "data",
        "prepare",
        "pictures",
        "--as",
        "turned",
        "--from",
        str(folder),
    ]
    command += [
        "--set",
        "pixels=28",
        "--set",
        "color=gray",
        "--set",
        "held_out_percent=0",
        "--home",
        str(home.path),
    ]
    subprocess.run(
        command, env=environment(os.environ), capture_output=True, check=True, timeout=300
    )


def grid(run: RunDir, epoch: int) -> np.ndarray:
    """Returns its samples after an epoch, gray from 0 to 255; all runs have the same latents."""
    return np.asarray(Image.open(run.sample_file("samples", epoch)), np.float64)


@pytest.mark.parametrize("engine", ["tensorflow", "jax"])
def test_fine_tuned_run_on_other_images_starts_ahead_of_a_new_one(
    home: Home, engine: str, tmp_path: Path
) -> None:
    turned_digits(home, tmp_path / "turned")
    first = trained(
        home, "--set", "dataset=digits", "--set", f"epochs={EPOCHS}", "--set", f"engine={engine}"
    )
    other = ("--set", "dataset=turned", "--set", "epochs=1", "--set", f"engine={engine}")
    new = trained(home, *other)
    tuned = trained(home, *other, "--from", f"{first.run_id}:{EPOCHS}")
    records = journal.read_all(tuned.trainer_journal())
    assert tuned.spec().start_from == f"{first.run_id}:{EPOCHS}"
    [event] = [
        record for record in records if isinstance(record, Event) and record.topic == "start_from"
    ]
    assert event.message.startswith("Starts with 8 of 8 weight arrays of ")
    [facts] = [record.facts for record in records if isinstance(record, HostFacts)]
    assert facts["start_from"]["run"] == first.run_id
    apart = [np.abs(grid(run, 1) - grid(first, EPOCHS)).mean() for run in (tuned, new)]
    assert apart[0] < apart[1] / 2, (
        "after an epoch on others its pictures are still nearer to those of the first run"
    )
