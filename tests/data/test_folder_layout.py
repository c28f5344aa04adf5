"""Folders of a data set become splits and classes: split names match at any level and in any case,
and ambiguous layouts are refused.
"""

from __future__ import annotations

import unicodedata

import pytest

from gan_runtime.base.errors import DatasetError
from gan_runtime.data.folder_layout import ImagePlace, Split, places, split_of


def layout_of(names: list[str], held_out_folders: str = "auto") -> list[tuple[str, bool, str, str]]:
    """Split, held out, folder and rest of each name."""
    return [
        (place.split, place.held_out, place.folder, place.rest)
        for place in places(names, held_out_folders).of.values()
    ]


def sentence(names: list[str], held_out_folders: str = "auto") -> str:
    with pytest.raises(DatasetError) as refused:
        places(names, held_out_folders)
    return str(refused.value)


@pytest.mark.parametrize(
    ("folder", "name", "rest", "held_out"),
    [
        ("TRAINING", "train", "", False),
        ("train2017", "train", "", False),
        ("trainset", "train", "", False),
        ("Valid", "val", "", True),
        ("validation_set", "val", "", True),
        ("test (1)", "test", "", True),
        ("Hold-Out", "holdout", "", True),
        ("held_out", "holdout", "", True),
        ("DEV", "dev", "", True),
        ("evaluation", "eval", "", True),
        ("Fold-03", "fold 3", "", False),
        ("trainA", "train", "A", False),
        ("test_b", "test", "b", True),
        ("DIV2K_valid_LR", "val", "DIV2K_LR", True),
    ],
)
def test_split_names_are_recognized_in_any_spelling(
    folder: str, name: str, rest: str, held_out: bool
) -> None:
    assert split_of(folder) == Split(name, rest, held_out)


@pytest.mark.parametrize(
    "folder",
    ["invalid", "contest", "trainers", "device", "evaluator", "fold", "train_test", "trainstation"],
)
def test_other_folder_names_are_not_splits(folder: str) -> None:
    assert split_of(folder) is None


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["1.png", "2.png"], [("", False, "", "1.png"), ("", False, "", "2.png")]),
        (["x/a/1.png", "./x/b/2.png"], [("", False, "a", "1.png"), ("", False, "b", "2.png")]),
        (
            ["x/a/deep/1.png", "x/b/2.png"],
            [("", False, "a", "deep/1.png"), ("", False, "b", "2.png")],
        ),
        (["x/1.png", "x/b/2.png"], [("", False, "", "1.png"), ("", False, "b", "2.png")]),
        (
            ["set/Train/a/1.png", "set/Train/b/2.png", "set/VAL/b/3.png"],
            [
                ("train", False, "a", "1.png"),
                ("train", False, "b", "2.png"),
                ("val", True, "b", "3.png"),
            ],
        ),
        (
            ["a/train/1.png", "a/holdout/2.png", "b/train/3.png"],
            [
                ("train", False, "a", "1.png"),
                ("holdout", True, "a", "2.png"),
                ("train", False, "b", "3.png"),
            ],
        ),
        (
            ["trainA/1.png", "trainB/1.png", "testA/2.png", "testB/2.png"],
            [
                ("train", False, "A", "1.png"),
                ("train", False, "B", "1.png"),
                ("test", True, "A", "2.png"),
                ("test", True, "B", "2.png"),
            ],
        ),
        (
            ["seg_train/sea/1.png", "seg_train/ice/2.png", "seg_test/ice/3.png"],
            [
                ("train", False, "sea", "1.png"),
                ("train", False, "ice", "2.png"),
                ("test", True, "ice", "3.png"),
            ],
        ),
        (
            ["train/fold1/1.png", "train/fold2/2.png", "test/3.png"],
            [
                ("train", False, "", "1.png"),
                ("train", False, "", "2.png"),
                ("test", True, "", "3.png"),
            ],
        ),
        (
            ["test/train/1.png", "test/val/2.png"],
            [("train", False, "", "1.png"), ("val", True, "", "2.png")],
        ),
        (
            ["train/a/1.png", "train/b/2.png"],
            [("train", False, "a", "1.png"), ("train", False, "b", "2.png")],
        ),
    ],
)
def test_split_folders_are_separated_from_class_folders(
    names: list[str], expected: list[tuple[str, bool, str, str]]
) -> None:
    assert layout_of(names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (
            ["fold1/val/1.png", "fold1/fox/2.png", "fold2/val/3.png"],
            [
                ("fold 1", False, "val", "1.png"),
                ("fold 1", False, "fox", "2.png"),
                ("fold2", True, "val", "3.png"),
            ],
        ),
        (
            ["Train/test/1.png", "Train/train/2.png", "Train/exam/old/3.png", "Val/test/4.png"],
            [
                ("train", False, "test", "1.png"),
                ("train", False, "train", "2.png"),
                ("train", False, "exam", "old/3.png"),
                ("val", True, "test", "4.png"),
            ],
        ),
        (
            ["vehicles/bus/1.png", "vehicles/Train/2.png"],
            [("", False, "bus", "1.png"), ("", False, "Train", "2.png")],
        ),
        (
            ["bus/train/1.png", "bus/test/2.png", "train/train/3.png", "train/test/4.png"],
            [
                ("train", False, "bus", "1.png"),
                ("test", True, "bus", "2.png"),
                ("train", False, "train", "3.png"),
                ("test", True, "train", "4.png"),
            ],
        ),
        (
            ["bus/1.png", "train/2.png", "fold2/3.png"],
            [
                ("", False, "bus", "1.png"),
                ("", False, "train", "2.png"),
                ("fold2", True, "", "3.png"),
            ],
        ),
    ],
)
def test_a_class_with_the_name_of_a_split_is_kept(
    names: list[str], expected: list[tuple[str, bool, str, str]]
) -> None:
    held_out_folders = "fold2" if any(name.startswith("fold2") for name in names) else "auto"
    assert layout_of(names, held_out_folders) == expected


