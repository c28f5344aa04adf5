"""Host files available in the browser: those below GAN_DATA_DIR."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import builtin_sets, uploads
from gan_runtime.data.uploads import OfferedFiles
from tests.support.plain_user import without_rights


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """GAN_DATA_DIR with folders, files, a hidden folder and a link to the outside."""
    path = tmp_path / "data"
    for folder in ("photos/cats", "photos/.hidden", "mnist"):
        (path / folder).mkdir(parents=True)
    for file in ("birds.ZIP", "photos/more.zip", "notes.txt"):
        (path / file).touch()
    (tmp_path / "secret.zip").touch()
    (path / "out").symlink_to(tmp_path)
    monkeypatch.setenv("GAN_DATA_DIR", str(path))
    return path


def sentence(name: str) -> str:
    with pytest.raises(DatasetError) as refused:
        uploads.path_of(name)
    return str(refused.value)


@pytest.mark.usefixtures("root")
def test_folders_and_zips_are_offered() -> None:
    offered = uploads.offered_files()
    assert offered.names == ["birds.ZIP", "mnist", "photos", "photos/cats", "photos/more.zip"]
    assert offered.problems == []


def test_a_download_with_a_query_in_its_name_is_offered(root: Path) -> None:
    (root / "dataset_3_1.hdf5?download=1").touch()
    assert "dataset_3_1.hdf5?download=1" in uploads.offered_files((".h5", ".hdf5")).names


def test_offered_files_can_be_selected(root: Path) -> None:
    names = uploads.offered_files().names
    assert [uploads.path_of(name) for name in names] == [root / name for name in names]


@pytest.mark.parametrize(
    "name", ["..", "../secret.zip", "out/secret.zip", "/etc/passwd", "photos/../../secret.zip"]
)
def test_files_outside_the_data_folder_cannot_be_selected(root: Path, name: str) -> None:
    assert (
        sentence(name)
        == f"{name!r} is outside of {root} (GAN_DATA_DIR): put the files below {root}, or upload"
        " them in the browser."
    )


@pytest.mark.parametrize("name", ["none.zip", "x" * 300, "a\0b"])
def test_missing_files_are_reported(root: Path, name: str) -> None:
    assert sentence(name).startswith(f"{root} has no '")
    assert sentence(name).endswith(f": put the files below {root}, or upload them in the browser.")


def test_files_that_cannot_be_offered_are_named_with_the_reason(root: Path) -> None:
    (root / os.fsdecode(b"\xff")).mkdir()
    denied = "cannot be read (Permission denied): give the user of the dashboard read permission."
    with without_rights(root / "photos"):
        offered = uploads.offered_files()
        assert sentence("photos/cats") == f"{root}/photos/cats {denied}"
    assert offered.names == ["birds.ZIP", "mnist", "photos"]
    assert offered.problems == [
        f"{root}/photos {denied}",
        f"{root}/? cannot be listed, since its name is not UTF-8: rename it.",
    ]
    with without_rights(root):
        assert uploads.offered_files() == OfferedFiles([], [f"{root} {denied}"])
        for look in (builtin_sets.availability, builtin_sets.fields, builtin_sets.load):
            with pytest.raises(
                DatasetError,
                match=r"data/mnist cannot be read \(Permission denied\): give this user",
            ):
                look("mnist")
    with (
        without_rights(root.parent),
        pytest.raises(DatasetError, match=r"which cannot be read \(Permission"),
    ):
        builtin_sets.availability("mnist")


def test_nothing_is_offered_without_gan_data_dir(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("GAN_DATA_DIR", raising=False)
    assert uploads.offered_files() == OfferedFiles()
    assert sentence("x").startswith("GAN_DATA_DIR is not set: set it to a folder of data")
    monkeypatch.setenv("GAN_DATA_DIR", str(tmp_path / "none"))
    [problem] = uploads.offered_files().problems
    assert "which is not a folder" in problem
    assert "which is not a folder" in sentence("x")
