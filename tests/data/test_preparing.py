"""Image preparation: all-or-nothing results, and refused requests."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gan_runtime.base.errors import HomeError, SpecError
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.data import loading, preparations, prepared
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.records.home import Home
from tests.data.conftest import GREEN, Pack, encoded
from tests.data.two_classes import TWO_CLASSES, preparation, quiet, sentence


class CancelledError(Exception):
    """Raised by a caller to cancel."""


@pytest.mark.parametrize("moment", ["Reading", "Converting 0", "Converted"])
def test_a_cancelled_preparation_leaves_nothing(home: Home, pack: Pack, moment: str) -> None:
    def progress(_done: int, _total: int, what: str) -> None:
        if what.startswith(moment):
            raise CancelledError

    with pytest.raises(CancelledError):
        preparations.prepare(home, preparation(pack(TWO_CLASSES)), progress)
    assert not home.data.exists() or not list(home.data.iterdir())


def test_cancel_is_possible_until_the_data_set_is_put_in_place(home: Home, pack: Pack) -> None:
    def placing() -> None:
        assert not prepared.names(home)
        raise CancelledError

    with pytest.raises(CancelledError):
        preparations.prepare(home, preparation(pack(TWO_CLASSES)), quiet, placing=placing)
    assert not list(home.data.iterdir())


def test_a_full_disk_leaves_no_data_set(home: Home, pack: Pack, files_end_at: Any) -> None:
    source = pack(TWO_CLASSES)
    with files_end_at(5_000), pytest.raises((HomeError, OSError)):
        preparations.prepare(home, preparation(source), quiet)
    assert not list(home.data.iterdir())


def test_insufficient_disk_space_is_reported_before_writing(
    home: Home, pack: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
    said = sentence(
        preparations.prepare, home, preparation(pack(TWO_CLASSES)), quiet, kind=HomeError
    )
    assert "has 1 kB left, but a data set of 10 images needs 20 MB" in said
    assert not list(home.data.iterdir())


def test_the_same_images_with_the_same_options_are_not_prepared_twice(
    home: Home, pack: Pack
) -> None:
    source = pack(TWO_CLASSES)
    first = preparations.prepare(home, preparation(source), quiet)
    messages: list[str] = []
    again = preparations.prepare(
        home, preparation(source), lambda _done, _total, what: messages.append(what)
    )
    assert again == first
    assert not [what for what in messages if what.startswith("Convert")]


def test_an_existing_name_is_not_reused_for_another_data_set(home: Home, pack: Pack) -> None:
    source = pack(TWO_CLASSES)
    preparations.prepare(home, preparation(source), quiet)
    assert (
        sentence(preparations.prepare, home, preparation(source, color="gray"), quiet)
        == "data set photos exists already, from other files, with other options or by another"
        " version: choose another name, or remove it first."
    )
    assert loading.load("photos", home).fields["images"].shape == (32, 32, 3)


def test_the_first_of_two_preparations_with_one_name_wins(home: Home, pack: Pack) -> None:
    source, other = pack(TWO_CLASSES), pack({"1.png": encoded(GREEN)}, "other.zip")
    said = sentence(
        lambda: preparations.prepare(
            home,
            preparation(other),
            quiet,
            placing=lambda: preparations.prepare(home, preparation(source), quiet),
        )
    )
    assert said.startswith("data set photos exists already")
    assert [path.name for path in home.data.iterdir()] == ["photos"]
    assert loading.load("photos", home).rows == 10


def test_all_wrong_options_are_reported_together(pack: Pack) -> None:
    wrong = PreparationRequest(
        "pictures",
        "photos",
        pack(TWO_CLASSES),
        {"pixels": "65", "held_out_percent": "90", "size": "3"},
    )
    said = sentence(wrong.check, kind=SpecError)
    assert "'size' is not an option of this preparation: use one of pixels, color" in said
    assert "Image size (pixels) is '65', but allowed is auto, 28, 32, 64, 128" in said
    assert "but allowed is at least 0 and at most 50" in said


@pytest.mark.parametrize("name", ["Photos", "../x", "a b", ".new-x", "-x", "x" * 61])
def test_an_invalid_data_set_name_is_refused(pack: Pack, name: str) -> None:
    assert "cannot name a data set: use 1 to 60 of a–z" in sentence(
        PreparationRequest("pictures", name, pack({})).check
    )


def test_missing_or_superfluous_arguments_are_reported(tmp_path: Path) -> None:
    assert (
        sentence(PreparationRequest("digits").check)
        == "'digits' is not a preparation: use one of pictures, picture_pairs, mnist,"
        " fashion_mnist, showers, showers_tiny, showers_hdf5, calochallenge, karman, karman_small."
    )
    assert (
        sentence(PreparationRequest("pictures", "photos").check)
        == "pictures needs a folder or a .zip: name it with --from."
    )
    assert sentence(PreparationRequest("pictures", "mnist", tmp_path).check).startswith(
        "mnist is a built-in data set"
    )
    assert sentence(PreparationRequest("mnist", source=tmp_path).check).startswith(
        "mnist is a download with a fixed name"
    )
    assert (
        sentence(preparations.survey, PreparationRequest("mnist"), quiet)
        == "mnist has no preview: prepare it."
    )


class LinesOfAFile:
    """A preparation's maker that opens its source without a check, as a first version may."""

    def content(self, source: Path, _progress: Any) -> str:
        return source.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "reason"),
    [("a-folder", "Is a directory"), ("missing.csv", "No such file or directory")],
)
def test_a_source_that_a_maker_cannot_open_is_explained(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    csv = Preparation("Lines", "Lines of a file.", maker="lines", source="a .csv file", name="csv")
    monkeypatch.setitem(preparations.PREPARATIONS, "csv", csv)
    monkeypatch.setattr(preparations, "maker_of", lambda _: LinesOfAFile())
    monkeypatch.chdir(tmp_path)  # long paths are cut
    (tmp_path / "a-folder").mkdir()
    request = PreparationRequest("csv", source=Path(name))
    assert (
        sentence(preparations.prepare, home, request, quiet)
        == f"'{name}' cannot be read ({reason}): csv needs a .csv file."
    )
    assert not home.data.exists()
