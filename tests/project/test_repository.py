"""Version, continuous integration and container images agree with the project."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import gan_runtime
from gan_runtime.records.home import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]


def text(path: str) -> str:
    return (REPOSITORY / path).read_text("utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    cited = re.search(r"^version: (\S+)$", text("CITATION.cff"), re.MULTILINE)
    newest = re.search(r"^## \[(\S+)\]", text("CHANGELOG.md"), re.MULTILINE)
    assert cited
    assert newest
    assert {cited[1], newest[1], PROJECT["version"]} == {gan_runtime.__version__}


def test_the_public_workflow_runs_ci_on_every_supported_python() -> None:
    workflow = text(".github/workflows/ci.yml")
    versions = re.search(r"python: \[(.+)\]", workflow)
    assert versions
    assert re.findall(r"3\.(\d+)", versions[1]) == ["11", "12", "13"]
    assert PROJECT["requires-python"] == ">=3.11,<3.14"
    assert "- run: .ci/run\n" in workflow


@pytest.mark.parametrize(
    ("path", "lock"),
    [("Dockerfile", "requirements.txt"), ("Dockerfile.gpu", "requirements-gpu.txt")],
)
def test_an_image_installs_locked_packages_and_starts_the_command(path: str, lock: str) -> None:
    image = text(path)
    assert f"--require-hashes --requirement locks/{lock}" in image
    assert (REPOSITORY / "locks" / lock).exists()
    command = re.search(r'^CMD \["([a-z-]+)", "serve"', image, re.MULTILINE)
    assert command
    assert command[1] in PROJECT["scripts"]


def test_changelog_sections_are_at_most_550_words() -> None:
    sections = re.split(r"^## ", text("CHANGELOG.md"), flags=re.MULTILINE)[1:]
    assert [section.split()[0] for section in sections] == ["[0.3.0]", "[0.2.0]"]
    assert all(len(section.split()) <= 550 for section in sections)


def test_the_container_volume_matches_the_installed_home_folder() -> None:
    folder = re.search(r"^VOLUME (\S+)$", text("Dockerfile"), re.MULTILINE)
    assert folder
    assert Path(folder[1]).name == "gan-dashboard"
