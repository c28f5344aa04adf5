"""Sample grids as they may be taken in: whole PNG files of a stated size, inside the run's own
samples folder, by a plain name.

A record names its file, and records come from other people too: without this rule one could ask for
any file of the host.
"""

from __future__ import annotations

import io
import os
import re
import struct

from PIL import Image

from gan_runtime.base.errors import PictureError
from gan_runtime.records import run_files
from gan_runtime.records.run_folder import RunDir

# A grid of 64 color images of 256 × 256 has 2,062 × 2,062 pixels and 13 MB where nothing can be
# compressed; those of today are 28 × 28. What is larger is no sample grid, and would take the
# memory of whoever looks at it.
MAX_BYTES = 20_000_000
MAX_SIDE = 4_096
_FILE = re.compile(r"samples/([A-Za-z0-9][A-Za-z0-9_.-]{0,99}\.png)", re.ASCII)
_BEGIN = re.compile(
    rb"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR(.{8})", re.DOTALL
)  # then width and height


def read(run: RunDir, file: str) -> bytes:
    """The bytes of a picture that a record of the run names, such as samples/epoch-00001.png,
    checked as `check` does.

    Raises:
        PictureError: another place than the run's samples folder, a link, missing, or no picture of
            a sample grid.
    """
    name = _FILE.fullmatch(file)
    if name is None:
        raise PictureError("its name is not that of a PNG file in the samples folder of the run")
    content = _bytes(run, name[1])
    check(content)
    return content


def check(content: bytes) -> None:
    """Proves that this is a whole PNG within the limits, by decoding it.

    Raises:
        PictureError: it is not; the message says what is wrong with it, as the end of a sentence.
    """
    if len(content) > MAX_BYTES:
        raise PictureError(f"it has more than {MAX_BYTES:,} bytes")
    begin = _BEGIN.match(content)
    if begin is None:
        raise PictureError("it is no PNG picture")
    width, height = struct.unpack(">II", begin[1])
    if max(width, height) > MAX_SIDE:  # asked before Pillow makes room for the pixels
        raise PictureError(
            f"it has {width} × {height} pixels, but a side may have {MAX_SIDE:,} at most"
        )
    try:
        _decode(content)
    except Exception:
        # Pillow raises what the broken part of a file makes it raise: OSError, SyntaxError,
        # zlib.error, …
        raise PictureError("it is a damaged PNG picture") from None


def _decode(content: bytes) -> None:
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        picture.verify()  # checksums of all parts
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        picture.load()  # the pixels themselves; `verify` ends the use of an object


def _bytes(run: RunDir, name: str) -> bytes:
    with os.fdopen(run_files.opened(run.samples, name), "rb") as file:
        return run_files.read(file, MAX_BYTES + 1)
