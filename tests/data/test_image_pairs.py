"""Image pairs become a data set: side by side or in two folders, in either direction; unusable
files are skipped by name.
"""

from __future__ import annotations

import io
import unicodedata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image

from dashboard import data_summary
from gan_runtime.base.errors import DatasetError, HomeError
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.data import preparations, prepared
from gan_runtime.data.contract import DataSet
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import Survey
from gan_runtime.records.home import Home
from tests.data.conftest import BLUE, GREEN, RED, Pack, encoded

SMALL = {"pixels": "32", "held_out_percent": 0}
TWO_FOLDERS = {"edges/1.png": encoded(RED), "photos/1.jpg": encoded(BLUE, form="JPEG")}


def two_halves(
    left_color: tuple[int, ...], right_color: tuple[int, ...], width: int = 80, form: str = "PNG"
) -> bytes:
    """An image of two halves, 40 pixels high."""
    picture = Image.new("RGB", (width, 40), left_color)
    picture.paste(right_color, (width // 2, 0, width, 40))
    buffer = io.BytesIO()
    picture.save(buffer, form, quality=95)
    return buffer.getvalue()


def request(source: Path, options: dict[str, Any]) -> PreparationRequest:
    return PreparationRequest("picture_pairs", "pairs", source, {**SMALL, **options})


def prepare_pairs(home: Home, source: Path, **options: Any) -> DataSet:
    preparations.prepare(home, request(source, options), lambda *_: None)
    return prepared.open_set(home, "pairs")


def survey_of(source: Path, **options: Any) -> Survey:
    return preparations.survey(request(source, options), lambda *_: None)


def colors(rows: np.ndarray) -> list[tuple[int, ...]]:
    """The mean color of each row, in steps of 51."""
    return [tuple(round(level / 51) * 51 for level in row.mean(axis=(0, 1))) for row in rows]


@pytest.mark.parametrize(
    ("direction", "source", "target"), [("a_to_b", RED, BLUE), ("b_to_a", BLUE, RED)]
)
@pytest.mark.parametrize("form", ["PNG", "JPEG"])
def test_side_by_side_pairs_are_halved(
    home: Home,
    spread: Pack,
    direction: str,
    source: tuple[int, ...],
    target: tuple[int, ...],
    form: str,
) -> None:
    pairs = prepare_pairs(
        home, spread({"1.bin": two_halves(RED, BLUE, form=form)}), direction=direction
    )
    rows = pairs.read(np.arange(1))
    assert {name: (field.shape, field.dtype) for name, field in pairs.fields.items()} == {
        SOURCE: ((32, 32, 3), "uint8"),
        TARGET: ((32, 32, 3), "uint8"),
    }
    assert (colors(rows[SOURCE]), colors(rows[TARGET])) == ([source], [target])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("around", ["", "set/"])
def test_pairs_in_two_folders_are_found_by_equal_names(
    home: Home, spread: Pack, pack: Pack, packed: bool, around: str
) -> None:
    files = {
        **TWO_FOLDERS,
        "edges/more/2.png": encoded(GREEN),
        "photos/more/2.png": encoded((255, 255, 0)),
    }
    source = (pack if packed else spread)(
        {around + name: content for name, content in files.items()}
    )
    rows = prepare_pairs(home, source, layout="folders").read(np.arange(2))
    pairs_of_colors = set(zip(colors(rows[SOURCE]), colors(rows[TARGET]), strict=True))
    assert pairs_of_colors == {(RED, BLUE), (GREEN, (255, 255, 0))}


def test_unusable_files_are_skipped_by_name(spread: Pack) -> None:
    source = spread(
        {
            "good.png": two_halves(RED, BLUE),
            "odd.png": two_halves(RED, BLUE, width=81),
            "narrow.png": two_halves(RED, BLUE, width=60),
            "small.png": encoded(RED, (50, 25)),
            "torn.png": two_halves(RED, BLUE)[:60],
            "notes.txt": b"hello",
        }
    )
    survey = survey_of(source)
    assert survey.rows == 1
    assert {skip.name: skip.reason for skip in survey.summary.skipped.first} == {
        "odd.png": "it is 81 pixels wide, which cannot be halved",
        "narrow.png": "it has 60 × 40 pixels, but a pair is about twice as wide as high",
        "small.png": "it has 25 × 25 pixels, fewer than 32 × 32",
        "torn.png": "it is damaged",
        "notes.txt": "it is text, no image (labels come from folders only)",
    }


def test_images_without_a_usable_partner_are_skipped_by_name(spread: Pack) -> None:
    source = spread(
        {
            **TWO_FOLDERS,
            "edges/1.webp": encoded(GREEN, form="WEBP"),
            "edges/2.png": encoded(RED),
            "photos/3.png": encoded(RED),
            "edges/4.png": encoded(RED, (50, 40)),
            "photos/4.png": encoded(RED, (40, 40)),
            "edges/5.png": encoded(RED)[:60],
            "photos/5.png": encoded(RED),
            "readme.png": encoded(RED),
        }
    )
    survey = survey_of(source, layout="folders")
    assert survey.rows == 1
    assert {skip.name: skip.reason for skip in survey.summary.skipped.first} == {
        "edges/1.webp": "edges/1.png has the same name",
        "edges/2.png": "no image in 'photos' has this name",
        "photos/3.png": "no image in 'edges' has this name",
        "photos/4.png": "it has 40 × 40 pixels, but its partner 50 × 40",
        "edges/5.png": "it is damaged",
        "readme.png": "it is next to the two folders",
    }
    assert survey.summary.skipped.counts == {
        "no partner": 3,
        "twice": 1,
        "other size": 1,
        "damaged": 1,
    }


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (
            ["1.png", "2.png"],
            "two folders of images, but all images are in one folder: put A into one folder and B",
        ),
        (["a/1.png", "b/1.png", "c/1.png"], "but there are 3 ('a', 'b', 'c')"),
        (["all/1.png", "all/2.png"], "but all images are in one folder: put"),
    ],
)
def test_other_than_two_folders_are_refused(
    home: Home, spread: Pack, names: list[str], sentence: str
) -> None:
    source = spread(dict.fromkeys(names, encoded(RED)))
    with pytest.raises(DatasetError, match="pairs by equal names need") as refused:
        prepare_pairs(home, source, layout="folders")
    assert sentence in str(refused.value)
    assert list(home.data.iterdir()) == []


