"""Time-lapse films of sample grids, decoded again."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from dashboard.samples import timelapse
from dashboard.samples.timelapse import Strip

WIDTH = HEIGHT = 238  # eight images of 28 pixels and seven gaps of two


def grid(level: int) -> bytes:
    """A grid of uniform gray."""
    file = io.BytesIO()
    Image.new("L", (WIDTH, HEIGHT), level).save(file, format="PNG")
    return file.getvalue()


def frames(film: bytes) -> list[tuple[int, Image.Image]]:
    """Duration in milliseconds and image of every frame."""
    pictures = []
    with Image.open(io.BytesIO(film)) as opened:
        assert opened.format == "GIF"
        for number in range(opened.n_frames):
            opened.seek(number)
            pictures.append((int(opened.info["duration"]), opened.convert("RGB")))
    return pictures


FIRST = Strip("first", "#009e73", {1: grid(0), 2: grid(120), 3: grid(240)})
SECOND = Strip("second", "#e69f00", {2: grid(60)})


def test_a_film_has_one_frame_per_epoch_and_shows_the_last_longer() -> None:
    film = frames(timelapse.gif([FIRST, SECOND], [1, 2, 3]))
    assert [milliseconds for milliseconds, _ in film] == [400, 400, 2_000]
    # Two runs at twice their size, with 12 pixels around each, a line above and one below.
    assert {picture.size for _, picture in film} == {
        (12 + 2 * (2 * WIDTH + 12), 12 + 22 + 2 * HEIGHT + 22 + 12)
    }


def test_every_frame_shows_the_newest_grid_of_each_run() -> None:
    column, right, middle = 12 + WIDTH, 24 + 2 * WIDTH + WIDTH, 34 + HEIGHT
    colors = [
        (picture.getpixel((column, middle)), picture.getpixel((right, middle)))
        for _, picture in frames(timelapse.gif([FIRST, SECOND], [1, 2, 3]))
    ]
    blank = (0xEC, 0xEE, 0xF2)
    assert colors == [((0, 0, 0), blank), ((120,) * 3, (60,) * 3), ((240,) * 3, (60,) * 3)]


def test_an_ended_run_shows_the_epoch_of_its_last_grid() -> None:
    def ink(strip: Strip, epoch: int) -> int:
        """The number of dark pixels to the right of the second run's name."""
        _, picture = frames(timelapse.gif([FIRST, strip], [epoch]))[0]
        below, column = 34 + 2 * HEIGHT + 13, 24 + 2 * WIDTH
        label = picture.crop((column + 90, below - 8, column + 300, below + 8)).convert("L")
        return sum(label.histogram()[:100])

    assert ink(SECOND, 2) == 0
    assert ink(SECOND, 3) > 20


def test_the_run_name_is_below_its_grid_next_to_its_color() -> None:
    _, picture = frames(timelapse.gif([FIRST, SECOND], [3]))[0]
    below = 34 + 2 * HEIGHT + 13
    assert [picture.getpixel((column + 5, below)) for column in (12, 24 + 2 * WIDTH)] == [
        (0, 0x9E, 0x73),
        (0xE6, 0x9F, 0),
    ]
    label = picture.crop((30, below - 8, 80, below + 8)).convert("L")
    assert label.getextrema()[0] < 100, "there is dark ink beside the square"


def test_a_run_keeps_its_color_next_to_grayscale_grids() -> None:
    file = io.BytesIO()
    Image.radial_gradient("L").resize((WIDTH, HEIGHT)).save(file, format="PNG")
    strips = [
        Strip("first", "#009e73", {1: file.getvalue()}),
        Strip("second", "#e69f00", {1: file.getvalue()}),
    ]
    _, picture = frames(timelapse.gif(strips, [1]))[0]
    below = 34 + 2 * HEIGHT + 13
    assert [picture.getpixel((column + 5, below)) for column in (12, 24 + 2 * WIDTH)] == [
        (0, 0x9E, 0x73),
        (0xE6, 0x9F, 0),
    ]
    swatch = (
        picture.crop((12, 34, 12 + 2 * WIDTH, 34 + 2 * HEIGHT))
        .convert("L")
        .resize((WIDTH, HEIGHT), Image.Resampling.NEAREST)
    )
    with Image.open(file) as original:
        assert (
            max(abs(a - b) for a, b in zip(swatch.tobytes(), original.tobytes(), strict=True)) <= 1
        )


def test_grids_of_other_proportions_are_not_stretched() -> None:
    file = io.BytesIO()
    Image.new("L", (WIDTH, HEIGHT // 2), 0).save(file, format="PNG")
    flat = Strip("flat", "#e69f00", {1: file.getvalue()})
    _, picture = frames(timelapse.gif([FIRST, flat], [1]))[0]
    column = 24 + 2 * WIDTH + WIDTH
    assert [picture.getpixel((column, 34 + place)) for place in (HEIGHT // 2, HEIGHT + 20)] == [
        (0,) * 3,
        (255,) * 3,
    ]


def test_large_grids_are_shrunk_to_keep_the_film_small() -> None:
    file = io.BytesIO()
    Image.new("RGB", (660, 1_320), (200, 40, 40)).save(file, format="PNG")
    _, picture = frames(timelapse.gif([Strip("large", "#009e73", {1: file.getvalue()})], [1]))[0]
    assert picture.size == (12 + 320 + 12, 12 + 22 + 640 + 22 + 12)


def test_color_grids_stay_in_color() -> None:
    file = io.BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT), (200, 40, 40)).save(file, format="PNG")
    _, picture = frames(timelapse.gif([Strip("red", "#009e73", {1: file.getvalue()})], [1]))[0]
    assert picture.getpixel((100, 100)) == (200, 40, 40)


def test_many_runs_are_in_rows_of_four_at_original_size() -> None:
    strips = [Strip(f"run-{number}", "#009e73", {1: grid(0)}) for number in range(5)]
    _, picture = frames(timelapse.gif(strips, [1]))[0]
    assert picture.size == (12 + 4 * (WIDTH + 12), 12 + 22 + 2 * (HEIGHT + 22 + 12))


def test_equal_grids_still_get_their_own_frames() -> None:
    still = Strip("still", "#009e73", {1: grid(9)})
    assert len(frames(timelapse.gif([still], [1, 2, 3, 4]))) == 4


def test_a_long_name_is_truncated_to_its_grid_width() -> None:
    long = Strip(
        "a name of sixty letters that does not fit below a small grid", "#009e73", {1: grid(255)}
    )
    _, picture = frames(timelapse.gif([long, FIRST, SECOND], [1]))[0]
    between = picture.crop((12 + WIDTH, 40 + HEIGHT, 24 + WIDTH, 54 + HEIGHT)).convert("L")
    assert between.getextrema() == (255, 255)


def test_a_long_run_is_thinned_but_keeps_its_last_epoch() -> None:
    assert timelapse.shown_epochs([1, 2, 3]) == [1, 2, 3]
    epochs = timelapse.shown_epochs(list(range(1, 251)))
    assert (len(epochs), epochs[0], epochs[-1]) == (84, 1, 250)


def test_an_empty_film_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one epoch and one grid"):
        timelapse.gif([Strip("first", "#009e73", {})], [1])
