"""Prepared data sets: `<home>/data/<name>/` with manifest.json, the rows of each field
(sharded.py), and an image of the first rows. While a set is being prepared, its folder can contain
a live image.
"""

from __future__ import annotations

import io
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Bounds

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, HomeError, quoted
from gan_runtime.base.fields import IMAGES, SOURCE, TARGET, Field, Fields
from gan_runtime.base.importing import loaded
from gan_runtime.base.packages import guarded
from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.data.contract import DataSet
from gan_runtime.data.sharded import ShardedSet, row_bytes
from gan_runtime.data.summary import Summary
from gan_runtime.pictures import sheet
from gan_runtime.pictures.sheet import EVERYTHING, OF_AN_EPOCH, SheetLimits
from gan_runtime.records import run_files
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import write_whole

FORMAT = 1
MANIFEST = "manifest.json"
FIRST_ROWS = "first-rows.png"
FIRST_ROWS_COUNT = 16  # rows in the image of the first rows
PAIRS_COUNT = 6  # pairs in it
WIDEST_PAIRS = 1_056  # pixels; pairs of large images are drawn smaller
LIVE_FILE = "live.png"  # next to the rows of the new set
LIVE_SECONDS = 1.0
LIVE_SCALE = 3  # pixels a side for each pixel of the image
# Sets up to this size are copied to memory and to the device; larger sets are streamed.
RESIDENT_BYTES = 1_000_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
NAME_RULE = "1 to 60 of a–z, 0–9, underscore, hyphen; a letter or digit first"


class FieldRecord(BaseModel):
    """A `Field` in the manifest."""

    model_config = ConfigDict(frozen=True)
    shape: tuple[Annotated[int, Bounds(ge=1)], ...]
    dtype: Literal["uint8", "uint16", "int32", "int64", "float16", "float32"]
    scale: float = 1.0
    shift: float = 0.0
    unit: str = ""
    classes: tuple[str, ...] = ()
    periodic: tuple[Annotated[int, Bounds(ge=0)], ...] = ()
    odd_channels: tuple[Annotated[int, Bounds(ge=0)], ...] = ()

    @classmethod
    def of(cls, field: Field) -> FieldRecord:
        """The stored form of a field."""
        return cls.model_validate(vars(field))

    @property
    def field(self) -> Field:
        """The field of this stored form."""
        return Field(**dict(self))


@dataclass(frozen=True)
class Stored:
    """The content of a new set's folder, for its manifest."""

    fields: Fields
    shards: dict[str, tuple[int, ...]]
    summary: Summary


class Manifest(Summary):
    """The manifest of a prepared set: the summary of its preparation, and how it was prepared.

    `content`: a hash of source and options; the same content is not prepared twice. `source`: the
    name of the file or folder. `shards`: rows in each file of each field.
    """

    format: int = FORMAT
    name: str
    preparation: str
    source: str
    options: dict[str, Any]
    content: str
    fields: dict[str, FieldRecord]
    shards: dict[str, tuple[int, ...]]
    prepared_at: datetime

    @property
    def rows(self) -> int:
        """To train on."""
        return min(map(sum, self.shards.values())) - self.held_out

    @property
    def bytes(self) -> int:
        """The bytes on disk and in memory, without file headers."""
        return (self.rows + self.held_out) * sum(
            row_bytes(field.field) for field in self.fields.values()
        )

    @property
    def origin(self) -> str:
        """The source of the rows, for the record of a run."""
        return f"{self.source}, fingerprint {self.content[:16]}"

    @property
    def offered(self) -> Fields:
        """The fields of a row."""
        return {name: record.field for name, record in self.fields.items()}


def check_name(name: str) -> None:
    """Raises DatasetError for a name that a prepared set cannot have."""
    if _NAME.fullmatch(name) is None:
        raise DatasetError(f"{quoted(name)} cannot name a data set: use {NAME_RULE}.")
    if name in catalog.DATASETS:
        raise DatasetError(f"{name} is a built-in data set: choose another name.")


def folder(home: Home, name: str) -> Path:
    """The folder of a set, whether or not it exists."""
    return home.data / name


def exists(home: Home, name: str) -> bool:
    """Whether a set of this name is prepared; True for an unreadable set, for which `manifest`
    raises.
    """
    if _NAME.fullmatch(name) is None:
        return False
    try:
        return (folder(home, name) / MANIFEST).is_file()
    except OSError:
        return True


