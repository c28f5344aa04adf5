"""PNG images of a few pixels."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime import pictures


def png(width: int = 8, height: int = 8) -> bytes:
    """A gradient from black to white."""
    buffer = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(buffer, "PNG")
    return buffer.getvalue()


def write_grid(path: Path) -> None:
    """Writes an image file like a trainer: 64 gray images of 28 × 28 pixels."""
    pictures.save(pictures.render("grey_grid", (np.zeros((64, 28, 28, 1), np.float32),)), path)
