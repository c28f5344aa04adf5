"""The default size of the rows of a data set of images: the usual one, or a smaller one that most
images have, since images are never enlarged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, TypeVar

from PIL import Image

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError
from gan_runtime.data.contract import Progress
from gan_runtime.data.decoding import FORMATS, NotUsableError, as_not_usable
from gan_runtime.data.image_files import UNREADABLE, ImageSource
from gan_runtime.data.summary import Tally

AUTO = "auto"  # the value of an option
MOST_READ = 500  # images whose size is read
SHARE = 0.9  # of the images that have at least the chosen size


class Options(Protocol):
    """The options of a preparation that decide the size of its rows."""

    @property
    def pixels(self) -> str: ...

    @property
    def frame(self) -> str: ...

    def model_copy(self, *, update: Mapping[str, Any]) -> Self: ...


Sized = TypeVar("Sized", bound=Options)


def sized(
    options: Sized,
    files: ImageSource,
    names: Sequence[str],
    sizes: Sequence[int],
    tally: Tally,
    progress: Progress,
    *,
    halved: bool = False,
) -> Sized:
    """The options with the size of the rows; the rest as `fitting`, whose sentence `tally` gets."""
    if options.pixels != AUTO:
        return options
    size, warning = fitting(
        files, names, sizes, cropped=options.frame == "crop", halved=halved, progress=progress
    )
    tally.warn(warning)
    return options.model_copy(update={"pixels": str(size)})


def fitting(
    files: ImageSource,
    names: Sequence[str],
    sizes: Sequence[int],
    *,
    cropped: bool,
    halved: bool = False,
    progress: Progress,
) -> tuple[int, str]:
    """The largest of `sizes` that most images have, and a sentence if it is not the largest of all.

    `names`: of the images, in random order. `sizes`: in pixels, the usual one last. `cropped`:
    whether the shorter side counts. `halved`: whether a file has two images side by side.

    Raises DatasetError: no image has the smallest size.
    """
    progress(0, len(names), "Reading the sizes of the images")
    read = [_size(files, name) for name in names[:MOST_READ]]
    choose = min if cropped else max
    sides = [
        choose(width // 2 if halved else width, height) for width, height in filter(None, read)
    ]
    enough = [size for size in sizes if sum(side >= size for side in sides) >= SHARE * len(sides)]
    if enough and enough[-1] == sizes[-1]:
        return sizes[-1], ""
    if max(sides) < sizes[0] and len(names) <= MOST_READ:
        count = formats.quantity(len(sides), "image")
        raise DatasetError(
            f"the images are too small: no side of the {count} has more than {max(sides)} pixels,"
            f" but at least {sizes[0]} × {sizes[0]} are needed: give larger images."
        )
    size = enough[-1] if enough else sizes[0]
    return size, (
        f"The images are stored with {size} × {size} pixels, since too few of them have more: for"
        " another size, set pixels."
    )


def _size(files: ImageSource, name: str) -> tuple[int, int] | None:
    """Width and height as stored, which a rotation may swap; None for an unreadable file."""
    try:
        with files.open(name) as file, as_not_usable():
            return Image.open(file, formats=FORMATS).size
    except (NotUsableError, *UNREADABLE):
        return None
