"""The preparation `pictures`: a folder or a .zip of pictures of any size becomes a data set.

Sub-folders are labels, but those of splits (picture_places.py): what is in test and the like is
held out. The order of the rows is shuffled, the same for the same names, so that the first rows and
the held-out ones are a fair choice of all classes. What cannot be used is left out by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base import disk
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.fields import IMAGES, LABELS, Fields, labels
from gan_runtime.base.fields import pictures as picture_field
from gan_runtime.data import picture_places, picture_sources, zip_source
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import Converted, Target, converted
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.picture_files import Source, readable
from gan_runtime.data.picture_options import PictureOptions
from gan_runtime.data.picture_places import Place
from gan_runtime.data.picture_rows import (
    GRID,
    Tally,
    in_order,
    left_out,
    of_file,
    read_in_parts,
    skip,
)
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import FieldWriter, row_bytes
from gan_runtime.data.summary import Skip, Survey

MAX_CLASSES = 10_000


def survey(source: Path, options: PictureOptions, progress: Progress) -> Survey:
    """Looks at every picture and stores nothing.

    Raises DatasetError: the source cannot be read, or has nothing to use.
    """
    with picture_sources.opened(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        labelled = _labelled(files, options, tally, progress)
        grid: list[NDArray[np.uint8]] = []
        for rows in _rows(files, labelled, options, tally, progress):
            grid += rows[: GRID - len(grid)]
    fields = _fields(tally, options)
    summary = tally.summary(options.held_out_percent)
    return Survey(
        fields=fields,
        rows=tally.rows - summary.held_out,
        summary=summary,
        grid=np.stack(grid),
        grid_labels=tuple(tally.labels[: len(grid)]) if tally.classes else (),
        bytes_on_disk=tally.rows * sum(map(row_bytes, fields.values())),
    )


def content(source: Path, progress: Progress) -> str:
    """A hash of the names and bytes of all files."""
    with picture_sources.opened(source, zip_source.FALLBACK) as files:  # any bytes are a name in it
        return files.content(progress)


def prepare(source: Path, options: PictureOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all usable pictures into the existing, empty `folder`.

    Raises:
        DatasetError: as `survey`. HomeError: the disk has too little space.
    """
    with picture_sources.opened(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        labelled = _labelled(files, options, tally, progress)
        field_of_pictures = picture_field(*options.target.shape)
        size = len(labelled) * row_bytes(field_of_pictures)
        disk.require(folder, size + disk.LEAST_BYTES, f"a data set of {len(labelled):,} pictures")
        with FieldWriter(folder, IMAGES, field_of_pictures) as images:
            for rows in _rows(files, labelled, options, tally, progress):
                images.append(rows)
    fields = _fields(tally, options)
    shards = {IMAGES: tuple(images.shards)}
    if LABELS in fields:
        number = {name: place for place, name in enumerate(tally.classes)}
        with FieldWriter(folder, LABELS, fields[LABELS]) as numbers:
            numbers.append(np.array([number[label] for label in tally.labels]))
        shards[LABELS] = tuple(numbers.shards)
    return Stored(fields, shards, tally.summary(options.held_out_percent))


def labels_of(folders: Iterable[str]) -> dict[str, str]:
    """The class of each folder; of none where the pictures are next to the folders.

    Raises:
        DatasetError: there are too many folders for classes, or two of them would be called the
            same.
    """
    folder_of: dict[str, str] = {}
    for folder in sorted(set(folders)):
        same = folder_of.setdefault(readable(folder), folder)
        if same != folder:
            raise DatasetError(
                f"the folders {quoted(same)} and {quoted(folder)} would both be the class"
                f" {quoted(readable(folder))}: rename one of them, or use labels=none."
            )
    if len(folder_of) > MAX_CLASSES:
        raise DatasetError(
            f"the pictures lie in more than {MAX_CLASSES:,} sub-folders, too many to be classes: "
            "use labels=none."
        )
    return {folder: name for name, folder in folder_of.items()}


@dataclass(frozen=True)
class Labelled:
    """A file that is a picture by its first bytes. `label`: its class; empty without labels."""

    name: str
    label: str
    place: Place


def _labelled(
    files: Source, options: PictureOptions, tally: Tally, progress: Progress
) -> list[Labelled]:
    """All pictures, in the order of their rows; `tally` counts the files that are left out.

    Raises DatasetError as `survey`.
    """
    contents = picture_sources.contents(files, progress)
    places = picture_places.places(contents.pictures, options.held_out_folders)
    tally.begin(files, [*contents.others, *places.skipped], places.holds_out)
    if options.labels == "none":
        return in_order([Labelled(name, "", place) for name, place in places.of.items()])
    label_of = labels_of(place.folder for place in places.of.values())
    labelled = [Labelled(name, label_of[place.folder], place) for name, place in places.of.items()]
    if any(picture.label for picture in labelled):
        for picture in labelled:
            if not picture.label:
                tally.skip(
                    left_out(
                        picture.name, "no label", "it lies beside the folders that are the classes"
                    )
                )
        labelled = [picture for picture in labelled if picture.label]
    return in_order(labelled)


def _fields(tally: Tally, options: PictureOptions) -> Fields:
    """Of a row. Raises DatasetError when there is no picture that can be used."""
    tally.check()
    labelled = {LABELS: labels(tally.classes)} if tally.classes else {}
    return {IMAGES: picture_field(*options.target.shape), **labelled}


def _rows(
    files: Source,
    labelled: list[Labelled],
    options: PictureOptions,
    tally: Tally,
    progress: Progress,
) -> Iterator[list[NDArray[np.uint8]]]:
    """Rows by the hundred; `tally` counts each row and each file left out."""
    target = replace(options.target, white=tally.white(files, progress))
    for part in read_in_parts(
        labelled, lambda picture: _row(files, picture.name, target), progress, "files"
    ):
        rows = []
        for picture, result in part:
            if isinstance(result, Skip):
                tally.skip(result)
            elif (
                picture.place.held_out
                and picture.label
                and picture.label not in tally.trained_classes
            ):
                reason = "no picture of its class is trained on"
                tally.skip(left_out(picture.name, "no label", reason))
            else:
                tally.add(picture.place, result.changes, picture.label)
                rows.append(result.pixels)
        yield rows
    progress(len(labelled), len(labelled), f"Converted {tally.rows:,} pictures")


def _row(files: Source, name: str, target: Target) -> Converted | Skip:
    """One picture, or why it gives none."""
    try:
        return of_file(files, name, lambda file: converted(file, target))
    except NotUsableError as error:
        return skip(name, error)
