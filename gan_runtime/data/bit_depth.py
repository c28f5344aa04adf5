"""How many bits the 16-bit files of a set really use: scanners and cameras write 10, 12 or 14 bits
into 16, which would come out nearly black.

The brightest value of all of them decides, so that a dark picture among bright ones stays dark.
"""

from __future__ import annotations

import struct

import numpy as np

from gan_runtime.data import decoding
from gan_runtime.data.contract import Progress
from gan_runtime.data.decoding import WHITE, NotUsableError, explained, read
from gan_runtime.data.picture_files import MAX_FILE_BYTES, UNREADABLE, Source

WHITES = (255, 1_023, 4_095, 16_383, WHITE)
HEADER = struct.Struct(">8sI4sIIB")  # of a PNG, up to the bits of a channel
AT_ONCE = 512  # files between two looks at whether somebody has cancelled


def white_of(files: Source, progress: Progress) -> tuple[int, str]:
    """The value of white in the 16-bit files, and a warning where it is not that of 16 bits.

    16 bits where there are none.
    """
    brightest = 0
    for number, name in enumerate(files.names):
        if number % AT_ONCE == 0:
            progress(0, len(files.names), "Looking at the files")
        brightest = max(brightest, _brightest(files, name))
        if brightest > WHITES[-2]:
            return WHITE, ""
    if not brightest:
        return WHITE, ""
    white = next(white for white in WHITES if white >= brightest)
    bits = white.bit_length()
    return (
        white,
        (
            f"No value of the 16-bit pictures is above {brightest:,}: they are read as {bits} bits,"
            f" so that white is {white:,}."
        ),
    )


def _brightest(files: Source, name: str) -> int:
    """The largest value of a 16-bit file; 0 of all others, and of what cannot be read."""
    try:
        with files.open(name) as file:
            head = file.read(HEADER.size)
            if not _is_deep(head) or files.size(name) > MAX_FILE_BYTES:
                return 0
            file.seek(0)
            with explained():
                picture = read(file).picture
                if picture.mode.startswith("I"):
                    return int(np.asarray(picture).max())
                colors = picture.convert("L" if picture.mode == "LA" else "RGB")
                return 256 * int(np.asarray(colors).max()) + 255  # the upper 8 bits are left
    except (NotUsableError, *UNREADABLE):
        return 0


def _is_deep(head: bytes) -> bool:
    if len(head) < HEADER.size:
        return False
    signature, _, kind, _, _, bits = HEADER.unpack(head)
    return bool(signature == decoding.PNG and kind == b"IHDR" and bits == 16)
