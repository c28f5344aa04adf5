"""The preparation `pictures`: a folder or a .zip of pictures of any size becomes a data set.

Sub-folders are labels. The order of the rows is shuffled, the same for the same names, so that the first rows
and the held-out ones are a fair choice of all classes. What cannot be used is left out and told by name.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime import disk
from gan_runtime.data import picture_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import NotUsableError, Target, converted
from gan_runtime.data.picture_files import MAX_FILE_BYTES, SUFFIXES, UNREADABLE, Source, readable
from gan_runtime.data.picture_options import PictureOptions
from gan_runtime.data.prepared import Skip, Skipped, Stored
from gan_runtime.data.sharded import FieldWriter, row_bytes
from gan_runtime.data.survey import Survey
from gan_runtime.errors import DatasetError
from gan_runtime.fields import IMAGES, LABELS, Fields, labels
from gan_runtime.fields import pictures as picture_field

# Decoding leaves Python's lock; each thread may hold a picture of 89 million pixels.
THREADS = min(4, os.cpu_count() or 1)
AT_ONCE = 128  # pictures between two looks at whether somebody has cancelled
MAX_CLASSES = 10_000
MOST_TOLD = 200  # left-out files that are told by name
GRID = 64  # pictures in the preview


@dataclass
class Tally:
    """What has come of the files so far."""

    hidden: int
    labels: list[str] = field(default_factory=list)  # of each row; all empty without labels
    skip_counts: Counter[str] = field(default_factory=Counter)
    first_skips: list[Skip] = field(default_factory=list)

    def skip(self, skip: Skip) -> None:
        """Counts a file that is left out."""
        self.skip_counts[skip.kind] += 1
        if len(self.first_skips) < MOST_TOLD:
            self.first_skips.append(skip)

    @property
    def skipped(self) -> Skipped:
        """All of them."""
        first = sorted(self.first_skips, key=lambda skip: skip.name)
        return Skipped(counts=dict(self.skip_counts.most_common()), first=tuple(first), hidden=self.hidden)

    @property
    def classes(self) -> tuple[str, ...]:
        """Those that have a picture, sorted; none without labels."""
        return tuple(sorted(set(self.labels) - {""}))

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each class."""
        rows = Counter(self.labels)
        return {name: rows[name] for name in self.classes}

    def held_out(self, options: PictureOptions) -> int:
        """Rows that are kept back; at least one is trained on."""
        return min(int(len(self.labels) * options.held_out_percent / 100), len(self.labels) - 1)

    def fields(self, options: PictureOptions) -> Fields:
        """Of a row. Raises DatasetError when there is no picture that can be used."""
        if not self.labels:
            raise DatasetError(self._nothing())
        labelled = {LABELS: labels(self.classes)} if self.classes else {}
        return {IMAGES: picture_field(*options.target.shape), **labelled}

    def _nothing(self) -> str:
        if not self.first_skips:
            return "there is no picture: give a folder or a .zip of JPEG, PNG or WebP files."
        count, first = sum(self.skip_counts.values()), self.skipped.first[0]
        advice = "use fewer pixels" if first.kind == "too small" else "give other pictures"
        return f"none of the {count:,} files can be used; {first.name}: {first.reason}: {advice}."


