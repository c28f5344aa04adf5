"""What a batch holds: named arrays with a shape, a type and a scale.

Data sets and workloads declare the same record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gan_runtime.base.errors import DatasetError


@dataclass(frozen=True)
class Field:
    """One array of a batch, rows first.

    value = stored · scale + shift, as float32, computed on the device; a field whose scale is 1 and
    whose shift is 0 stays as it is stored, unless that is float16. `shape`: of one row, such as
    (28, 28, 1), or () for a label or an energy. `dtype`: as stored and sent. `unit`: of the value.
    `classes`: of a label, what its numbers 0, 1, 2, … are called; empty for everything else.
    `periodic`: the axes of a row that close on themselves, such as an azimuth: the last index lies
    beside the first. `odd_channels`: places along the last axis of what changes its sign when a
    picture is turned upside down, such as a velocity upwards; a field that has some has a direction
    from left to right, and its pictures may be turned in no other way.
    """

    shape: tuple[int, ...]
    dtype: str = "uint8"
    scale: float = 1.0
    shift: float = 0.0
    unit: str = ""
    classes: tuple[str, ...] = ()
    periodic: tuple[int, ...] = ()
    odd_channels: tuple[int, ...] = ()

    @property
    def is_as_stored(self) -> bool:
        """Whether the value is the stored number itself, such as a label.

        Not of float16, which saves room on disk only.
        """
        return self.scale == 1.0 and self.shift == 0.0 and self.dtype != "float16"

    @property
    def size(self) -> str:
        """The shape in words: "28 × 28 × 1"; "1" for a single number."""
        return " × ".join(map(str, self.shape)) or "1"


Fields = Mapping[str, Field]

IMAGES = "images"  # the field that holds pictures
LABELS = "labels"  # the field that holds the number of each row's class
SOURCE = "source"  # of pictures in pairs, the one to start from: (height, width, channels)
TARGET = (  # the one to make of it: (height, width, channels), no more of them than the source has
    "target"
)


def pictures(height: int, width: int, channels: int) -> Field:
    """Pictures stored as bytes, 0 is black: values from -1 to 1."""
    return Field((height, width, channels), scale=1.0 / 127.5, shift=-1.0)


def labels(classes: tuple[str, ...]) -> Field:
    """The number of each row's class, 0 to len(classes) - 1."""
    return Field((), dtype="int32", classes=classes)


def pair_fields(
    height: int, width: int, source_channels: int = 3, target_channels: int = 3
) -> Fields:
    """The fields of a data set of picture pairs. Channels: 1 is grey, 3 is red, green, blue."""
    return {
        SOURCE: pictures(height, width, source_channels),
        TARGET: pictures(height, width, target_channels),
    }


def class_names(fields: Fields) -> tuple[str, ...]:
    """What the numbers of the labels are called; empty where there are no labels."""
    return fields[LABELS].classes if LABELS in fields else ()


def needed(
    offered: Fields, name: str, allowed: Callable[[tuple[int, ...]], bool], sizes: str, advice: str
) -> Field:
    """The field of a data set that a workload reads.

    `allowed`: whether a shape fits; `sizes`: which do, in words; `advice`: what to do where it does
    not.

    Raises:
        DatasetError: it is missing or of another shape; the message ends a sentence about the data
            set.
    """
    if name not in offered:
        held = " and ".join(offered) or "nothing"
        raise DatasetError(f"it has no {name}, only {held}: {advice}.")
    field = offered[name]
    if not allowed(field.shape):
        raise DatasetError(f"its {name} are {field.size}, but {sizes} is needed: {advice}.")
    return field
