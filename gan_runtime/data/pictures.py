"""The preparation `pictures`: a folder or a .zip of pictures of any size becomes a data set.

Sub-folders are labels. The order of the rows is shuffled, the same for the same names, so that the first rows
and the held-out ones are a fair choice of all classes. What cannot be used is left out and told by name.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime import disk
from gan_runtime.data import picture_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import Converted, Target, converted
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.picture_files import SUFFIXES, Source, readable
from gan_runtime.data.picture_options import PictureOptions
from gan_runtime.data.picture_rows import GRID, Tally, of_file, read_in_parts, shuffled, skip
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import FieldWriter, row_bytes
from gan_runtime.data.summary import Skip
from gan_runtime.data.survey import Survey
from gan_runtime.errors import DatasetError
from gan_runtime.fields import IMAGES, LABELS, Fields, labels
from gan_runtime.fields import pictures as picture_field

MAX_CLASSES = 10_000


def survey(source: Path, options: PictureOptions, progress: Progress) -> Survey:
    """Looks at every picture and stores nothing.

    Raises DatasetError: the source cannot be read, or has nothing to use.
    """
    with picture_files.opened(source) as files:
        tally = Tally(files.hidden)
        grid: list[NDArray[np.uint8]] = []
        for rows in _rows(files, options, tally, progress):
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
    with picture_files.opened(source) as files:
        return files.content(progress)


def prepare(source: Path, options: PictureOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the rows of all usable pictures into the existing, empty `folder`.

    Raises:
        DatasetError: as `survey`. HomeError: the disk has too little space.
    """
    with picture_files.opened(source) as files:
        field_of_pictures = picture_field(*options.target.shape)
        size = len(files.names) * row_bytes(field_of_pictures)
        disk.require(folder, size + disk.LEAST_BYTES, f"a data set of {len(files.names):,} pictures")
        tally = Tally(files.hidden)
        with FieldWriter(folder, IMAGES, field_of_pictures) as images:
            for rows in _rows(files, options, tally, progress):
                images.append(rows)
    fields = _fields(tally, options)
    shards = {IMAGES: tuple(images.shards)}
    if LABELS in fields:
        number = {name: place for place, name in enumerate(tally.classes)}
        with FieldWriter(folder, LABELS, fields[LABELS]) as numbers:
            numbers.append(np.array([number[label] for label in tally.labels]))
        shards[LABELS] = tuple(numbers.shards)
    return Stored(fields, shards, tally.summary(options.held_out_percent))


def labels_of(names: Sequence[str], options: PictureOptions) -> dict[str, str]:
    """The class of each file, its folder as `folders_of` says; empty without any.

    Raises:
        DatasetError: there are too many folders for classes.
    """
    if options.labels == "none":
        return dict.fromkeys(names, "")
    found = {name: readable(folder) for name, (folder, _) in folders_of(names).items()}
    if len(set(found.values())) > MAX_CLASSES:
        raise DatasetError(
            f"the pictures lie in more than {MAX_CLASSES:,} sub-folders, too many to be classes: "
            "use labels=none."
        )
    return found


def folders_of(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Of each file its first folder below the one in which all pictures lie, and the rest of its name: cats, old/1.jpg. No folder
    where it lies beside them."""
    parts = {name: [part for part in name.split("/") if part not in ("", ".")] for name in names}
    pictures = [name for name in names if name.lower().endswith(SUFFIXES)] or names
    depth = _shared_depth([parts[name][:-1] for name in pictures])
    if all(len(parts[name]) <= depth + 1 for name in pictures):
        return {name: ("", "/".join(parts[name][depth:])) for name in names}
    return {
        name: (its[depth], "/".join(its[depth + 1 :])) if its[depth + 1 :] else ("", "/".join(its[-1:]))
        for name, its in parts.items()
    }


def _shared_depth(folders: list[list[str]]) -> int:
    """How many folders from the top all have in common."""
    lowest, highest = min(folders, default=[]), max(folders, default=[])
    return sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(lowest, highest, strict=False))
    )


def _fields(tally: Tally, options: PictureOptions) -> Fields:
    """Of a row. Raises DatasetError when there is no picture that can be used."""
    tally.check()
    labelled = {LABELS: labels(tally.classes)} if tally.classes else {}
    return {IMAGES: picture_field(*options.target.shape), **labelled}


def _rows(
    files: Source, options: PictureOptions, tally: Tally, progress: Progress
) -> Iterator[list[NDArray[np.uint8]]]:
    """Rows by the hundred, in the set's order; `tally` is told of each row and of each file left out."""
    for left_out in files.skipped:
        tally.skip(left_out)
    names = shuffled(files.names)
    label_of = labels_of(names, options)
    has_labels = any(label_of.values())
    target = replace(options.target, white=tally.white(files, progress))
    for part in read_in_parts(names, lambda name: _row(files, name, target), progress, "files"):
        rows = []
        for name, result in part:
            if isinstance(result, Skip):
                tally.skip(result)
            elif has_labels and not label_of[name]:
                reason = "it lies beside the folders that are the classes"
                tally.skip(Skip(name=readable(name), kind="no label", reason=reason))
            else:
                tally.labels.append(label_of[name])
                tally.converted.update(result.changes)
                rows.append(result.pixels)
        yield rows
    progress(len(names), len(names), f"Converted {tally.rows:,} pictures")


def _row(files: Source, name: str, target: Target) -> Converted | Skip:
    """One picture, or why it gives none."""
    try:
        return of_file(files, name, lambda file: converted(file, target))
    except NotUsableError as error:
        return skip(name, error)
