"""PNG pictures of a few pixels."""

from __future__ import annotations

import io

from PIL import Image


def png(width: int = 8, height: int = 8) -> bytes:
    """A gradient from black to white."""
    kept = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).save(kept, "PNG")
    return kept.getvalue()
