"""Colors by the profile of a picture → sRGB, which screens and networks take all pictures for. Little CMS, by Pillow."""

from __future__ import annotations

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

SAME_LEVELS = 2  # of 255: profiles that change no color by more are sRGB, as many programs write it
SPACES = {"L": "GRAY", "RGB": "RGB ", "CMYK": "CMYK"}  # of a profile that fits the mode
_NO_CACHE = 0x0040  # of Little CMS: the transform is used by several threads
_SRGB = ImageCms.createProfile("sRGB")


class UnusableProfileError(Exception):
    """A profile that is damaged, or of another kind of picture."""


def in_srgb(picture: Image.Image, profile: bytes) -> Image.Image | None:
    """A picture of mode L, RGB or CMYK as RGB; None where it is in sRGB as it is. Raises UnusableProfileError."""
    try:
        transform = _transform(profile, picture.mode)
        return None if transform is None else ImageCms.applyTransform(picture, transform)
    except (ImageCms.PyCMSError, OSError, ValueError, KeyError, TypeError):
        raise UnusableProfileError from None


@lru_cache(maxsize=64)
def _transform(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """None where it changes nothing that can be seen."""
    of_file = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    if of_file.profile.xcolor_space != SPACES[mode]:
        raise UnusableProfileError
    transform = ImageCms.buildTransform(of_file, _SRGB, mode, "RGB", flags=ImageCms.Flags(_NO_CACHE))
    if mode == "CMYK":
        return transform
    ramp = _ramp().convert(mode)
    changed = np.asarray(ImageCms.applyTransform(ramp, transform), np.int16)
    return transform if abs(changed - np.asarray(ramp.convert("RGB"))).max() > SAME_LEVELS else None


def _ramp() -> Image.Image:
    """RGB: greys from black to white, then each mix of six levels."""
    greys = np.arange(256).repeat(3).reshape(-1, 3)
    mixes = np.stack(np.meshgrid(*[np.arange(0, 256, 51)] * 3), axis=-1).reshape(-1, 3)
    return Image.fromarray(np.concatenate([greys, mixes])[None].astype(np.uint8))
