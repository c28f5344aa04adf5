"""The fields of a batch: named arrays with a shape, a type and a scale, declared by data sets and
workloads alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gan_runtime.base.errors import DatasetError


@dataclass(frozen=True)
class Field:
    """One array of a batch, rows first.

    value = stored · scale + shift, as float32, computed on the device; with scale 1 and shift 0 the
    stored number is the value, except for float16. `shape`: of one row, such as (28, 28, 1), or ()
    for a label or an energy. `dtype`: as stored and transferred. `unit`: of the value. `classes`:
    of a label, the names of its numbers 0, 1, 2, …; empty for other fields. `periodic`: axes of a
    row that are circular, such as an azimuth: the last index is next to the first. `odd_channels`:
    indexes along the last axis whose sign changes when the image is flipped upside down, such as an
    upward velocity; this field then has a direction from left to right, and no other flip is valid.
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
        """Whether the value is the stored number, such as a label; never in float16, which saves
        disk space.
        """
        return self.scale == 1.0 and self.shift == 0.0 and self.dtype != "float16"

    @property
    def size(self) -> str:
        """The shape in words: "28 × 28 × 1"; "1" for a single number."""
        return " × ".join(map(str, self.shape)) or "1"


Fields = Mapping[str, Field]

IMAGES = "images"  # (height, width, channels)
CLASS_IMAGES = "class_images"  # the same with labels, as `Workload.show` names them
LABELS = "labels"  # the number of each row's class
SOURCE = "source"  # the input of a pair: (height, width, channels)
TARGET = "target"  # the output of a pair: (height, width, channels), at most those of the source
GENERATED = "generated"  # what a generator makes of a source, as `Workload.show` names it


def pictures(height: int, width: int, channels: int) -> Field:
    """Images stored as bytes, 0 is black: values from -1 to 1."""
    return Field((height, width, channels), scale=1.0 / 127.5, shift=-1.0)


def labels(classes: tuple[str, ...]) -> Field:
    """The number of each row's class, 0 to len(classes) - 1."""
    return Field((), dtype="int32", classes=classes)


def pair_fields(
    height: int, width: int, source_channels: int = 3, target_channels: int = 3
) -> Fields:
    """The fields of image pairs. Channels: 1 is gray, 3 is red, green, blue."""
    return {
        SOURCE: pictures(height, width, source_channels),
        TARGET: pictures(height, width, target_channels),
    }


def imitated(fields: Fields) -> str:
    """The field with the images that a generator imitates: IMAGES, or TARGET of pairs of images; ""
    without one, also where targets are other arrays, such as frames of a simulation.
    """
    if IMAGES in fields:
        return IMAGES
    target = fields.get(TARGET)
    if target is None or target != pictures(*target.shape):
        return ""
    return TARGET if target.shape[-1] in (1, 3) else ""


def class_names(fields: Fields) -> tuple[str, ...]:
    """The names of the classes; empty without labels."""
    return fields[LABELS].classes if LABELS in fields else ()


def needed(
    offered: Fields, name: str, allowed: Callable[[tuple[int, ...]], bool], sizes: str, advice: str
) -> Field:
    """The field of a data set that a workload reads.

    `allowed`: whether a shape fits; `sizes`: the shapes that fit, as text; `advice`: what to do
    otherwise.

    Raises:
        DatasetError: the field is missing or has another shape; the message ends a sentence about
            the data set.
    """
    if name not in offered:
        names = " and ".join(offered) or "nothing"
        raise DatasetError(f"it has no {name}, only {names}: {advice}.")
    field = offered[name]
    if not allowed(field.shape):
        raise DatasetError(f"its {name} are {field.size}, but {sizes} is needed: {advice}.")
    return field
