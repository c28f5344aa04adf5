"""Zip files that list an unrealistic number of members, without their content."""

from __future__ import annotations

import struct
from pathlib import Path

MEMBER = b"PK\x01\x02" + bytes(42)  # a member without a name


def crowded(
    path: Path, members: int, stated: int | None = None, list_bytes: int | None = None
) -> Path:
    """Lists `members` empty members; the end record states `stated` members and `list_bytes` bytes,
    by default the true numbers.

    A list whose stated size is too large follows as many unwritten zeros, which take no disk space.
    """
    size = len(MEMBER) * members if list_bytes is None else list_bytes
    count = members if stated is None else stated
    with path.open("wb") as file:
        file.truncate(size - len(MEMBER) * members)
        file.seek(0, 2)
        for _ in range(0, members, 10_000):
            file.write(MEMBER * min(10_000, members))
        file.truncate(size)
        file.seek(size)
        file.write(
            struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, count, count, size, 0)
        )
        file.write(struct.pack("<4sLQL", b"PK\x06\x07", 0, size, 1))
        file.write(
            struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 65_535, 65_535, 2**32 - 1, 2**32 - 1, 0)
        )
    return path
