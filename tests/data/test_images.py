"""Images become a data set: labels from folders, a preview before anything is stored."""

from __future__ import annotations

import io
import os
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gan_runtime.base.errors import SpecError
from gan_runtime.data import images, loading, preparations, prepared
from gan_runtime.data.contract import DataSet
from gan_runtime.data.image_pairs import ImagePairOptions
from gan_runtime.records.home import Home
from tests.data.conftest import GREEN, RED, Pack, encoded
from tests.data.two_classes import TWO_CLASSES, preparation, quiet, sentence

# ---- prepared data sets --------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_subfolders_become_labels(home: Home, way: str, request: pytest.FixtureRequest) -> None:
    manifest = preparations.prepare(
        home, preparation(request.getfixturevalue(way)(TWO_CLASSES)), quiet
    )
    data = loading.load("photos", home)
    assert data.resident is not None
    assert data.fields["labels"].classes == ("cats", "dogs")
    assert data.resident["images"].shape == (10, 32, 32, 3)
    reddish = data.resident["images"][:, 16, 16, 0] > 128
    assert np.array_equal(data.resident["labels"] == 0, reddish)
    assert manifest is not None
    assert manifest.counts == {"cats": 6, "dogs": 4}


def test_the_first_rows_mix_all_classes_reproducibly(spread: Pack) -> None:
    files = {f"{name}/{number}.png": encoded(RED) for name in "ab" for number in range(40)}
    first = preparations.survey(preparation(spread(files)), quiet)
    assert 5 < first.grid_labels[:20].count("a") < 15
    assert (
        preparations.survey(preparation(spread(files, "again")), quiet).grid_labels
        == first.grid_labels
    )


def test_images_without_subfolders_have_no_labels(home: Home, spread: Pack) -> None:
    preparations.prepare(
        home,
        preparation(spread({"top/1.png": encoded(), "top/2.png": encoded(), "readme.txt": b"x"})),
        quiet,
    )
    assert list(loading.fields_of("photos", home)) == ["images"]
    assert loading.availability("photos", home).images == 2


def test_labels_are_skipped_on_request(home: Home, spread: Pack) -> None:
    preparations.prepare(home, preparation(spread(TWO_CLASSES), labels="none"), quiet)
    data = loading.load("photos", home)
    assert (list(data.fields), data.rows) == (["images"], 10)


def test_held_out_rows_are_never_training_rows(home: Home, spread: Pack) -> None:
    files = {f"{number}.png": encoded((number,)) for number in range(20)}
    preparations.prepare(
        home, preparation(spread(files), held_out_percent="25", color="gray"), quiet
    )
    data = loading.load("photos", home)
    assert (data.rows, data.held_out) == (15, 5)
    trained = set(data.read(np.arange(15))["images"][:, 0, 0, 0])
    held_out = set(data.read_held_out(99)["images"][:, 0, 0, 0])
    assert trained | held_out == set(range(20))
    assert not trained & held_out


def test_gray_is_read_in_the_spelling_of_earlier_versions(spread: Pack) -> None:
    source = spread({"1.png": encoded((*RED, 0))})
    new, old = (
        preparations.survey(preparation(source, color=gray, ground=gray), quiet)
        for gray in ("gray", "grey")
    )
    assert new.grid.shape == (1, 32, 32, 1)
    assert set(new.grid.ravel()) == set(old.grid.ravel()) == {128}
    assert preparation(source, color="grey").check().model_dump()["color"] == "gray"
    assert ImagePairOptions(ground="grey") == ImagePairOptions(ground="gray")
    assert "color is 'green', but allowed is gray, rgb: " in sentence(
        preparations.survey, preparation(source, color="green"), quiet, kind=SpecError
    )


def split_of(home: Home, source: Path, **options: Any) -> DataSet:
    preparations.prepare(home, preparation(source, **options), quiet)
    return loading.load("photos", home)


