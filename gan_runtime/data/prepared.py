"""Prepared data sets: `<home>/data/<name>/` with manifest.json and the rows of each field
(sharded.py).
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic import Field as Bounds

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, HomeError, quoted
from gan_runtime.base.fields import Field, Fields
from gan_runtime.data import previews
from gan_runtime.data.contract import DataSet
from gan_runtime.data.sharded import ShardedSet, row_bytes
from gan_runtime.data.summary import Summary
from gan_runtime.records import run_files
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import write_whole

FORMAT = 1
MANIFEST = "manifest.json"
FIRST_ROWS = "first-rows.png"
# Sets up to this size are read into memory and lie on the device as a whole; larger ones are
# streamed.
RESIDENT_BYTES = 1_000_000_000
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,59}")
NAME_RULE = "1 to 60 of a–z, 0–9, underscore, hyphen; a letter or digit first"


class FieldRecord(BaseModel):
    """A field as the manifest holds it; see `fields.Field`."""

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
        """The same as a record."""
        return cls.model_validate(vars(field))

    @property
    def field(self) -> Field:
        """The same as the framework-free record."""
        return Field(**dict(self))


@dataclass(frozen=True)
class Stored:
    """What was written into the folder of a new set, for its manifest."""

    fields: Fields
    shards: dict[str, tuple[int, ...]]
    summary: Summary


class Manifest(Summary):
    """What a prepared set is: the summary of its preparation, and how it was made.

    `content`: a hash of what it was made of and of how; the same content is not prepared twice.
    `source`: the name of the file or folder. `shards`: rows in each file of each field.
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
        """On disk and in memory, without the headers of the files."""
        return (self.rows + self.held_out) * sum(
            row_bytes(field.field) for field in self.fields.values()
        )

    @property
    def origin(self) -> str:
        """What a run says of where its rows came from."""
        return f"{self.source}, content {self.content[:16]}"

    @property
    def offered(self) -> Fields:
        """The fields of a row."""
        return {name: record.field for name, record in self.fields.items()}


def check_name(name: str) -> None:
    """Raises DatasetError when a prepared set cannot have the name."""
    if _NAME.fullmatch(name) is None:
        raise DatasetError(f"{quoted(name)} is no name for a data set: use {NAME_RULE}.")
    if name in catalog.DATASETS:
        raise DatasetError(f"{name} is a data set of this program: choose another name.")


def folder(home: Home, name: str) -> Path:
    """Where a set lies, or would."""
    return home.data / name


def is_there(home: Home, name: str) -> bool:
    """Whether a set of this name is prepared, also where it cannot be read, which `manifest`
    says.
    """
    if _NAME.fullmatch(name) is None:
        return False
    try:
        return (folder(home, name) / MANIFEST).is_file()
    except OSError:
        return True


def names(home: Home) -> list[str]:
    """Of all prepared sets. Raises HomeError when their folder cannot be read."""
    try:
        return sorted(path.name for path in home.data.iterdir() if is_there(home, path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise HomeError(
            f"{home.data} cannot be read ({error.strerror}): give this user the right to read it."
        ) from None


def manifest(home: Home, name: str) -> Manifest:
    """Raises DatasetError when there is no such set, or its manifest cannot be read."""
    path = folder(home, name) / MANIFEST
    advice = "remove the data set and prepare it anew"
    try:
        known = Manifest.model_validate_json(run_files.content(path))
    except FileNotFoundError:
        raise DatasetError(f"no data set {quoted(name)} is prepared in {home.data}.") from None
    except OSError as error:
        raise DatasetError(
            f"{path} cannot be read ({error.strerror}): give this user the right to read it."
        ) from None
    except ValidationError:
        raise DatasetError(f"{path} is no manifest of a data set, or damaged: {advice}.") from None
    if known.format > FORMAT:
        raise DatasetError(
            f"{path} was made by a newer version of this program: update this one first."
        )
    if set(known.shards) != set(known.fields) or not known.fields or known.rows < 1:
        raise DatasetError(f"{path} contradicts itself: {advice}.")
    return known


def write_manifest(folder: Path, known: Manifest) -> None:
    """The last thing that is written of a set. Raises HomeError when the disk is full."""
    write_whole(folder / MANIFEST, known.model_dump_json(indent=1) + "\n")


def is_streamed(home: Home, name: str) -> bool:
    """Whether its rows are read as they are needed, since they are more than memory should hold."""
    return manifest(home, name).bytes > RESIDENT_BYTES


def opened(home: Home, name: str, resident_bytes: int = RESIDENT_BYTES) -> DataSet:
    """In memory where it has at most `resident_bytes`, else streamed.

    Raises DatasetError when it cannot be read.
    """
    known = manifest(home, name)
    rows = _sharded(folder(home, name), known)
    rows.check()
    return rows.in_memory() if known.bytes <= resident_bytes else rows


def draw(place: Path, known: Manifest) -> None:
    """Puts a picture of the first rows into the folder of a set that is being made, where
    there is a picture for such rows.
    """
    rows = _sharded(place, known).read(np.arange(min(previews.SHOWN, known.rows)))
    picture = previews.of_rows(rows)
    if picture is not None:
        (place / FIRST_ROWS).write_bytes(picture)


def drawn(home: Home, name: str) -> Path | None:
    """The picture of the first rows; None for a set that has none, or was made by an earlier
    version.
    """
    path = folder(home, name) / FIRST_ROWS
    return path if path.is_file() else None


def _sharded(place: Path, known: Manifest) -> ShardedSet:
    return ShardedSet(
        known.name, place, known.offered, known.shards, known.held_out, known.origin, known.note
    )


def remove(home: Home, name: str) -> None:
    """Gone from every list at once, even if removing the files takes a while.

    Raises DatasetError when there is no such set.
    """
    if name in catalog.DATASETS:
        raise DatasetError(f"{name} is a data set of this program: it cannot be removed.")
    path = folder(home, name)
    if _NAME.fullmatch(name) is None or not path.is_dir():
        raise DatasetError(f"no data set {quoted(name)} is prepared in {home.data}.")
    doomed = path.with_name(f".deleted-{name}")
    try:
        shutil.rmtree(doomed, ignore_errors=True)
        path.rename(doomed)
    except OSError as error:
        raise HomeError.not_written(path, error) from None
    shutil.rmtree(doomed, ignore_errors=True)
