"""Generators of all systems and both engines, exported by the command and loaded with the README's
programs in processes without this project: one process for each format.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from typer.testing import Result

from gan_runtime.data.idx_files import DATA_VARIABLE
from gan_runtime.records.home import REPOSITORY
from tests.data.idx_files import TRAIN, WriteIdx, noise
from tests.domains.showers.hdf5_showers import authors_columns, written
from tests.support import command_line
from tests.support.command_line import answer

TOLERANCE = 1e-3
MOST_LINES = 10
SHORT = ("epochs=1", "precision=float32", "profile_steps=0", "quality_every=0")
FORMATS = 3
# Runs a program in each folder, in a namespace of its own.
STRANGER = """
import importlib.util, json, os, sys
assert importlib.util.find_spec("gan_runtime") is None
for folder, program in json.load(sys.stdin):
    os.chdir(folder)
    exec(program, {})
"""
PRINTED = re.compile(r"^\(([\d, ]+)\) ([\d.e+-]+)$", re.MULTILINE)
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
            *("dataset=mnist", "batch_size_global=64"),
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


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home of all runs."""
    return tmp_path_factory.mktemp("exports") / "home"


@pytest.fixture(scope="module")
def exported(place: Path, write_idx: WriteIdx) -> Iterator[dict[str, Path]]:
    """The unpacked folders of the generators of all systems, by workload. A folder has the name of
    its run.
    """
    folders = {}
    command = partial(_command, place)
    mnist = write_idx(place.parent / "mnist" / TRAIN, noise(64)).parent
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(DATA_VARIABLE, str(mnist))
        for number, (name, system) in enumerate(SYSTEMS.items(), start=1):
            run = f"run-{number:04d}"
            system.data(command, place.parent)
            options = _set(f"workload={name}", *SHORT, *system.options)
            assert command("train", *options).exit_code == 0
            target = place.parent / f"{run}.zip"
            epoch = ("--epoch", str(system.epoch)) if system.epoch else ()
            result = answer(command("export-model", run, *epoch, "--to", str(target), "--json"))
            assert (result["epoch"] or 0, result["warnings"]) == (system.epoch, [])
            with zipfile.ZipFile(target) as bundle:
                bundle.extractall(place.parent / "taken")
            folders[name] = place.parent / "taken" / f"{run}-generator"
        yield folders


def _command(place: Path, *words: str) -> Result:
    return command_line.run(*words, "--home", str(place))


@pytest.fixture(scope="module")
def differences(
    place: Path, exported: dict[str, Path]
) -> dict[str, list[tuple[tuple[int, ...], float]]]:
    """What each program of a README prints, by workload: shape of its output, and difference."""
    programs = {}
    for name, folder in exported.items():
        text = (folder / "README.md").read_text(encoding="utf-8")
        programs[name] = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        assert len(programs[name]) == FORMATS
        assert all(len(program.splitlines()) <= MOST_LINES for program in programs[name])
    printed: dict[str, list[tuple[tuple[int, ...], float]]] = {name: [] for name in exported}
    for number in range(FORMATS):
        work = [(str(exported[name]), programs[name][number]) for name in exported]
        # -I: neither the folder of the process nor PYTHONPATH is searched for modules.
        child = subprocess.run(
            [sys.executable, "-I", "-c", STRANGER],
            input=json.dumps(work),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(place.parent),
                "CUDA_VISIBLE_DEVICES": "-1",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.returncode == 0, child.stderr
        lines = PRINTED.findall(child.stdout)
        assert len(lines) == len(exported), child.stdout
        for name, (shape, difference) in zip(exported, lines, strict=True):
            printed[name].append((tuple(map(int, shape.split(", "))), float(difference)))
    return printed


@pytest.fixture(scope="module")
def of_the_engines(place: Path, exported: dict[str, Path]) -> dict[str, dict[str, np.ndarray]]:
    """What each run's own engine generates from the same inputs, by workload, in a process for each
    engine.
    """
    for engine in ("tensorflow", "jax"):
        names = [
            name
            for name, system in SYSTEMS.items()
            if ("engine=jax" in system.options) == (engine == "jax")
        ]
        work = [
            (
                exported[name].name.removesuffix("-generator"),
                SYSTEMS[name].epoch,
                SYSTEMS[name].inputs,
                str(exported[name] / "example.npz"),
                str(place.parent / f"{name}.npz"),
            )
            for name in names
        ]
        program = f"""
import pathlib

import numpy
from gan_runtime.records.home import Home
from gan_runtime.training import checkpoints, inference

home = Home(pathlib.Path({str(place)!r}))
for name, epoch, names, example, target in {work!r}:
    run, example = home.run_dir(name), numpy.load(example)
    networks = inference.of_run(run, home)
    if epoch:
        stored = checkpoints.load_snapshot(run.snapshots, epoch)
        networks.engine.load({{**networks.checkpoint.arrays, **stored}})
    inputs = {{name: example[name] for name in names}}
    if "source" in inputs:
        inputs["target"] = inputs["source"][..., :3]  # shown next to what is generated
    numpy.savez(target, **networks.engine.generate(inputs))
"""
        subprocess.run([sys.executable, "-c", program], check=True, cwd=REPOSITORY)
    return {name: dict(np.load(place.parent / f"{name}.npz")) for name in exported}


@pytest.mark.timeout(900)  # four trainings and exports, and five processes that load a framework
@pytest.mark.parametrize("name", SYSTEMS)
def test_exported_generator_matches_the_engine_of_the_run(
    exported: dict[str, Path],
    differences: dict[str, list[tuple[tuple[int, ...], float]]],
    of_the_engines: dict[str, dict[str, np.ndarray]],
    name: str,
) -> None:
    system, example = SYSTEMS[name], np.load(exported[name] / "example.npz")
    assert set(example) == {*system.inputs, *system.outputs}
    assert [shape for shape, _ in differences[name]] == [(8, *system.shape)] * FORMATS
    assert max(difference for _, difference in differences[name]) < TOLERANCE
    for output in system.outputs:
        own = of_the_engines[name][output]
        assert example[output].std() > TOLERANCE, "there is nothing to compare"
        np.testing.assert_allclose(example[output], own, rtol=1e-3, atol=TOLERANCE)
