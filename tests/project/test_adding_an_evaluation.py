"""docs/adding-an-evaluation.md: its code passes ruff and computes what the page describes.

tests/full/project/test_adding_an_evaluation.py evaluates a run with it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support import evaluation_page, guide


def test_the_page_shows_one_file_and_one_line() -> None:
    assert list(evaluation_page.BLOCKS) == [evaluation_page.FILE, evaluation_page.TABLE]
    assert len(evaluation_page.BLOCKS[evaluation_page.TABLE].splitlines()) == 1


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check"])
def test_the_code_on_the_page_passes_ruff(tmp_path: Path, command: str) -> None:
    root = guide.copy_project(tmp_path / "project", "gan_runtime", "pyproject.toml")
    guide.ask(root, "-m", *command.split(), *evaluation_page.write_into(root))


@pytest.fixture
def sharpness() -> ModuleType:
    """The page's file as a module."""
    name = "gan_runtime.evaluation.sharpness"
    module = sys.modules[name] = ModuleType(name)
    exec(
        compile(evaluation_page.BLOCKS[evaluation_page.FILE], evaluation_page.FILE, "exec"),
        vars(module),
    )
    yield module
    del sys.modules[name]


def test_sharpness_is_the_mean_neighbor_difference_along_both_axes(
    sharpness: ModuleType,
) -> None:
    stripes = np.zeros((2, 4, 4, 1), np.float32)
    stripes[1, :, ::2] = 1.0  # every step along a row is 1, none along a column
    assert sharpness.sharpness(stripes).tolist() == [0.0, 0.5]


def test_the_page_shows_the_evaluate_command() -> None:
    assert re.search(
        r"^python -m gan_runtime evaluate \S+ sharpness", evaluation_page.PAGE, re.MULTILINE
    )
