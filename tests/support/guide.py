"""Extracts the WGAN-GP of docs/adding-a-workload.md, into a copy of the project or into this
process.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

from gan_runtime import catalog
from gan_runtime.records.home import HOME_VARIABLE, REPOSITORY

PAGE = (REPOSITORY / "docs" / "adding-a-workload.md").read_text(encoding="utf-8")
CATALOG = "gan_runtime/catalog/__init__.py"
NAME = "wgan_gp"
_IMPORTS = re.compile(r"^from gan_runtime\.catalog import .+$", re.MULTILINE)
_TABLE = re.compile(r"^WORKLOADS: .+?(?=^\}$)", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"```python\n# (\S+?)(?:, in WORKLOADS)?\n(.*?)```", re.DOTALL)
# The code of each file by path: the workload's entry, the workload, and the line for the catalog.
BLOCKS: dict[str, str] = dict(_BLOCK.findall(PAGE))
FILES = tuple(path for path in BLOCKS if path != CATALOG)


def write_into(project: Path, name: str = NAME) -> list[str]:
    """Adds the page's two files and its line in the catalog to a copy of the project; returns the
    three paths. `name`: of the workload.
    """
    paths = [path.replace(NAME, name) for path in FILES]
    for path, copied in zip(FILES, paths, strict=True):
        (project / copied).write_text(BLOCKS[path].replace(NAME, name), encoding="utf-8")
    file = project / CATALOG
    text = _IMPORTS.sub(rf"\g<0>, {name}", file.read_text(encoding="utf-8"), count=1)
    line = f"    {BLOCKS[CATALOG].replace(NAME, name)}"
    file.write_text(_TABLE.sub(rf"\g<0>{line}", text, count=1), encoding="utf-8")
    return [*paths, CATALOG]


def copy_project(root: Path, *places: str) -> Path:
    """Copies files and folders of the project into a new folder, and returns it."""
    root.mkdir()
    for place in places:
        if (REPOSITORY / place).is_dir():
            shutil.copytree(
                REPOSITORY / place, root / place, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(REPOSITORY / place, root)
    return root


def ask(root: Path, *words: str) -> str:
    """Runs Python in the copied project; returns its output."""
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


def take_in() -> None:
    """Runs the page's two files as the modules that they are on the page, and adds their entry to
    the catalog. Imports Keras.
    """
    for path in FILES:
        name = _module(path)
        module = sys.modules[name] = ModuleType(name)
        exec(compile(BLOCKS[path], path, "exec"), vars(module))
    catalog.WORKLOADS[NAME] = sys.modules[_module(FILES[0])].ENTRY  # type: ignore[attr-defined]


def take_out() -> None:
    """Undoes `take_in`."""
    del catalog.WORKLOADS[NAME]
    for path in FILES:
        del sys.modules[_module(path)]


def _module(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")
