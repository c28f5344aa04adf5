"""Arrays out of an .npz file that anybody may have made: what it holds is known before room is made for it, and nothing in it is run.

NumPy's own reader makes an array as large as a header of 100 bytes tells, and takes whatever else lies in the file.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import zip_directory
from gan_runtime.base.errors import PictureError

_ENCRYPTED = 0x1  # of the flags of a member
_HEADER_CHARACTERS = 1_000  # of a member: its type and shape; NumPy writes about 120
Kinds = Mapping[str, Collection[np.dtype[Any]]]


def arrays(file: int, kinds: Kinds, most_bytes: int) -> dict[str, NDArray[Any]]:
    """The arrays of an open file, which is closed. They cannot be written to.

    `kinds`: the names that it must hold, no more and no less, and which types each may have. `most_bytes`: of all arrays, unpacked.

    Raises:
        PictureError: it holds something else; the message says what, as the end of a sentence.
    """
    try:
        with zip_directory.opened(file, len(kinds)) as members:
            _check(members, kinds, most_bytes)
            return {name: _array(members.read(f"{name}.npy"), name, kinds[name]) for name in kinds}
    except PictureError:
        raise
    except Exception:  # zipfile, zlib and NumPy raise what the broken part of a file makes them raise
        raise PictureError("it is damaged") from None


def _check(members: zipfile.ZipFile, kinds: Kinds, most_bytes: int) -> None:
    listed = members.infolist()
    if sorted(member.filename for member in listed) != sorted(f"{name}.npy" for name in kinds):
        raise PictureError(f"it does not hold {', '.join(kinds)} alone")
    if sum(member.file_size for member in listed) > most_bytes:
        raise PictureError(f"it has more than {most_bytes:,} bytes, unpacked")
    packed = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
    if any(member.flag_bits & _ENCRYPTED or member.compress_type not in packed for member in listed):
        raise PictureError("it is encrypted or packed as NumPy packs nothing")


def _array(content: bytes, name: str, kinds: Collection[np.dtype[Any]]) -> NDArray[Any]:
    file = io.BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise PictureError(f"its {name} are of another format")
    shape, is_fortran, kind = np.lib.format.read_array_header_1_0(file, max_header_size=_HEADER_CHARACTERS)
    if kind not in kinds:  # so no objects, which would be unpickled
        raise PictureError(f"its {name} are of the type {str(kind)[:20]}")
    begin = file.tell()
    if min(shape, default=0) < 0 or math.prod(shape) * kind.itemsize != len(content) - begin:
        raise PictureError(f"its {name} are not as many as it tells")
    return np.frombuffer(content, kind, offset=begin).reshape(shape, order="F" if is_fortran else "C")
