"""ICC profiles of three primaries and a power law, or of a gray and a power law, like those of
screens and cameras.
"""

from __future__ import annotations

import struct

import numpy as np

# Columns X, Y, Z of red, green and blue, adapted to D50.
ADOBE_RGB = np.array(
    [[0.60974, 0.31111, 0.01947], [0.20528, 0.62567, 0.06087], [0.14919, 0.06322, 0.74457]]
)
DISPLAY_P3 = np.array(
    [[0.51512, 0.24120, -0.00105], [0.29198, 0.69225, 0.04189], [0.15710, 0.06657, 0.78407]]
)
SRGB = np.array(
    [[0.43607, 0.22249, 0.01392], [0.38515, 0.71687, 0.09708], [0.14307, 0.06061, 0.71410]]
)
WHITE = (0.9642, 1.0, 0.8249)  # D50


def _tagged(space: bytes, tags: dict[bytes, bytes]) -> bytes:
    header = struct.pack(">I4sI4s4s4s", 0, b"lcms", 0x02400000, b"mntr", space, b"XYZ ")
    header += struct.pack(">6H4sI", 2026, 1, 1, 0, 0, 0, b"acsp", 0).ljust(68 - len(header), b"\0")
    header = header.ljust(68, b"\0") + _fixed(*WHITE)
    table, data = struct.pack(">I", len(tags)), b""
    begin = 128 + 4 + 12 * len(tags)
    for name, content in tags.items():
        table += struct.pack(">4sII", name, begin + len(data), len(content))
        data += content
    body = header.ljust(128, b"\0") + table + data
    return struct.pack(">I", len(body)) + body[4:]


def _fixed(*values: float) -> bytes:
    return b"".join(struct.pack(">i", round(value * 65_536)) for value in values)


def _curve(gamma: float) -> bytes:
    return struct.pack(">4sIIH", b"curv", 0, 1, round(gamma * 256)).ljust(16, b"\0")


def of_primaries(primaries: np.ndarray, gamma: float) -> bytes:
    """A profile for RGB images."""
    columns = zip((b"rXYZ", b"gXYZ", b"bXYZ"), primaries, strict=True)
    tags = {name: b"XYZ \0\0\0\0" + _fixed(*column) for name, column in columns}
    curves = dict.fromkeys((b"rTRC", b"gTRC", b"bTRC"), _curve(gamma))
    return _tagged(b"RGB ", {**tags, **curves, b"wtpt": b"XYZ \0\0\0\0" + _fixed(*WHITE)})


def of_grey(gamma: float) -> bytes:
    """A profile for gray images."""
    return _tagged(b"GRAY", {b"kTRC": _curve(gamma), b"wtpt": b"XYZ \0\0\0\0" + _fixed(*WHITE)})


def in_srgb(color: tuple[int, ...], primaries: np.ndarray, gamma: float) -> np.ndarray:
    """The same color in sRGB, 0 to 255, computed from the definitions: power law, primaries, and
    sRGB's curve (IEC 61966-2-1).
    """
    linear = (np.array(color) / 255.0) ** gamma @ primaries @ np.linalg.inv(SRGB)
    linear = linear.clip(0.0, 1.0)
    return 255.0 * np.where(
        linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055
    )