def test_an_ordinary_folder_that_could_be_a_split_is_named() -> None:
    placed = places(["set/cats/1.png", "set/dogs/2.png", "set/test/3.png"], "auto")
    assert placed.warning == (
        "'test' is read like the ordinary folders next to it ('cats', 'dogs'), not as a split. To"
        " hold it out, use held_out_folders=test."
    )
    assert places(["train/cats/1.png", "val/cats/2.png"], "auto").warning == ""


@pytest.mark.parametrize(
    ("names", "stray"),
    [
        (["set/train/1.png", "set/test/2.png", "set/extra/3.png"], "set/extra"),
        (["set/train/a/1.png", "set/train/b/2.png", "set/extra/3.png"], "set/extra"),
    ],
)
def test_folders_that_are_probably_splits_must_be_resolved(names: list[str], stray: str) -> None:
    said = sentence(names)
    assert "can be a split or a class" in said
    assert said.endswith(
        f", since {stray!r} is in no split: use held_out_folders=none for a class, or name the"
        " folders to hold out, such as held_out_folders=test."
    )
    assert sentence(names, "") == sentence(names, "AUTO") == said
    assert [folder for _, _, folder, _ in layout_of(names, " None")][-1] == "extra"


def test_a_folder_of_a_longer_name_is_a_class() -> None:
    station = ["train_station/1.png", "airport/2.png"]
    assert [folder for _, _, folder, _ in layout_of(station)] == ["train_station", "airport"]


def test_named_folders_are_held_out() -> None:
    names = ["a/1.png", "b/2.png", "Trial/3.png"]
    assert layout_of(names, " trial") == [
        ("", False, "a", "1.png"),
        ("", False, "b", "2.png"),
        ("Trial", True, "", "3.png"),
    ]
    assert (
        sentence(names, "trial, Trials")
        == "held_out_folders is 'trial, trials', but no folder of images is named 'trials': use"
        " 'Trial', 'a', 'b'."
    )


def test_one_fold_must_be_named_as_held_out() -> None:
    names = [f"fold{number}/{animal}/1.png" for number in (1, 2) for animal in ("ant", "bee")]
    assert (
        sentence(names)
        == "the images are in folds ('fold1', 'fold2'), and none is named as held out: use"
        " held_out_folders=fold2 or another one."
    )
    assert [
        (split, held_out, folder) for split, held_out, folder, _ in layout_of(names, "fold1")
    ] == [
        ("fold1", True, "ant"),
        ("fold1", True, "bee"),
        ("fold 2", False, "ant"),
        ("fold 2", False, "bee"),
    ]


def test_a_data_set_without_training_images_is_refused() -> None:
    assert (
        sentence(["test/a/1.png", "test/b/2.png"])
        == "all images are in 'test', which is held out, so none is left to train on: add a folder"
        " to train on, or use held_out_folders=none."
    )


def test_an_image_next_to_split_folders_is_skipped() -> None:
    placed = places(["set/train/1.png", "set/test/2.png", "set/cover.png"], "auto")
    assert list(placed.of) == ["set/train/1.png", "set/test/2.png"]
    assert [(skip.name, skip.kind, skip.reason) for skip in placed.skipped] == [
        ("set/cover.png", "no split", "it is next to the folders 'test', 'train'")
    ]


def test_unicode_normal_forms_of_a_name_are_equal() -> None:
    composed, apart = (unicodedata.normalize(form, "čaj/é.png") for form in ("NFC", "NFD"))
    assert composed != apart
    first, other, tea = places([composed, apart, "x/1.png"], "auto").of.values()
    assert (
        first
        == other
        == ImagePlace(
            "", False, unicodedata.normalize("NFC", "čaj"), unicodedata.normalize("NFC", "é.png")
        )
    )
    assert tea.folder == "x"
