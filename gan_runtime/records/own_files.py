"""Files of a run's folder that its records name. Records come from other people too: nothing but a plain file in that very place is opened."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from gan_runtime.errors import PictureError


def opened(folder: Path, name: str) -> int:
    """The number of the open file, which the caller closes. `name`: without a "/". Neither the folder nor the file may be a link, nor a pipe:
    opening one would wait for ever.

    Raises:
        PictureError: there is no such file; the message says why, as the end of a sentence.
    """
    try:
        place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=place)
        finally:
            os.close(place)
    except FileNotFoundError:
        raise PictureError("the file is missing") from None
    except OSError as error:
        raise PictureError(f"it cannot be read ({error.strerror})") from None
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise PictureError("it is no plain file")
    return file