def test_a_folder_of_another_format_is_named_when_a_partner_folder_is_missing(
    spread: Pack,
) -> None:
    heic = b"\0\0\0\x18ftypheic" + bytes(9)
    source = spread({"edges/1.jpeg": encoded(form="JPEG"), "photos/1.heic": heic, "x.txt": b"x"})
    with pytest.raises(DatasetError) as refused:
        survey_of(source, layout="folders")
    assert str(refused.value) == (
        "pairs by equal names need two folders of images, but all images are in one folder (2"
        " files skipped; photos/1.heic: it is a HEIC image, not a JPEG, PNG or WebP: save it as"
        " JPEG, PNG or WebP): put A into one folder and B into another, or use layout=side_by_side."
    )


def test_names_with_different_endings_are_shown_next_to_each_other(spread: Pack) -> None:
    """As in Cityscapes, whose endings name the kind of an image."""
    names = ["maps/oslo/07_map.png", "maps/rome/08_map.png", "photos/oslo/07_photo.png"]
    with pytest.raises(DatasetError) as refused:
        survey_of(spread(dict.fromkeys(names, encoded())), layout="folders")
    assert str(refused.value) == (
        "no image can be used (3 files skipped). maps/oslo/07_map.png: no image in 'photos' has"
        " this name, only 'oslo/07_photo': give both images of a pair the same name, except for"
        " .png or .jpg."
    )


