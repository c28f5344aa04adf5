"""Pairs of a label map and a photo: options keep resizing from mixing the colors of a map."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image

from gan_runtime.data import preparations
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.summary import Survey
from tests.data.conftest import BLUE, GREEN, RED, Pack


def label_map(side: int) -> Image.Image:
    """Stripes and a disk in three colors, which fit no grid of 32 pixels."""
    down, across = np.mgrid[:side, :side]
    labels = np.where((down - 31) ** 2 + (across - 40) ** 2 < 500, 2, (down // 7) % 2)
    return Image.fromarray(np.array([RED, GREEN, BLUE], np.uint8)[labels])


def photo(side: int) -> Image.Image:
    return Image.fromarray(
        np.random.default_rng(3).integers(0, 256, (side, side, 3), dtype=np.uint8)
    )


@pytest.mark.parametrize("direction", ["a_to_b", "b_to_a"])
@pytest.mark.parametrize("layout", ["side_by_side", "folders"])
def test_nearest_resampling_keeps_label_map_colors(
    spread: Pack, layout: str, direction: str
) -> None:
    both = Image.new("RGB", (142, 71))
    both.paste(label_map(71), (0, 0))
    both.paste(photo(71), (71, 0))
    files = {"1.png": encoded_image(both)}
    if layout == "folders":
        files = {"a/1.png": encoded_image(label_map(71)), "b/1.png": encoded_image(photo(71))}
    side = "source" if direction == "a_to_b" else "target"
    options = {"layout": layout, "direction": direction, "pixels": "32"}
    source = spread(files)

    def survey(**more: str) -> Survey:
        return preparations.survey(
            PreparationRequest("picture_pairs", "maps", source, {**options, **more}),
            lambda *_: None,
        )

    nearest, mixed = survey(**{f"{side}_resample": "nearest"}), survey()
    half = slice(0, 32) if side == "source" else slice(32, 64)
    assert set(map(tuple, nearest.grid[0][:, half].reshape(-1, 3).tolist())) == {RED, GREEN, BLUE}
    assert len(set(map(tuple, mixed.grid[0][:, half].reshape(-1, 3).tolist()))) > 10
    assert nearest.summary.converted == {"resized by nearest pixel": 1, "resized": 1}
    assert nearest.summary.warnings == ()
    assert mixed.summary.warnings == (
        (
            f"The {side}s have at most 3 colors each, and resizing mixes them. For label maps use"
            f" {side}_resample=nearest."
        ),
    )


def test_single_color_images_give_no_label_map_warning(spread: Pack) -> None:
    plain = [encoded_image(Image.new("RGB", (71, 71), color)) for color in (RED, GREEN)]
    survey = preparations.survey(
        PreparationRequest(
            "picture_pairs",
            "maps",
            spread({"a/1.png": plain[0], "b/1.png": plain[1]}),
            {"layout": "folders", "pixels": "32"},
        ),
        lambda *_: None,
    )
    assert survey.summary.warnings == ()


def test_a_jpeg_label_map_is_decoded_at_full_size(spread: Pack) -> None:
    """Decoding at a reduced size would mix its colors before the nearest pixel is selected."""
    fine = encoded_image(label_map(568), "JPEG")
    source = spread({"a/1.jpg": fine, "b/1.jpg": fine})
    options = {"layout": "folders", "pixels": "32", "source_resample": "nearest"}
    [row] = preparations.survey(
        PreparationRequest("picture_pairs", "maps", source, options), lambda *_: None
    ).grid
    colors = np.array([RED, GREEN, BLUE])
    near = (
        abs(row[:, :32, None].astype(int) - colors).max(axis=-1).min(axis=-1)
    )  # of the nearest label
    smooth = abs(row[:, 32:, None].astype(int) - colors).max(axis=-1).min(axis=-1)
    assert (near < 30).mean() > 0.9 > (smooth < 30).mean()


def encoded_image(picture: Image.Image, form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, quality=95, subsampling=0)
    return buffer.getvalue()
