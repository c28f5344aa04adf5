"""`make setup` in its own folder, with an environment that counts as created; installs nothing."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gan_runtime.records.home import REPOSITORY

TPU_LIST = "requirements-tpu-tensorflow.txt"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Makefile, setup script and requirements lists, with an environment created from the list for
    TensorFlow on a TPU.
    """
    for name in ("Makefile", *(path.name for path in REPOSITORY.glob("requirements*.txt"))):
        shutil.copy(REPOSITORY / name, tmp_path)
    for folder in ("scripts", "locks"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    lists = b"".join(
        (tmp_path / name).read_bytes()
        for name in ("requirements.txt", TPU_LIST, f"locks/{TPU_LIST}")
    )
    (tmp_path / ".venv" / f".installed-{TPU_LIST}").write_text(
        f"{hashlib.sha256(lists).hexdigest()}  -\n"
    )
    return tmp_path


def make(project: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "-C", str(project), *words], capture_output=True, text=True, check=False
    )


def test_a_requirements_list_is_remembered_by_later_setups(project: Path) -> None:
    assert make(project, "setup", f"REQUIREMENTS={TPU_LIST}").returncode == 0
    again = make(project, "setup")  # `make run` and every other target begin with it
    assert (again.returncode, again.stderr) == (0, "")


def test_an_environment_from_another_list_is_refused_with_a_fix(project: Path) -> None:
    refused = make(project, "setup")
    assert refused.returncode != 0
    assert "run make clean, then make setup" in refused.stderr