def survey(source: Path, options: PictureOptions, progress: Progress) -> Survey:
    """Looks at every picture and stores nothing.

    Raises DatasetError: the source cannot be read, or has nothing to use.
    """
    with picture_files.opened(source) as files:
        tally = Tally(files.hidden)
        grid: list[NDArray[np.uint8]] = []
        for rows in _rows(files, options, tally, progress):
            grid += rows[: GRID - len(grid)]
    fields = tally.fields(options)
    size = len(tally.labels) * sum(map(row_bytes, fields.values()))
    held_out = tally.held_out(options)
    return Survey(
        fields=fields,
        rows=len(tally.labels) - held_out,
        held_out=held_out,
        counts=tally.counts,
        grid=np.stack(grid),
        grid_labels=tuple(tally.labels[: len(grid)]) if tally.classes else (),
        skipped=tally.skipped,
        bytes_on_disk=size,
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
    fields = tally.fields(options)
    shards = {IMAGES: tuple(images.shards)}
    if LABELS in fields:
        number = {name: place for place, name in enumerate(tally.classes)}
        with FieldWriter(folder, LABELS, fields[LABELS]) as numbers:
            numbers.append(np.array([number[label] for label in tally.labels]))
        shards[LABELS] = tuple(numbers.shards)
    return Stored(fields, shards, tally.held_out(options), tally.counts, tally.skipped)


def labels_of(names: Sequence[str], options: PictureOptions) -> dict[str, str]:
    """The class of each file: its first folder below the one in which all pictures lie; empty without any.

    Raises:
        DatasetError: there are too many folders for classes.
    """
    if options.labels == "none":
        return dict.fromkeys(names, "")
    folders = {name: [part for part in name.split("/")[:-1] if part not in ("", ".")] for name in names}
    pictures = [name for name in names if name.lower().endswith(SUFFIXES)] or names
    depth = _shared_depth([folders[name] for name in pictures])
    if all(len(folders[name]) <= depth for name in pictures):
        return dict.fromkeys(names, "")
    found = {name: readable(folder[depth]) if folder[depth:] else "" for name, folder in folders.items()}
    if len(set(found.values())) > MAX_CLASSES:
        raise DatasetError(
            f"the pictures lie in more than {MAX_CLASSES:,} sub-folders, too many to be classes: "
            "use labels=none."
        )
    return found


def _shared_depth(folders: list[list[str]]) -> int:
    """How many folders from the top all have in common."""
    lowest, highest = min(folders, default=[]), max(folders, default=[])
    return sum(
        1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], zip(lowest, highest, strict=False))
    )


def _rows(
    files: Source, options: PictureOptions, tally: Tally, progress: Progress
) -> Iterator[list[NDArray[np.uint8]]]:
    """Rows by the hundred, in the set's order; `tally` is told of each row and of each file left out."""
    for skip in files.skipped:
        tally.skip(skip)
    names = _shuffled(files.names)
    label_of = labels_of(names, options)
    has_labels = any(label_of.values())
    target = options.target
    with ThreadPoolExecutor(THREADS) as threads:
        for done, part in _parts(names):
            progress(done, len(names), f"Converting {done:,} of {len(names):,} files")
            rows = []
            for name, result in zip(
                part, threads.map(lambda name: _row(files, name, target), part), strict=True
            ):
                if isinstance(result, Skip):
                    tally.skip(result)
                elif has_labels and not label_of[name]:
                    reason = "it lies beside the folders that are the classes"
                    tally.skip(Skip(name=readable(name), kind="no label", reason=reason))
                else:
                    tally.labels.append(label_of[name])
                    rows.append(result)
            yield rows
    progress(len(names), len(names), f"Converted {len(tally.labels):,} pictures")


def _row(files: Source, name: str, target: Target) -> NDArray[np.uint8] | Skip:
    """One picture, or why it gives none."""
    try:
        if files.size(name) > MAX_FILE_BYTES:
            raise NotUsableError("too large", f"its file has more than {MAX_FILE_BYTES / 1e6:.0f} MB")
        with files.open(name) as file:
            return converted(file, target)
    except NotUsableError as error:
        return Skip(name=readable(name), kind=error.kind, reason=str(error))
    except UNREADABLE:
        return Skip(name=readable(name), kind="damaged", reason="it cannot be read")


def _shuffled(names: Sequence[str]) -> list[str]:
    return [names[place] for place in np.random.RandomState(0).permutation(len(names))]


def _parts(names: Sequence[str]) -> Iterable[tuple[int, Sequence[str]]]:
    starts = itertools.count(0, AT_ONCE)
    return zip(
        starts, (names[start : start + AT_ONCE] for start in range(0, len(names), AT_ONCE)), strict=False
    )