def names(home: Home) -> list[str]:
    """The names of all prepared sets. Raises HomeError when their folder cannot be read."""
    try:
        return sorted(path.name for path in home.data.iterdir() if exists(home, path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise HomeError(
            f"{home.data} cannot be read ({error.strerror}): give this user read permission."
        ) from None


def manifest(home: Home, name: str) -> Manifest:
    """Raises DatasetError when there is no such set, or its manifest cannot be read."""
    path = folder(home, name) / MANIFEST
    advice = "remove the data set and prepare it again"
    try:
        stored = Manifest.model_validate_json(run_files.content(path))
    except FileNotFoundError:
        raise DatasetError(
            f"{home.data} has no data set {quoted(name)}: prepare it first."
        ) from None
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read ({error.strerror}): give this user read permission."
        ) from None
    except ValidationError:
        raise DatasetError(
            f"{path} is not a manifest of a data set, or is damaged: {advice}."
        ) from None
    if stored.format > FORMAT:
        raise DatasetError(
            f"{path} is from a newer version of this program: update this one first."
        )
    if set(stored.shards) != set(stored.fields) or not stored.fields or stored.rows < 1:
        raise DatasetError(f"{path} is inconsistent: {advice}.")
    return stored


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes the manifest, after all other files of a set. Raises HomeError if the disk is full."""
    write_whole(folder / MANIFEST, manifest.model_dump_json(indent=1) + "\n")


def is_streamed(home: Home, name: str) -> bool:
    """Whether its rows are read on demand, since they need more memory than RESIDENT_BYTES."""
    return manifest(home, name).bytes > RESIDENT_BYTES


def open_set(home: Home, name: str, resident_bytes: int = RESIDENT_BYTES) -> DataSet:
    """Opens a prepared set: in memory up to `resident_bytes`, else streamed. Raises DatasetError if
    it cannot be read.
    """
    stored = manifest(home, name)
    rows = _sharded_set(folder(home, name), stored)
    rows.check()
    return rows.in_memory() if stored.bytes <= resident_bytes else rows


def draw_first_rows(place: Path, manifest: Manifest) -> None:
    """Writes an image of the first rows into the folder of a new set, if such rows can be drawn."""
    rows = _sharded_set(place, manifest).read(np.arange(min(FIRST_ROWS_COUNT, manifest.rows)))
    image = png_of_rows(rows)
    if image is not None:
        (place / FIRST_ROWS).write_bytes(image)


def first_rows_image(home: Home, name: str) -> Path | None:
    """The image of the first rows; None for a set without an image, such as from an earlier
    version.
    """
    path = folder(home, name) / FIRST_ROWS
    return path if path.is_file() else None


def _sharded_set(place: Path, manifest: Manifest) -> ShardedSet:
    return ShardedSet(
        manifest.name,
        place,
        manifest.offered,
        manifest.shards,
        manifest.held_out,
        manifest.origin,
        manifest.note,
    )


def remove(home: Home, name: str) -> None:
    """Removes a set: from all lists at once, even if removing its files takes longer.

    Raises DatasetError when there is no such set.
    """
    if name in catalog.DATASETS:
        raise DatasetError(f"{name} is a built-in data set, which cannot be removed.")
    path = folder(home, name)
    if _NAME.fullmatch(name) is None or not path.is_dir():
        raise DatasetError(f"{home.data} has no data set {quoted(name)}: prepare it first.")
    deleted = path.with_name(f".deleted-{name}")
    try:
        shutil.rmtree(deleted, ignore_errors=True)
        path.rename(deleted)
    except OSError as error:
        raise HomeError.not_written(path, error) from None
    shutil.rmtree(deleted, ignore_errors=True)


def png(rows: NDArray[np.uint8], limits: SheetLimits = OF_AN_EPOCH) -> bytes:
    """A PNG of the rows (N, height, width, 1 or 3), side by side; of the first rows if
    not all fit.
    """
    return _as_png(sheet.image(sheet.tiled(rows, limits)))


def png_of_pairs(pairs: NDArray[np.uint8]) -> bytes:
    """`pairs`: (N, height, 2 · width, 3), source left, target right; the first six in two
    columns.
    """
    limits = SheetLimits(columns=2, widest=EVERYTHING, tallest=EVERYTHING)
    image = sheet.image(sheet.tiled(pairs[:PAIRS_COUNT], limits))
    image.thumbnail((WIDEST_PAIRS, EVERYTHING))
    return _as_png(image)


def png_of_rows(rows: Mapping[str, NDArray[Any]]) -> bytes | None:
    """A PNG of the first stored rows: images, pairs, or the drawing of a domain; None if none
    applies.
    """
    if IMAGES in rows:
        return png(rows[IMAGES])
    for place in (domain.first_rows for domain in DOMAINS.values() if domain.first_rows):
        image: Image.Image | None = guarded(place, lambda place: loaded(place)(rows), None)(place)
        if image is not None:
            return _as_png(image)
    if SOURCE in rows:
        return png_of_pairs(np.concatenate([rows[SOURCE], rows[TARGET]], axis=2))
    return None


def _as_png(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=True)
    return file.getvalue()


class LiveImage:
    """An image of a set that is being prepared, in its `folder`, redrawn for pages."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._file, self._clock = folder / LIVE_FILE, clock
        self._drawn_s = -LIVE_SECONDS

    def renew(self, draw: Callable[[], NDArray[np.uint8]]) -> None:
        """Redraws it, uint8 (height, width, 3), at most once in LIVE_SECONDS.

        Readers see the old or the new image.
        """
        now_s = self._clock()
        if now_s - self._drawn_s < LIVE_SECONDS:
            return
        self._drawn_s = now_s
        image, partial = Image.fromarray(draw()), self._file.with_suffix(".new")
        size = image.width * LIVE_SCALE, image.height * LIVE_SCALE
        image.resize(size, Image.Resampling.BICUBIC).save(partial, format="PNG")
        partial.replace(self._file)


def remove_live_image(folder: Path) -> None:
    """Removes the live image, which is not part of the set."""
    (folder / LIVE_FILE).unlink(missing_ok=True)


def read_live_image(work: Path) -> bytes | None:
    """The live image in the folder `work` of a job that prepares a set; None without an image."""
    try:
        return next(work.glob(f"*/*/{LIVE_FILE}")).read_bytes()
    except (StopIteration, OSError):
        return None
