"""Frames of a flow as images: fixed colors on both sides of white, a gray obstacle, and black for
values that are not finite.
"""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime import pictures
from gan_runtime.domains.flows import pictures as flow_pictures
from gan_runtime.domains.flows.fields import OBSTACLE, VORTICITY
from gan_runtime.pictures import sheet

STONE, WHITE, REDDEST, BLUEST = (75, 80, 88), (247, 247, 247), (103, 0, 31), (5, 48, 97)


def frames(*turning: float, obstacle: bool = False) -> np.ndarray:
    """Frames of 8 × 8 pixels of equal vorticity, with an optional obstacle in the upper left
    quarter.
    """
    values = np.zeros((len(turning), 8, 8, 4), np.float16)
    values[..., VORTICITY] = np.asarray(turning)[:, None, None]
    values[:, :4, :4, OBSTACLE] = 1.0
    return values if obstacle else values[..., :3]


def test_zero_vorticity_is_white_and_both_scale_ends_are_dark() -> None:
    colors = flow_pictures.frame_colors(frames(-1.0, 0.0, 1.0, 7.0))
    assert colors.shape == (4, 8, 8, 3)
    assert [tuple(frame[0, 0].tolist()) for frame in colors] == [BLUEST, WHITE, REDDEST, REDDEST]


def test_the_obstacle_is_gray_and_nan_is_black() -> None:
    values = frames(0.5, obstacle=True)
    values[0, 7, 7, VORTICITY] = np.nan
    (colors,) = flow_pictures.frame_colors(values)
    assert tuple(colors[0, 0].tolist()) == STONE
    assert tuple(colors[7, 7].tolist()) == (0, 0, 0)
    assert colors[7, 0, 0] > colors[7, 0, 2], "against the clock's hands: red"


def test_a_flow_triplet_shows_the_source_obstacle_in_all_images() -> None:
    picture = pictures.render("triplets", (frames(0.0, obstacle=True), frames(1.0), frames(-1.0)))
    widths = [max(8, sheet.length(title) + 4) for title in ("input", "output", "target")]
    lefts = [0, widths[0] + 2, widths[0] + widths[1] + 4]
    corners = [
        [picture.getpixel((x_offset + x, sheet.LINE + x)) for x in (1, 6)] for x_offset in lefts
    ]
    assert corners == [[STONE, WHITE], [STONE, REDDEST], [STONE, BLUEST]]


@pytest.mark.parametrize("shape", [(1, 8, 8, 2), (0, 8, 8, 3), ()])
def test_frames_of_an_invalid_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(
        ValueError, match=r"cannot be drawn: give \(…, 3\), or \(…, 4\) with the obstacle\."
    ):
        flow_pictures.frame_colors(np.zeros(shape, np.float32))