def test_a_source_without_pairs_is_refused(home: Home, spread: Pack) -> None:
    with pytest.raises(
        DatasetError, match=r"no image can be used \(1 file skipped\). odd\.png: it is 81 pixels"
    ):
        prepare_pairs(home, spread({"odd.png": two_halves(RED, BLUE, width=81)}))
    with pytest.raises(DatasetError, match="the source has no image: give a folder"):
        prepare_pairs(home, spread({".hidden": b""}, name="nothing"))
    assert list(home.data.iterdir()) == []


def test_exif_rotation_is_applied_before_halving(home: Home, spread: Pack) -> None:
    """40 × 80 in the file, with an EXIF orientation that makes it 80 × 40: the upper half
    becomes the right one.
    """
    picture = Image.new("RGB", (40, 80), RED)
    picture.paste(BLUE, (0, 40, 40, 80))
    exif, buffer = Image.Exif(), io.BytesIO()
    exif[0x0112] = 6  # to be rotated by 90° clockwise
    picture.save(buffer, "PNG", exif=exif)
    rows = prepare_pairs(home, spread({"1.png": buffer.getvalue()})).read(np.arange(1))
    assert (colors(rows[SOURCE]), colors(rows[TARGET])) == ([BLUE], [RED])


def test_a_share_of_pairs_is_held_out_without_splitting_pairs(home: Home, spread: Pack) -> None:
    shades = range(0, 250, 25)
    source = spread(
        {f"{shade}.png": two_halves((shade,) * 3, (shade + 5,) * 3) for shade in shades}
    )
    pairs = prepare_pairs(home, source, held_out_percent=20)
    assert (pairs.rows, pairs.held_out) == (8, 2)
    first, last = pairs.read(np.arange(8)), pairs.read_held_out(2)
    levels = np.concatenate([first[SOURCE], last[SOURCE]])[:, 0, 0, 0].astype(int)
    assert sorted(levels) == list(shades)
    assert list(levels) != list(shades), "the order is not shuffled"
    assert np.array_equal(first[SOURCE].astype(int) + 5, first[TARGET])


def test_preview_and_card_show_source_and_target_side_by_side(home: Home, spread: Pack) -> None:
    source = spread({"1.png": two_halves(RED, BLUE)})
    survey = survey_of(source)
    assert survey.grid.shape == (1, 32, 64, 3)
    assert colors(survey.grid[:, :, :32]) == [RED]
    assert colors(survey.grid[:, :, 32:]) == [BLUE]
    assert not home.data.exists()
    pairs = prepare_pairs(home, source)
    png = prepared.png_of_rows(pairs.read(np.arange(1)))
    assert png is not None
    card = np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))
    assert [tuple(card[16, column]) for column in (16, 48)] == [RED, BLUE]
    assert data_summary.row(pairs.fields) == "32 × 32 RGB → 32 × 32 RGB"
    assert data_summary.noun(pairs.fields) == "pair"


def test_the_halves_layout_cuts_any_shape(home: Home, spread: Pack) -> None:
    rows = prepare_pairs(
        home, spread({"narrow.png": two_halves(RED, BLUE, width=64)}), layout="halves"
    ).read(np.arange(1))
    assert (colors(rows[SOURCE]), colors(rows[TARGET])) == ([RED], [BLUE])


@pytest.mark.parametrize(
    ("train_a", "train_b", "test_a", "test_b"),
    [
        ("train/A", "train/B", "test/A", "test/B"),
        ("edges/train", "photos/train", "edges/dev", "photos/dev"),
        ("TrainA", "TrainB", "TestA", "TestB"),
    ],
)
def test_partners_share_a_split_and_test_pairs_are_held_out(
    home: Home, spread: Pack, train_a: str, train_b: str, test_a: str, test_b: str
) -> None:
    """Both splits use the same names: A is red, B blue; full for training, dark if held out."""
    dark_red, dark_blue = (102, 0, 0), (0, 0, 102)
    files = {train_a: RED, train_b: BLUE, test_a: dark_red, test_b: dark_blue}
    source = spread(
        {
            f"{folder}/{number}.png": encoded(color)
            for folder, color in files.items()
            for number in range(3)
        }
    )
    pairs = prepare_pairs(home, source, layout="folders", held_out_percent=50)
    assert (pairs.rows, pairs.held_out) == (3, 3)
    trained, held_out = pairs.read(np.arange(3)), pairs.read_held_out(3)
    assert (set(colors(trained[SOURCE])), set(colors(trained[TARGET]))) == ({RED}, {BLUE})
    assert (set(colors(held_out[SOURCE])), set(colors(held_out[TARGET]))) == (
        {dark_red},
        {dark_blue},
    )


