"""The program of docs/python.md runs, its package is listed and trains, and the accompanying
notebook runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY
from tests.support import python_page


def python(folder: Path, *words: str, packages: Path | None = None) -> str:
    """Runs Python in its own folder with the project importable as if installed; returns the
    output.
    """
    path = os.pathsep.join(str(place) for place in (REPOSITORY, packages) if place)
    environment = {**os.environ, "PYTHONPATH": path, HOME_VARIABLE: str(folder / "home")}
    child = subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout + child.stderr


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder of modules with the page's package."""
    folder = tmp_path / "packages"
    folder.mkdir()
    return python_page.install(folder)


def test_program_in_the_docs_runs(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(python_page.PROGRAM, encoding="utf-8")
    said = python(tmp_path, "program.py")
    assert "run-0001 finished" in said
    assert "(238, 238, 3) uint8" in said
    assert "loss_surface" in said


def test_package_in_the_docs_is_listed_and_trains(tmp_path: Path, packages: Path) -> None:
    offered = json.loads(
        python(tmp_path, "-m", "gan_runtime", "data", "list", "--json", packages=packages)
    )
    assert "spots" in [data_set["data_set"] for data_set in offered]
    words = ("train", "--preset=spots", "--set=epochs=2", "--set=accelerator=cpu")
    said = python(tmp_path, "-m", "gan_runtime", *words, packages=packages)
    assert "spots-0001 is finished" in said
    (pictures,) = (tmp_path / "home" / "runs").glob("spots-*/samples/*-00002.png")
    assert pictures.stat().st_size > 1_000
    words = ("evaluate", "spots-0001", "brightness", "--json")
    measured = json.loads(python(tmp_path, "-m", "gan_runtime", *words, packages=packages))
    assert [score["name"] for score in measured["scores"]] == ["distance", "mean"]
    shown = json.loads(
        python(tmp_path, "-m", "gan_runtime", "show", "spots-0001", "--json", packages=packages)
    )
    assert "the median score is" in shown["run"]["verdict"]


def test_program_registers_uninstalled_workload_and_data_set(
    tmp_path: Path, packages: Path
) -> None:
    (tmp_path / "program.py").write_text(
        f"""import sys
sys.path.append({str(packages / "bare")!r})
import gan_runtime as gan
gan.register_workload("spots_gan", "spots_gan.entry:ENTRY")
gan.register_data_set("spots", "spots_gan.entry:SPOTS")
spec = {{"workload": "spots_gan", "dataset": "spots", "epochs": 1, "accelerator": "cpu"}}
print(gan.train(gan.open_home("home"), spec), "is done")
""",
        encoding="utf-8",
    )
    (packages / "bare").mkdir()
    (packages / "spots_gan").rename(packages / "bare" / "spots_gan")
    assert "run-0001 is done" in python(tmp_path, "program.py")


def test_notebook_runs(tmp_path: Path) -> None:
    notebook = json.loads(
        (REPOSITORY / "examples" / "first_steps.ipynb").read_text(encoding="utf-8")
    )
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell.get("outputs") for cell in notebook["cells"]), (
        "it is stored without what it printed"
    )
    (tmp_path / "program.py").write_text("\n\n".join(cells), encoding="utf-8")
    assert "finished" in python(tmp_path, "program.py")
