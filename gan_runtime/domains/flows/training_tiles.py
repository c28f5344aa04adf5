"""What the networks of Pix2Pix see of whole images: a tile of each row, cut out and turned over on the device.

Frames: values (B, height, width, channels), float32. Draws: even in [0, 1), float32, a row for each row of the batch.
"""

from __future__ import annotations

from keras import ops

from gan_runtime.domains.flows.entry import Flip
from gan_runtime.workloads.contract import Tensor

AXES: dict[Flip, int] = {"vertical": 1, "horizontal": 2}  # that a flip turns over


def cut(frames: Tensor, draws: Tensor, tile: int) -> Tensor:
    """(B, tile, tile, channels); all places are as likely. `draws`: (B, 2), of the top and of the left.

    Frames of 80 × 192 and tile 64: tops 0 to 16, lefts 0 to 128, so pixel (i, j) of row b's tile is pixel
    (b · 80 + top + i) · 192 + left + j of all frames, one after another.
    """
    rows, height, width, channels = frames.shape
    if (height, width) == (tile, tile):
        return frames
    room = ops.convert_to_tensor([height - tile + 1, width - tile + 1], "float32")
    # Below 1 by a last bit, a draw times the room may round up to it.
    corner = ops.minimum(ops.floor(ops.convert_to_tensor(draws) * room), room - 1.0)
    corner = ops.cast(corner, "int32")  # (B, 2)
    along = ops.arange(tile, dtype="int32")
    down = ops.arange(rows, dtype="int32")[:, None] * height + corner[:, :1] + along  # (B, tile)
    across = corner[:, 1:] + along
    places = down[:, :, None] * width + across[:, None, :]  # (B, tile, tile)
    return ops.take(ops.reshape(frames, (rows * height * width, channels)), places, axis=0)


def turned(frames: Tensor, draws: Tensor, flip: Flip, odd_channels: tuple[int, ...]) -> Tensor:
    """Half of the frames turned over. `draws`: (B,). Upside down, `odd_channels` change their sign as well."""
    if flip == "none":
        return frames
    over = ops.flip(frames, axis=AXES[flip])
    if flip == "vertical":
        over = over * ops.convert_to_tensor(
            [-1.0 if channel in odd_channels else 1.0 for channel in range(frames.shape[-1])], frames.dtype
        )
    return ops.where(draws[:, None, None, None] < 0.5, over, frames)
