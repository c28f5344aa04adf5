"""docs/adding-a-workload.md keeps its word: its code, copied out of the page, trains on both engines and is seen on Live."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gan_runtime.home import HOME_VARIABLE, REPOSITORY
from gan_runtime.tpu import plan as planning
from tests.support import guide

NAME = "zq9_gan"  # of the workload where its name is not to matter; as long as the page's, so that lines end where they do there
OPTIONS = {"workload": "wgan_gp", "batch_size_global": 128, "epochs": 2, "accelerator": "cpu", "replicas": 2}
LIVE = """
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
app = AppTest.from_file("dashboard/frame/navigation.py", default_timeout=120)
app.switch_page(str(Path("pages/live.py").resolve()))
app.query_params["run"] = sys.argv[1]
app.run()  # its first screen
app.run()
assert not app.exception, app.exception
print([chart.proto.spec for chart in app.get("vega_lite_chart")])
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The project with the page's two files, and its line in the catalog."""
    root = tmp_path / "project"
    for folder in ("gan_runtime", "dashboard", "pages"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    guide.write_into(root)
    return root


@pytest.fixture(scope="module")
def copy_of_another_name(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The project with its tests and the page's workload under another name; the paths of its files."""
    root = tmp_path_factory.mktemp("copy") / "project"
    for folder in ("gan_runtime", "tests"):
        shutil.copytree(REPOSITORY / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(REPOSITORY / "pyproject.toml", root)
    return root, guide.write_into(root, NAME)


def ask(root: Path, *words: str) -> str:
    """What the copied project says."""
    environment = {**os.environ, "PYTHONPATH": str(root), HOME_VARIABLE: str(root / "home")}
    environment.pop("GAN_DATA_DIR", None)
    child = subprocess.run(
        [sys.executable, *words],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


def test_the_page_shows_an_entry_a_workload_and_a_line_of_the_catalog() -> None:
    assert list(guide.BLOCKS) == [
        "gan_runtime/catalog/wgan_gp.py",
        "gan_runtime/workloads/wgan_gp.py",
        "gan_runtime/catalog/__init__.py",
    ]


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check", "mypy --follow-imports=silent"])
def test_the_code_of_the_page_passes(copy_of_another_name: tuple[Path, list[str]], command: str) -> None:
    root, paths = copy_of_another_name
    ask(root, "-m", *command.split(), *paths)


def test_the_workload_of_the_page_passes_the_tests_of_every_workload(
    copy_of_another_name: tuple[Path, list[str]],
) -> None:
    root, _ = copy_of_another_name
    tests = ("tests/workloads/test_every_workload.py", "-k", NAME, "-n", "0")
    said = ask(root, "-m", "pytest", *tests)
    assert "failed" not in said


def test_the_workload_of_the_page_trains_on_both_engines_and_its_numbers_are_on_live(copy: Path) -> None:
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    for engine in ("tensorflow", "jax"):
        assert "finished" in ask(copy, "-m", "gan_runtime", "train", *options, f"--set=engine={engine}")
    runs = sorted(path.name for path in (copy / "home" / "runs").iterdir() if not path.name.startswith("."))
    assert len(runs) == 2
    for run in runs:
        journal = (copy / "home" / "runs" / run / "journal-0.jsonl").read_text(encoding="utf-8")
        spec = json.loads((copy / "home" / "runs" / run / "spec.json").read_text(encoding="utf-8"))
        assert (spec["adam_beta_1"], spec["adam_beta_2"]) == (0.0, 0.9), "algorithm 1"
        rows = [json.loads(line) for line in journal.splitlines()]
        values = [row["values"] for row in rows if row["kind"] == "scalars"]
        assert {"loss_generator", "loss_critic", "wasserstein"} <= set(values[0])
        live = ask(copy, "-c", LIVE, run)
        assert "Distance" in live, "the panel that the page declares"


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
def test_the_workload_of_the_page_compiles_for_a_tpu(copy: Path) -> None:
    options = ["--set=workload=wgan_gp", "--set=dataset=digits", "--set=batch_size_global=128"]
    said = json.loads(
        ask(copy, "-m", "gan_runtime", "tpu-check", "--topology=v3:2x2", "--no-sweep", "--json", *options)
    )
    (answer,) = said["answers"]
    assert (answer["refused"], answer["host_transfers"], said["trouble"]) == ("", [], "")
    critic, generator = 784 * 64 + 64 + 64 + 1, 32 * 64 + 64 + 64 * 784 + 784
    sent = 4 * (5 * critic + generator)  # float32 gradients of six phases
    assert answer["exchange_bytes"] == pytest.approx(sent, rel=0.02)
    assert any(one["layer"].startswith("critic ") for one in answer["dearest"])
