"""A film of flow, prediction and difference as a GIF or an MP4 file, made in memory or in a
temporary folder.
"""

from __future__ import annotations

import io
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from dashboard.domains.flows import panels as flow_panels
from dashboard.domains.flows.panels import FRAMES_PER_S, Bytes, FilmPanel
from gan_runtime.base.errors import PictureError

LAST_SECONDS = 1.5  # duration of the last frame
WIDE = 400  # least width of a panel in pixels, reached by a whole factor
MARGIN, LINE, LETTER = 12, 24, 14  # pixels: around everything, a line of text, its letters
BAR = 8  # height of the colors below a panel
NO_ENCODER = (
    "An MP4 needs the program ffmpeg, which is missing. Reinstall the package imageio-ffmpeg or"
    " install ffmpeg, then restart the dashboard. The GIF shows the same film."
)
Maker = Callable[[tuple[FilmPanel, ...], list[str], str], bytes]  # panels, frame labels, run name


def gif(panels: tuple[FilmPanel, ...], steps: list[str], name: str) -> bytes:
    """An animated GIF.

    All frames share one palette, so that no color changes from frame to frame.
    """
    frames = [Image.fromarray(pixels) for pixels in _frames(panels, steps, name)]
    for frame in frames:
        frame.putpalette(flow_panels.PALETTE.tobytes())
    durations = [1000 // FRAMES_PER_S] * (len(frames) - 1) + [round(1000 * LAST_SECONDS)]
    file = io.BytesIO()
    frames[0].save(
        file,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        optimize=False,
    )
    return file.getvalue()


def mp4(panels: tuple[FilmPanel, ...], steps: list[str], name: str) -> bytes:
    """An MP4 (H.264), which every browser and slide program plays.

    Raises PictureError if it cannot be made here.
    """
    import imageio_ffmpeg  # loaded only for a film

    if missing_encoder():
        raise PictureError(missing_encoder())
    frames = list(_frames(panels, steps, name))
    frames += [frames[-1]] * round(LAST_SECONDS * FRAMES_PER_S)
    height, width = frames[0].shape
    # Writing an MP4 needs to seek, so it cannot be a stream.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flow.mp4"
        writer = imageio_ffmpeg.write_frames(
            str(file),
            (width, height),
            fps=FRAMES_PER_S,
            codec="libx264",
            quality=8,
            macro_block_size=2,
            output_params=["-preset", "veryfast"],
        )
        with closing(writer):
            try:
                writer.send(None)
                for frame in frames:
                    writer.send(np.ascontiguousarray(flow_panels.PALETTE[frame]))
            except OSError as error:
                reason = error.strerror or str(error).splitlines()[0]
                message = f"the MP4 cannot be made: {reason}. Download the GIF instead."
                raise PictureError(message) from error
        return file.read_bytes()


@cache
def missing_encoder() -> str:
    """Why no MP4 can be made here, in a sentence; "" if one can."""
    import imageio_ffmpeg

    try:
        return "" if shutil.which(imageio_ffmpeg.get_ffmpeg_exe()) else NO_ENCODER
    except RuntimeError:  # there is none
        return NO_ENCODER


def _frames(panels: tuple[FilmPanel, ...], steps: list[str], name: str) -> Iterator[Bytes]:
    """Each step as (height, width) palette indices: a line of text, the panels side by side, and
    their color scales.
    """
    _, rows, columns = panels[0].places.shape
    zoom = -(-WIDE // columns)
    background = _background(panels, rows * zoom, columns * zoom)
    for place, step in enumerate(steps):
        frame = background.copy()
        _write(frame, f"{name} · {step}", (MARGIN, MARGIN))
        for number, panel in enumerate(panels):
            top, left = _corner(number, columns * zoom)
            frame[top : top + rows * zoom, left : left + columns * zoom] = np.kron(
                panel.places[place], np.ones((zoom, zoom), np.uint8)
            )
        yield frame


def _corner(number: int, width: int) -> tuple[int, int]:
    """The top and left pixel of a panel."""
    return MARGIN + 2 * LINE, MARGIN + number * (width + MARGIN)


def _background(panels: tuple[FilmPanel, ...], height: int, width: int) -> Bytes:
    """What all frames share: titles, color scales and their ends.

    Both sides are even, as H.264 requires.
    """
    whole = (2 * MARGIN + 3 * LINE + height + BAR, MARGIN + len(panels) * (width + MARGIN))
    background = np.full([side + side % 2 for side in whole], flow_panels.OF_WHITE, np.uint8)
    for number, panel in enumerate(panels):
        top, left = _corner(number, width)
        _write(background, panel.title, (left, top - LINE))
        scale, below = panel.scale, top + height + BAR // 2
        ramp = np.linspace(scale.low, scale.high, width)
        background[below : below + BAR, left : left + width] = flow_panels.palette_places(
            ramp, scale.low, scale.high, scale.signed
        )
        label = f"{scale.low:g} to {scale.high:g}: {scale.plain}"
        _write(background, label, (left, below + BAR + 2))
    return background


def _write(pixels: Bytes, text: str, corner: tuple[int, int]) -> None:
    """Writes a line of text in the grays of the palette, cut off at the edge.

    `corner`: left and top.
    """
    left, top = corner
    text = text.replace("\u2212", "-")  # Pillow's own font has no minus
    ink = Image.new("L", (pixels.shape[1] - left, LINE))
    ImageDraw.Draw(ink).text(
        (0, 0), text, fill=255, font=ImageFont.load_default(size=LETTER), anchor="la"
    )
    grays = np.asarray(ink).astype(np.float32) * ((flow_panels.GRAYS - 1) / 255.0)
    letters: NDArray[np.bool_] = grays >= 0.5
    line = pixels[top : top + LINE, left:]
    line[letters] = flow_panels.OF_WHITE + np.rint(grays[letters]).astype(np.uint8)
