"""Sheets with text: rows by class, triplets, filmstrips. Text is detected as bright pixels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from gan_runtime import pictures
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import spaced_frames

SIDE = 16


def squares(*values: float, channels: int = 1) -> NDArray[np.float32]:
    """Images of SIDE × SIDE pixels, each of a single value."""
    flat = np.asarray(values, np.float32).reshape(-1, 1, 1, 1)
    return np.broadcast_to(flat, (len(values), SIDE, SIDE, channels)).copy()


def ink(picture: Image.Image, box: tuple[int, int, int, int]) -> int:
    """Number of bright pixels in a part of a sheet."""
    return int((np.asarray(picture.crop(box).convert("L")) > 100).sum())


def test_each_class_is_a_row_with_its_name_on_the_left() -> None:
    images, labels = squares(1, -1, 0, 1, 0), np.asarray([1.0, 0.0, 1.0, 1.0, 0.0], np.float32)
    picture = pictures.render("labelled_grid", (images, labels), ("cat", "dog"))
    x = 4 + max(sheet.length("cat"), sheet.length("dog")) + 6
    assert picture.size == (x + 3 * (SIDE + 2) - 2, 2 * (SIDE + 2) - 2)
    middles = [
        [picture.getpixel((x + 8 + 18 * column, 8 + 18 * row)) for column in range(3)]
        for row in range(2)
    ]
    assert middles == [[0, 128, 0], [255, 128, 255]]
    assert ink(picture, (0, 0, x - 6, SIDE)) > 10
    assert ink(picture, (0, SIDE + 2, x - 6, 2 * SIDE + 2)) > 10


def test_names_of_large_images_use_a_larger_font_within_the_same_width() -> None:
    small, large = (
        pictures.render(
            "labelled_grid", (np.zeros((1, side, side, 1)), np.asarray([0])), ("disks",)
        )
        for side in (32, 64)
    )
    assert (small.width - 32, large.width - 64) == tuple(
        10 + sheet.length("disks", size) for size in (12, 20)
    )
    long = pictures.render(
        "labelled_grid", (np.zeros((1, 64, 64, 1)), np.asarray([0])), ("a name " * 40,)
    )
    assert long.width - 64 <= 4 + 120 + 6


def test_empty_classes_have_no_row_and_unnamed_ones_show_their_number() -> None:
    arrays = (squares(0, 0), np.asarray([7, 7]))
    numbered = pictures.render("labelled_grid", arrays)
    named = pictures.render("labelled_grid", arrays, tuple("01234567"))
    assert numbered.height == SIDE
    assert named.height == SIDE + sheet.LINE, "a line says that 1 of 8 classes is shown"
    assert named.crop((0, 0, numbered.width, SIDE)).tobytes() == numbered.tobytes()


def test_only_the_first_twenty_classes_are_shown_with_a_note() -> None:
    images, labels = squares(*[1.0] * 50), np.arange(50)
    picture = pictures.render(
        "labelled_grid", (images, labels), tuple(f"class {number}" for number in range(1_000))
    )
    rows = 20 * (SIDE + 2) - 2
    assert picture.height == rows + sheet.LINE
    assert ink(picture, (0, rows, picture.width, picture.height)) > 50
    large = np.zeros((50, 128, 128, 3), np.float32)
    assert pictures.render("labelled_grid", (large, labels)).height == 10 * 130 - 2 + sheet.LINE


def test_a_requested_sheet_gives_each_class_all_its_rows() -> None:
    images, labels = squares(*[0.0] * 9, *[1.0] * 17), np.asarray([0] * 9 + [1] * 17)
    picture = pictures.render("labelled_grid", (images, labels), ("cat", "dog"), pictures.whole(26))
    x = 4 + max(sheet.length("cat"), sheet.length("dog")) + 6
    assert picture.size == (x + 8 * (SIDE + 2) - 2, 5 * (SIDE + 2) - 2 + 8)
    tops = [0, 18, 44, 62, 80]  # two rows of cats, a small gap, three rows of dogs
    firsts = [picture.getpixel((x + 8, top + 8)) for top in tops]
    seconds = [picture.getpixel((x + 26, top + 8)) for top in tops]
    assert (firsts, seconds) == ([128, 128, 255, 255, 255], [128, 0, 255, 255, 0])
    assert [ink(picture, (0, top, x - 6, top + SIDE)) > 10 for top in tops] == [
        True,
        False,
        True,
        False,
        False,
    ]


def test_a_long_name_is_shortened_and_small_rows_fit_text() -> None:
    picture = pictures.render(
        "labelled_grid", (squares(1)[:, :4, :4], np.asarray([0])), ("a name " * 40,)
    )
    assert picture.height == sheet.LINE
    assert picture.width <= 4 + 120 + 6 + 4
    assert sheet.fitted("W" * 100, 40).endswith("…")
    assert sheet.length(sheet.fitted("W" * 100, 40)) <= 40


def test_a_triplet_shows_input_output_and_target_with_titles() -> None:
    picture = pictures.render(
        "triplets", (squares(-1, 1), squares(0, 0), squares(1, -1, channels=3))
    )
    widths = [max(SIDE, sheet.length(title) + 4) for title in ("input", "output", "target")]
    lefts = [0, widths[0] + 2, widths[0] + widths[1] + 4]
    across = lefts[2] + widths[2]
    assert picture.mode == "RGB", "grey images beside color ones become grey colors"
    assert picture.size == (2 * across + 10, sheet.LINE + SIDE)
    middles = [
        picture.getpixel((group * (across + 10) + x + 8, sheet.LINE + 8))[0]  # type: ignore[index]
        for group in range(2)
        for x in lefts
    ]
    assert middles == [0, 128, 255, 255, 128, 0]
    assert ink(picture, (0, 0, widths[0], sheet.LINE)) > 10


def test_triplets_of_large_images_use_one_column() -> None:
    frames = np.zeros((64, 64, 64, 3), np.float32)
    assert pictures.render("triplets", (frames,) * 3).size == (
        2 * 196 + 10,
        sheet.LINE + 8 * 66 - 2,
    )


def test_a_filmstrip_has_one_row_per_sequence_from_left_to_right() -> None:
    sequences = np.stack([squares(-1, 0, 1), squares(1, 0, -1)])
    picture = pictures.render("filmstrip", (sequences,))
    assert picture.size == (3 * (SIDE + 2) - 2, 2 * (SIDE + 2) - 2)
    middles = [
        [picture.getpixel((8 + 18 * column, 8 + 18 * row)) for column in range(3)]
        for row in range(2)
    ]
    assert middles == [[0, 128, 255], [255, 128, 0]]


def test_a_long_film_shows_evenly_spaced_frames_with_a_note() -> None:
    assert spaced_frames(3, 3) == [0, 1, 2]
    assert spaced_frames(50, 8) == [0, 7, 14, 21, 28, 35, 42, 49]
    assert spaced_frames(50, 1) == [49]
    values = np.linspace(-1, 1, 256, dtype=np.float32).reshape(1, 256, 1, 1, 1)
    picture = pictures.render("filmstrip", (np.broadcast_to(values, (1, 256, 64, 64, 1)),))
    assert picture.size == (8 * 66 - 2, 64 + sheet.LINE)
    assert [picture.getpixel((66 * column + 9, 9)) for column in (0, 3, 7)] == [0, 109, 255]