@pytest.mark.parametrize("way", ["pack", "spread"])
def test_images_in_a_test_folder_are_held_out_and_not_a_class(
    home: Home, way: str, request: pytest.FixtureRequest
) -> None:
    """Training images are red, those of val and test green."""
    trained = {
        f"set/train/{name}/{number}.png": encoded(RED)
        for name in ("ant", "bee")
        for number in range(5)
    }
    more = {
        "set/VAL/ant/1.png": encoded(GREEN),
        "set/Testing/bee/1.png": encoded(GREEN),
        "set/Testing/bee/2.png": encoded(GREEN),
    }
    data = split_of(home, request.getfixturevalue(way)({**trained, **more}), held_out_percent="50")
    assert (data.rows, data.held_out) == (10, 3)
    assert data.fields["labels"].classes == ("ant", "bee")
    assert (data.read(np.arange(10))["images"][..., 1] == 0).all()
    held_out = data.read_held_out(99)
    assert (held_out["images"][:, 16, 16, 1] == 255).all()
    assert sorted(held_out["labels"]) == [0, 1, 1]
    manifest = prepared.manifest(home, "photos")
    assert manifest.held_out_splits == {"val": 1, "test": 2}
    assert manifest.by_split() == {"ant": (5, 1), "bee": (5, 2)}
    assert "Held out by their folders: test 2, val 1." in manifest.sentences()


def test_a_class_only_in_held_out_images_is_skipped(home: Home, spread: Pack) -> None:
    data = split_of(
        home,
        spread(
            {
                "train/ant/1.png": encoded(),
                "train/bee/2.png": encoded(),
                "test/cow/3.png": encoded(),
            }
        ),
    )
    assert (data.rows, data.held_out, data.fields["labels"].classes) == (2, 0, ("ant", "bee"))
    [skip] = prepared.manifest(home, "photos").skipped.first
    assert (skip.name, skip.reason) == ("test/cow/3.png", "no image of its class is trained on")


def test_a_data_set_without_usable_training_images_is_refused(home: Home, spread: Pack) -> None:
    source = spread({"train/1.png": encoded()[:60], "test/2.png": encoded()})
    assert (
        sentence(split_of, home, source)
        == "no image can be used for training (1 file skipped). train/1.png: it is damaged: give"
        " other images."
    )


def test_class_folders_are_found_for_any_image_file_suffix(home: Home, spread: Pack) -> None:
    files = {
        "top/ants/1.pjpeg": encoded(form="JPEG"),
        "top/ants/2": encoded(),
        "top/bees/old/3.png": encoded(),
        "other/list.png": b"text",
    }
    assert split_of(home, spread(files)).fields["labels"].classes == ("ants", "bees")


