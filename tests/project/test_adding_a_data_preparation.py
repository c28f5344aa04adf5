"""docs/adding-a-data-preparation.md: its code passes ruff, prepares a file and refuses others."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import IMAGES
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.data import prepared
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest, prepare
from gan_runtime.records.home import Home
from tests.support import guide
from tests.support.preparation_page import BLOCKS, FILE, TABLE

IMAGES_OF_FILE = np.arange(12 * 28 * 28, dtype=np.uint32).reshape(12, 28, 28, 1).astype(np.uint8)


@pytest.fixture(autouse=True)
def npz(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's file as a module, and its row in the table."""
    name = FILE.removesuffix(".py").replace("/", ".")
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(BLOCKS[FILE], FILE, "exec"), vars(module))
    names = {"Preparation": Preparation, "npz_images": module}
    for row, declared in eval(f"{{{BLOCKS[TABLE]}}}", names).items():
        monkeypatch.setitem(PREPARATIONS, row, declared)


def prepared_set(home: Home, source: Path, held_out: int = 2) -> None:
    request = PreparationRequest("npz", "mine", source, {"held_out": str(held_out)})
    prepare(home, request, lambda *_: None)


@pytest.mark.parametrize("command", ["ruff check", "ruff format --check"])
def test_the_code_on_the_page_passes_ruff(tmp_path: Path, command: str) -> None:
    root = guide.copy_project(tmp_path / "project", "gan_runtime", "pyproject.toml")
    (root / FILE).write_text(BLOCKS[FILE], encoding="utf-8")
    guide.ask(root, "-m", *command.split(), FILE)


def test_it_prepares_a_file(home: Home, tmp_path: Path) -> None:
    np.savez(tmp_path / "images.npz", images=IMAGES_OF_FILE)
    prepared_set(home, tmp_path / "images.npz")
    stored = prepared.open_set(home, "mine")
    assert (stored.rows, stored.held_out) == (10, 2)
    assert np.array_equal(stored.read(np.arange(10))[IMAGES], IMAGES_OF_FILE[:10])
    assert np.array_equal(stored.read_held_out(2)[IMAGES], IMAGES_OF_FILE[10:])


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"pictures": IMAGES_OF_FILE}, "no array 'images'"),
        ({"images": IMAGES_OF_FILE.astype(np.float32)}, "float32"),
        ({"images": IMAGES_OF_FILE[:2]}, "hold out fewer"),
    ],
)
def test_it_refuses_other_files_and_leaves_nothing(
    home: Home, tmp_path: Path, arrays: dict[str, np.ndarray], words: str
) -> None:
    np.savez(tmp_path / "images.npz", **arrays)
    with pytest.raises(DatasetError, match=words):
        prepared_set(home, tmp_path / "images.npz")
    assert prepared.names(home) == []