def test_a_partner_in_another_split_does_not_count(spread: Pack) -> None:
    both = {f"{split}/{folder}/1.png": encoded() for split in ("train", "val") for folder in "xy"}
    survey = survey_of(
        spread({**both, "train/x/2.png": encoded(), "val/y/2.png": encoded()}), layout="folders"
    )
    assert (survey.rows, survey.summary.held_out) == (1, 1)
    assert {skip.name: skip.reason for skip in survey.summary.skipped.first} == {
        "train/x/2.png": "no image in 'y' of train has this name",
        "val/y/2.png": "no image in 'x' of val has this name",
    }


def test_partners_match_across_unicode_normal_forms(home: Home, spread: Pack) -> None:
    composed, decomposed = (unicodedata.normalize(form, "čaj") for form in ("NFC", "NFD"))
    assert (
        prepare_pairs(
            home,
            spread({f"a/{composed}.png": encoded(), f"b/{decomposed}.png": encoded()}),
            layout="folders",
        ).rows
        == 1
    )


def test_a_text_file_does_not_replace_an_image_of_the_same_name(spread: Pack) -> None:
    survey = survey_of(spread({**TWO_FOLDERS, "edges/1.json": b"{}"}), layout="folders")
    assert survey.rows == 1
    assert [skip.name for skip in survey.summary.skipped.first] == ["edges/1.json"]


@pytest.mark.parametrize(
    ("names", "folders"),
    [
        (
            ["edges/1.png", "photos/1.png", "edges/2.jpg", "photos/2.png", "photos/3.png"],
            "'edges', 'photos'",
        ),
        (["trainA/1.png", "trainB/2.png", "testA/3.png", "testB/4.png"], "'A', 'B'"),
    ],
)
def test_images_in_two_paired_folders_are_not_halved_by_default(
    spread: Pack, names: list[str], folders: str
) -> None:
    source = spread(dict.fromkeys(names, two_halves(RED, BLUE)))
    with pytest.raises(DatasetError) as refused:
        survey_of(source)
    assert (
        str(refused.value)
        == f"the images are in 2 folders ({folders}) with equal names: use layout=folders, or"
        " layout=halves if each file contains both images."
    )
    assert survey_of(source, layout="halves").rows > 0


def test_single_square_images_are_not_halved_by_default(spread: Pack) -> None:
    with pytest.raises(DatasetError) as refused:
        survey_of(spread({f"{number}.png": encoded(size=(90, 90)) for number in range(3)}))
    assert (
        str(refused.value)
        == "no image can be used (3 files skipped). 0.png: it has 90 × 90 pixels, but a pair is"
        " about twice as wide as high: use layout=folders for two folders of images, or"
        " layout=halves to cut them."
    )


@pytest.mark.parametrize("layout", ["folders", "side_by_side"])
def test_disk_space_is_checked_for_pairs_in_one_file_or_two(
    home: Home, spread: Pack, monkeypatch: pytest.MonkeyPatch, layout: str
) -> None:
    """64 pairs of 2 · 196,608 bytes are 25.2 MB, on top of the 20 MB that always stay free."""
    names = [f"{number}.png" for number in range(64)]
    files = (
        dict.fromkeys(names, b"\xff\xd8\xff")
        if layout == "side_by_side"
        else {f"{folder}/{name}": b"\xff\xd8\xff" for folder in "ab" for name in names}
    )
    source = spread(files)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000))
    with pytest.raises(HomeError, match="a data set of 64 pairs needs 45 MB"):
        prepare_pairs(home, source, layout=layout, pixels="256")
