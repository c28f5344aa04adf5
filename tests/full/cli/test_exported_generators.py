"""Generators of all systems and both engines, exported by the command and loaded with the README's
programs in processes without this project.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from gan_runtime.records.home import REPOSITORY
from tests.domains.showers.hdf5_showers import authors_columns, written
from tests.support.command_line import answer

TOLERANCE = 1e-3
MOST_LINES = 10
SHORT = ("epochs=1", "precision=float32", "profile_steps=0", "quality_every=0")
STRANGER = "import importlib.util; assert importlib.util.find_spec('gan_runtime') is None\n"
Command = Callable[..., Result]


@dataclass(frozen=True)
class System:
    """`inputs`, `outputs`: names in the exported model; `shape`: shape of a row of the first
    output; `epoch`: epoch of the stored weights to export, 0 for the newest checkpoint.
    """

    options: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    shape: tuple[int, ...]
    data: Callable[[Command, Path], None] = lambda _command, _folder: None
    epoch: int = 0


def some_showers(command: Command, folder: Path) -> None:
    """Prepares six showers in the authors' format, with angles, on the small grid."""
    file = written(folder / "showers.h5", authors_columns())
    words = ("data", "prepare", "showers_hdf5", "--from", str(file), "--as", "some_showers")
    assert command(*words, "--set", "grid=tiny", "--set", "held_out_percent=0").exit_code == 0


def some_frames(command: Command, folder: Path) -> None:  # noqa: ARG001
    """Prepares ten pairs of frames of a simulated flow."""
    options = ("frames=12", "discarded=0", "reynolds=100", "steps_per_frame=5")
    words = ("data", "prepare", "karman_small", "--as", "some_frames")
    assert command(*words, *_set(*options)).exit_code == 0


SYSTEMS = {
    "dcgan_mnist": System(
        (
            *("dataset=digits", "batch_size_global=599"),
            *("epochs=2", "weight_snapshots=yes"),
        ),
        ("latents",),
        ("images",),
        (28, 28, 1),
        epoch=1,
    ),
    "dcgan": System(
        (
            *("dataset=digits", "engine=jax", "batch_size_global=599", "base_channels=4"),
            *("ema_decay=0.5", "samples_from=ema"),
        ),
        ("latents", "labels"),
        ("class_images",),
        (28, 28, 1),
    ),
    "shower_3dgan": System(
        (
            *("dataset=some_showers", "batch_size_global=3", "size=tiny", "latent_size=16"),
            "angle_gain=6",
        ),
        ("latents", "energy", "angle"),
        ("showers",),
        (17, 17, 25, 1),
        some_showers,
    ),
    "pix2pix": System(
        (
            *("dataset=some_frames", "batch_size_global=3", "size=small", "tile=32"),
            *("output=change", "precision=mixed_bfloat16"),
        ),
        ("source",),
        ("generated",),
        (32, 32, 3),
        some_frames,
    ),
}


def _set(*options: str) -> list[str]:
    return [word for option in options for word in ("--set", option)]


@pytest.fixture(params=SYSTEMS)
def name(request: pytest.FixtureRequest) -> str:
    """Name of a workload."""
    return str(request.param)


@pytest.fixture
def exported(name: str, command: Command, tmp_path: Path) -> Path:
    """The unpacked folder of a trained run's generator."""
    system = SYSTEMS[name]
    system.data(command, tmp_path)
    options = _set(f"workload={name}", *SHORT, *system.options)
    assert command("train", *options).exit_code == 0
    target = tmp_path / "generator.zip"
    epoch = ("--epoch", str(system.epoch)) if system.epoch else ()
    result = answer(command("export-model", "run-0001", *epoch, "--to", str(target), "--json"))
    assert (result["epoch"] or 0, result["warnings"]) == (system.epoch, [])
    with zipfile.ZipFile(target) as bundle:
        bundle.extractall(tmp_path / "taken")
    return tmp_path / "taken" / "run-0001-generator"


def differences(folder: Path) -> list[tuple[tuple[int, ...], float]]:
    """Runs each program of the README; returns the shape of its output, and the difference."""
    printed = []
    text = (folder / "README.md").read_text(encoding="utf-8")
    for program in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        assert len(program.splitlines()) <= MOST_LINES
        # -I: neither the folder of the process nor PYTHONPATH is searched for modules.
        child = subprocess.run(
            [sys.executable, "-I", "-c", STRANGER + program],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(folder), "CUDA_VISIBLE_DEVICES": "-1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.returncode == 0, child.stderr
        match = re.fullmatch(r"\(([\d, ]+)\) ([\d.e+-]+)", child.stdout.strip().splitlines()[-1])
        assert match is not None, child.stdout
        printed.append((tuple(map(int, match[1].split(", "))), float(match[2])))
    return printed


def of_the_engine(home: Path, system: System, example: Path, target: Path) -> dict[str, np.ndarray]:
    """Returns what the run's own engine generates from the same inputs, in a process with its
    framework.
    """
    program = f"""
import pathlib

import numpy
from gan_runtime.records.home import Home
from gan_runtime.training import checkpoints, inference

home, example = Home(pathlib.Path({str(home)!r})), numpy.load({str(example)!r})
run = home.run_dir("run-0001")
networks = inference.of_run(run, home)
if {system.epoch}:
    stored = checkpoints.load_snapshot(run.snapshots, {system.epoch})
    networks.engine.load({{**networks.checkpoint.arrays, **stored}})
inputs = {{name: example[name] for name in {system.inputs}}}
if "source" in inputs:
    inputs["target"] = inputs["source"][..., :3]  # shown next to what is generated
numpy.savez({str(target)!r}, **networks.engine.generate(inputs))
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY)
    return dict(np.load(target))


@pytest.mark.timeout(900)  # training, a job, and four processes that each load a framework
def test_exported_generator_matches_the_engine_of_the_run(
    exported: Path, name: str, place: Path, tmp_path: Path
) -> None:
    system, example = SYSTEMS[name], np.load(exported / "example.npz")
    assert set(example) == {*system.inputs, *system.outputs}
    loaded = differences(exported)
    assert [shape for shape, _ in loaded] == [(8, *system.shape)] * 3
    assert max(difference for _, difference in loaded) < TOLERANCE
    arrays = of_the_engine(place, system, exported / "example.npz", tmp_path / "generated.npz")
    for output in system.outputs:
        assert example[output].std() > TOLERANCE, "there is nothing to compare"
        np.testing.assert_allclose(example[output], arrays[output], rtol=1e-3, atol=TOLERANCE)