@pytest.mark.parametrize(
    ("first", "second", "class_name"),
    [("a\nb", "a\rb", "'a\ufffdb'"), (b"a\xe8", b"a\xe9", "'a?'")],
)
def test_folders_with_indistinguishable_names_are_not_merged(
    home: Home, tmp_path: Path, first: str | bytes, second: str | bytes, class_name: str
) -> None:
    for name in map(os.fsdecode, (first, second)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        (tmp_path / "photos" / name / "1.png").write_bytes(encoded())
    said = sentence(split_of, home, tmp_path / "photos")
    assert said.startswith(
        f"the folders {os.fsdecode(first)!r} and {os.fsdecode(second)!r} would both be the class"
        f" {class_name}"
    )
    assert said.isprintable()
    assert split_of(home, tmp_path / "photos", labels="none").rows == 2


def test_unicode_normal_forms_of_a_folder_are_one_class(home: Home, spread: Pack) -> None:
    names = [unicodedata.normalize(form, "crème") for form in ("NFC", "NFD")]
    files = {f"{name}/{number}.png": encoded() for number, name in enumerate([*names, "tea"])}
    split_of(home, spread(files))
    assert prepared.manifest(home, "photos").counts == {names[0]: 2, "tea": 1}


# ---- skipped and refused files -------------------------------------------------------------------


def test_a_survey_previews_rows_and_skipped_files(home: Home, pack: Pack) -> None:
    more = {
        "top/cats/broken.png": encoded()[:60],
        "top/cats/small.png": encoded(size=(20, 50)),
        "top/notes.txt": b"x",
        "top/alone.png": encoded(),
        "top/._1.png": b"x",
        ".DS_Store": b"x",
    }
    survey = preparations.survey(
        preparation(pack({**TWO_CLASSES, **more}), held_out_percent="20"), quiet
    )
    assert (survey.rows, survey.summary.held_out, survey.summary.counts) == (
        8,
        2,
        {"cats": 6, "dogs": 4},
    )
    assert survey.grid.shape == (10, 32, 32, 3)
    assert [label == "cats" for label in survey.grid_labels] == [
        bool(row[0, 0, 0] > 128) for row in survey.grid
    ]
    assert {skip.name: skip.reason for skip in survey.summary.skipped.first} == {
        "top/alone.png": "it is in no folder of a class",
        "top/cats/broken.png": "it is damaged",
        "top/cats/small.png": "it has 20 × 50 pixels, fewer than 32 × 32",
        "top/notes.txt": "it is text, no image (labels come from folders only)",
    }
    assert survey.summary.skipped.counts == {
        "damaged": 1,
        "too small": 1,
        "no image": 1,
        "no label": 1,
    }
    assert survey.summary.skipped.hidden == 2
    assert survey.bytes_on_disk == 10 * (32 * 32 * 3 + 4)
    assert not home.data.exists(), "nothing is stored"


def test_a_folder_of_only_broken_images_is_not_a_class(home: Home, spread: Pack) -> None:
    preparations.prepare(
        home, preparation(spread({**TWO_CLASSES, "top/birds/1.png": b"broken"})), quiet
    )
    assert loading.fields_of("photos", home)["labels"].classes == ("cats", "dogs")


def test_a_source_without_usable_images_explains_why(spread: Pack) -> None:
    small = preparation(
        spread({"a.png": encoded(size=(20, 20)), "b.png": encoded(size=(20, 20))}, "small")
    )
    assert (
        sentence(preparations.survey, small, quiet)
        == "no image can be used (2 files skipped). a.png: it has 20 × 20 pixels, fewer than 32 ×"
        " 32: give larger images, or choose fewer pixels."
    )
    other = preparation(spread({"a.txt": b"x"}, "other"))
    assert sentence(preparations.survey, other, quiet).endswith(
        "it is text, no image (labels come from folders only): give other images."
    )
    (spread({}, "x").parent / "empty").mkdir()
    empty = preparation(spread({}, "x").parent / "empty")
    assert sentence(preparations.survey, empty, quiet).startswith(
        "the source has no image: give a folder or a .zip"
    )


def stripes(count: int, size: int = 40) -> bytes:
    """An image of `count` colors."""
    buffer, columns = io.BytesIO(), np.arange(size) * count // size
    levels = np.broadcast_to(columns.astype(np.uint8), (size, size))
    Image.fromarray(levels).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(("colors", "warns"), [(3, True), (38, False)])
def test_a_class_of_label_maps_is_reported(spread: Pack, colors: int, warns: bool) -> None:
    """As in VOC: photos, and a label map of some of them under the same names."""
    photos = {f"scans/{name}.jpg": stripes(40) for name in ("2007_32", "2007_39")}
    maps = {"masks/2007_39.png": stripes(colors)}
    survey = preparations.survey(preparation(spread({**photos, **maps})), quiet)
    warning = (
        "The images of 'masks' have few colors, and the names of images of another class. If they"
        " are label maps, they are no class: give only the folder of the images, or prepare"
        " picture_pairs with layout=folders."
    )
    assert survey.summary.warnings == ((warning,) if warns else ())


def test_too_many_subfolders_are_refused_as_classes(
    spread: Pack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "MAX_CLASSES", 1)
    assert (
        sentence(preparations.survey, preparation(spread(TWO_CLASSES)), quiet)
        == "the images are in more than 1 sub-folders, too many for classes: use labels=none."
    )


def test_a_damaged_zip_member_is_skipped(pack: Pack) -> None:
    path = pack(TWO_CLASSES)
    content = bytearray(path.read_bytes())
    place = content.find(b"IDAT")
    content[place + 6] ^= 255
    path.write_bytes(content)
    assert preparations.survey(preparation(path), quiet).summary.skipped.counts == {"damaged": 1}
