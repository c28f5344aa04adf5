"""docs/adding-a-workload.md: its code passes ruff, and its entry is in the catalog.

tests/full/project/test_adding_a_workload.py trains the workload.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import guide

# Name of the workload where the name does not matter. It is as long as the page's, so that lines
# wrap at the same places.
NAME = "zq9_gan"
BUILD = """
from gan_runtime import catalog
from gan_runtime.spec import RunSpec
spec = RunSpec.parse({"workload": "NAME"})
print(spec.entry.title, [network.name for network in spec.entry.networks], spec.entry.module)
""".replace("NAME", NAME)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A copy of the project with the page's workload, renamed; and the paths of its files."""
    root = guide.copy_project(
        tmp_path_factory.mktemp("copy") / "project", "gan_runtime", "pyproject.toml"
    )
    return root, guide.write_into(root, NAME)


def test_the_page_shows_an_entry_a_workload_and_a_line_of_the_catalog() -> None:
    assert list(guide.BLOCKS) == [
        "gan_runtime/catalog/wgan_gp.py",
        "gan_runtime/workloads/wgan_gp.py",
        "gan_runtime/catalog/__init__.py",
    ]


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check"])
def test_the_code_on_the_page_passes_ruff(copy: tuple[Path, list[str]], command: str) -> None:
    root, paths = copy
    guide.ask(root, "-m", *command.split(), *paths)


def test_the_entry_on_the_page_is_in_the_catalog(copy: tuple[Path, list[str]]) -> None:
    root, _ = copy
    said = guide.ask(root, "-c", BUILD)
    assert said.strip().endswith(f"['generator', 'critic'] gan_runtime.workloads.{NAME}")
