"""A zip of labeled images generated for tests: real files of real formats."""

from __future__ import annotations

import io
import zipfile

import numpy as np
from PIL import Image

SIDE = 80


def picture(seed: int, red: bool, side: int = SIDE) -> Image.Image:
    """A disk (red) or a square (blue) at a random place on a noisy background."""
    random = np.random.RandomState(seed)
    pixels = random.randint(90, 130, (side, side, 3)).astype(np.uint8)
    x, y = random.randint(side // 4, 3 * side // 4, 2)
    rows, columns = np.mgrid[:side, :side]
    disk = (rows - y) ** 2 + (columns - x) ** 2 < (side // 5) ** 2
    square = (abs(rows - y) < side // 6) & (abs(columns - x) < side // 6)
    pixels[disk if red else square] = (210, 40, 30) if red else (30, 60, 210)
    return Image.fromarray(pixels)


def encoded(image: Image.Image, form: str) -> bytes:
    """The encoded file of an image."""
    file = io.BytesIO()
    image.save(file, form)
    return file.getvalue()


def noise(count: int, side: int = 28) -> bytes:
    """A zip of `count` different gray images."""
    random = np.random.RandomState(count)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        for number in range(count):
            pixels = random.randint(0, 256, (side, side)).astype(np.uint8)
            bundle.writestr(f"{number}.png", encoded(Image.fromarray(pixels), "PNG"))
    return file.getvalue()


def zipped(each: int = 20, further: dict[str, bytes] | None = None) -> bytes:
    """`each` disks and as many squares of 80 × 80 pixels in separate folders, as PNG and JPEG; and
    the files in `further`.
    """
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as bundle:
        for number in range(each):
            bundle.writestr(f"shapes/disks/{number}.png", encoded(picture(number, red=True), "PNG"))
            bundle.writestr(
                f"shapes/squares/{number}.jpg", encoded(picture(number, red=False), "JPEG")
            )
        for name, content in (further or {}).items():
            bundle.writestr(name, content)
    return file.getvalue()
