"""`pip install .`: the contents of the wheel, and a fresh environment that serves from it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest

from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY
from tests.support.sources import python_files

NOT_OURS = ("tests", "benchmarks", "examples", "scripts")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built without a network from the files in git, so that the project's folder is unchanged."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    for name in filter(None, files.stdout.split("\0")):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        os.link(REPOSITORY / name, source / name) if (REPOSITORY / name).exists() else None
    words = [
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--wheel-dir",
        str(folder),
        str(source),
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", *words], check=True, capture_output=True, timeout=120
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel, the libraries of this environment, and no module of the
    project's folder.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = next(path for path in sys.path if path.endswith("site-packages"))
    (site / "libraries.pth").write_text(libraries + "\n", encoding="utf-8")
    words = ["install", "--no-deps", "--no-index", str(wheel)]
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), *words]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return folder


def program(environment: Path, folder: Path, *words: str) -> subprocess.Popen[str]:
    """Starts the environment's `gan-dashboard` in another folder, which is the user's home."""
    variables = {**os.environ, "HOME": str(folder)}
    variables.pop(HOME_VARIABLE, None)
    variables.pop("PYTHONPATH", None)
    command = [environment / "bin" / "gan-dashboard", *words]
    return subprocess.Popen(
        command,
        cwd=folder,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_wheel_has_every_module_and_the_files_they_read(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    modules = {str(path) for path in python_files() if path.parts[0] not in NOT_OURS}
    assert modules - names == set()
    beside = {".css", ".js", ".html", ".png", ".svg", ".sql", ".pyi"}
    read = {
        str(path.relative_to(REPOSITORY))
        for folder in ("gan_runtime", "dashboard", "pages")
        for path in (REPOSITORY / folder).rglob("*")
        if path.suffix in beside or path.name == "py.typed"
    }
    assert "gan_runtime/store/schema.sql" in read
    assert read - names == set()
    shared = {name.partition("/data/share/gan-dashboard/")[2] for name in names}
    assert {
        ".streamlit/config.toml",
        "examples/paper.zip",
        "benchmarks/results/latest.jsonl",
    } <= shared
    assert not {name.partition("/")[0] for name in names} & set(NOT_OURS)


def test_installed_command_line_keeps_its_home_outside_the_modules(
    environment: Path, tmp_path: Path
) -> None:
    said, _ = program(environment, tmp_path, "--help").communicate(timeout=60)
    assert "Usage: gan-dashboard" in said
    said, _ = program(environment, tmp_path, "runs").communicate(timeout=60)
    assert "start one with `gan-dashboard train --preset quick`" in said
    said, _ = program(environment, tmp_path, "import", "--json").communicate(timeout=60)
    assert len(list((tmp_path / "gan-dashboard" / "runs").glob("example-*"))) > 10, said


def test_installed_dashboard_serves_with_the_project_settings(
    environment: Path, tmp_path: Path
) -> None:
    serving = program(environment, tmp_path, "serve", "--port", "8973")
    request = urllib.request.Request("http://127.0.0.1:8973/", headers={"Accept": "text/html"})
    try:
        page = ""
        for _ in range(200):
            time.sleep(0.1)
            try:
                page = urllib.request.urlopen(request, timeout=5).read().decode()
                break
            except OSError:
                continue
        refusal = (REPOSITORY / "dashboard" / "frame" / "refusal.js").read_text(encoding="utf-8")
        assert refusal in page, "the page as dashboard/frame/front_page.py gives it"
        look = "import sys; sys.argv = ['x']; from dashboard.frame import process"
        settings = (
            f"{look}; process.use_settings(); from streamlit import config;"
            " print(config.get_option('theme.primaryColor'))"
        )
        said = subprocess.run(
            [environment / "bin" / "python", "-c", settings],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert said.stdout.strip() == "#0072B2"
    finally:
        serving.terminate()
        serving.communicate(timeout=30)
