"""Code copied from docs/adding-a-workload.md passes mypy and the tests of every workload, trains on
both engines, appears on Live and compiles for a TPU.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gan_runtime.tpu import plan as planning
from tests.support import evaluation_page, guide

# Name of the workload where the name does not matter; as long as the one on the page, so that lines
# end at the same place.
NAME = "zq9_gan"
OPTIONS = {
    "workload": "wgan_gp",
    "batch_size_global": 128,
    "epochs": 2,
    "accelerator": "cpu",
    "replicas": 2,
}
LIVE = """
import sys
from pathlib import Path
from streamlit.testing.v1 import AppTest
for run in sys.argv[1:]:
    app = AppTest.from_file("dashboard/navigation.py", default_timeout=120)
    app.switch_page(str(Path("pages/run.py").resolve()))
    app.query_params["run"] = run
    app.run()  # its first screen
    app.run()
    assert not app.exception, app.exception
    print([chart.proto.spec for chart in app.get("vega_lite_chart")])
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project with the page's two files and its line in the catalog."""
    root = guide.copy_project(tmp_path / "project", "gan_runtime", "dashboard", "pages")
    guide.write_into(root)
    return root


def test_code_of_both_guides_passes_mypy(tmp_path: Path) -> None:
    """Also that of docs/adding-an-evaluation.md."""
    root = guide.copy_project(tmp_path / "project", "gan_runtime", "pyproject.toml")
    files = [*guide.write_into(root, NAME), *evaluation_page.write_into(root)]
    guide.ask(root, "-m", "mypy", "--follow-imports=silent", *files)


def test_guide_workload_passes_the_tests_of_every_workload(tmp_path: Path) -> None:
    root = guide.copy_project(tmp_path / "project", "gan_runtime", "tests", "pyproject.toml")
    guide.write_into(root, NAME)
    tests = [str(path.relative_to(root)) for path in root.glob("tests/**/test_every_workload.py")]
    said = guide.ask(root, "-m", "pytest", *tests, "-k", NAME, "-n", "0")
    assert "failed" not in said


def test_guide_workload_trains_on_both_engines_and_has_its_chart(
    copy: Path,
) -> None:
    options = [f"--set={name}={value}" for name, value in OPTIONS.items()]
    for engine in ("tensorflow", "jax"):
        assert "finished" in guide.ask(
            copy, "-m", "gan_runtime", "train", *options, f"--set=engine={engine}"
        )
    runs = sorted(
        path.name for path in (copy / "home" / "runs").iterdir() if not path.name.startswith(".")
    )
    assert len(runs) == 2
    for run in runs:
        journal = (copy / "home" / "runs" / run / "journal-0.jsonl").read_text(encoding="utf-8")
        spec = json.loads((copy / "home" / "runs" / run / "spec.json").read_text(encoding="utf-8"))
        assert (spec["adam_beta_1"], spec["adam_beta_2"]) == (0.0, 0.9), "algorithm 1"
        rows = [json.loads(line) for line in journal.splitlines()]
        values = [row["values"] for row in rows if row["kind"] == "scalars"]
        assert {"loss_generator", "loss_critic", "wasserstein"} <= set(values[0])
    live = guide.ask(copy, "-c", LIVE, *runs).splitlines()
    assert ["Distance" in charts for charts in live] == [
        True,
        True,
    ], "the panel that the page declares"


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
def test_guide_workload_compiles_for_a_tpu(copy: Path) -> None:
    options = ["--set=workload=wgan_gp", "--set=dataset=digits", "--set=batch_size_global=128"]
    said = json.loads(
        guide.ask(
            copy,
            "-m",
            "gan_runtime",
            "tpu-check",
            "--topology=v3:2x2",
            "--no-sweep",
            "--json",
            *options,
        )
    )
    (answer,) = said["answers"]
    assert (answer["refused"], answer["host_transfers"], said["trouble"]) == ("", [], "")
    critic, generator = 784 * 64 + 64 + 64 + 1, 32 * 64 + 64 + 64 * 784 + 784
    sent = 4 * (5 * critic + generator)  # float32 gradients of six phases
    assert answer["exchange_bytes"] == pytest.approx(sent, rel=0.02)
    assert any(operation["layer"].startswith("critic ") for operation in answer["most_expensive"])
