"""What preparations of picture files share: files are read by the hundred in threads, and
what cannot be used is named.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO, Protocol, TypeVar

import numpy as np

from gan_runtime.base.errors import DatasetError
from gan_runtime.data import bit_depth
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import NOT_SIDE_BY_SIDE
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.picture_files import (
    MAX_FILE_BYTES,
    NOT_READABLE,
    UNREADABLE,
    Source,
    readable,
)
from gan_runtime.data.picture_places import Place
from gan_runtime.data.picture_sources import ARCHIVE
from gan_runtime.data.summary import EXAMPLES, Skip, Skipped, Summary
from gan_runtime.data.zip_source import PACKING

# Decoding leaves Python's lock; each thread may hold a picture of 89 million pixels.
THREADS = min(4, os.cpu_count() or 1)
AT_ONCE = 128  # pictures between two looks at whether somebody has cancelled
MOST_TOLD = 200  # left-out files that are named
GRID = 64  # pictures in the preview
# by the kind of the first file that cannot be used, where none can; the most helpful one comes
# first
ADVICE = {
    "too small": "use fewer pixels",
    NOT_SIDE_BY_SIDE: (
        "use layout=folders for two folders of pictures, or layout=halves to cut them in any case"
    ),
    ARCHIVE: "unpack it, and give the folder",
    PACKING: "pack it with Deflate, or unpack it and give the folder",
    NOT_READABLE: "give files that you may read",
}
Item = TypeVar("Item")
Row = TypeVar("Row")


class HasPlace(Protocol):
    """What a row is made of."""

    @property
    def place(self) -> Place: ...


Placed = TypeVar("Placed", bound=HasPlace)


@dataclass
class Tally:
    """What has come of the files so far."""

    hidden: int
    labels: list[str] = field(default_factory=list)  # of each row; all empty without labels
    folders_hold_out: bool = False
    held_out_splits: Counter[str] = field(default_factory=Counter)  # rows of each
    trained_classes: set[str] = field(default_factory=set)
    skip_counts: Counter[str] = field(default_factory=Counter)
    first_skips: list[Skip] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)  # files by what was changed
    warnings: list[str] = field(default_factory=list)

    def begin(self, files: Source, others: Sequence[Skip], folders_hold_out: bool) -> None:
        """Counts what is left out before any picture is read.

        `folders_hold_out`: whether folders say what is held out.
        """
        self.folders_hold_out = folders_hold_out
        self.warnings += filter(None, [files.warning])
        for skipped in (*files.skipped, *others):
            self.skip(skipped)

    def skip(self, skip: Skip) -> None:
        """Counts a file that is left out."""
        self.skip_counts[skip.kind] += 1
        if len(self.first_skips) < MOST_TOLD or self.skip_counts[skip.kind] <= EXAMPLES:
            self.first_skips.append(skip)

    def white(self, files: Source, progress: Progress) -> int:
        """The value of white in the 16-bit files, see bit_depth.py; a warning where it is a
        guess.
        """
        white, warning = bit_depth.white_of(files, progress)
        self.warnings += filter(None, (warning,))
        return white

    @property
    def skipped(self) -> Skipped:
        """All of them."""
        first = sorted(self.first_skips, key=lambda skip: skip.name)
        return Skipped(
            counts=dict(self.skip_counts.most_common()), first=tuple(first), hidden=self.hidden
        )

    @property
    def rows(self) -> int:
        """All of them, held out or not."""
        return len(self.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        """Those that have a picture, sorted; none without labels."""
        return tuple(sorted(set(self.labels) - {""}))

    @property
    def counts(self) -> dict[str, int]:
        """Rows of each class."""
        rows = Counter(self.labels)
        return {name: rows[name] for name in self.classes}

    def add(self, place: Place, changes: Iterable[str], label: str = "") -> None:
        """Counts a row and what was done to its pictures. Rows that are held out come last."""
        self.labels.append(label)
        self.converted.update(changes)
        if place.held_out:
            self.held_out_splits[place.split] += 1
        else:
            self.trained_classes.add(label)

    def held_out(self, percent: float) -> int:
        """Rows that are kept back: those of the folders for that, else a share; at least one
        is trained on.
        """
        if self.folders_hold_out:
            return self.held_out_splits.total()
        return min(int(self.rows * percent / 100), self.rows - 1)

    def summary(self, percent: float) -> Summary:
        """What has come of the files where `percent` of the rows, the last ones, are held out."""
        held_out = self.held_out(percent)
        of_class = Counter(self.labels[self.rows - held_out :])
        return Summary(
            held_out=held_out,
            counts=self.counts,
            held_out_counts={name: of_class[name] for name in self.classes} if held_out else {},
            held_out_splits=dict(sorted(self.held_out_splits.items())),
            skipped=self.skipped,
            converted=dict(self.converted.most_common()),
            warnings=tuple(self.warnings),
        )

    def check(self) -> None:
        """Raises DatasetError when there is no picture that can be trained on."""
        if self.rows > self.held_out_splits.total():
            return
        if not self.first_skips:
            raise DatasetError(
                "there is no picture: give a folder or a .zip of JPEG, PNG or WebP files."
            )
        count, skips = sum(self.skip_counts.values()), self.skipped.first
        first = next((skip for kind in ADVICE for skip in skips if skip.kind == kind), skips[0])
        advice = ADVICE.get(first.kind, "give other pictures")
        what = "to train on can be used" if self.rows else "can be used"
        raise DatasetError(
            f"none of the {count:,} files {what}; {first.name}: {first.reason}: {advice}."
        )


def shuffled(items: Sequence[Item]) -> list[Item]:
    """The same order for as many items."""
    return [items[place] for place in np.random.RandomState(0).permutation(len(items))]


def in_order(items: Sequence[Placed]) -> list[Placed]:
    """In the order of the rows: shuffled, those to train on before those held out."""
    parts = (
        [item for item in items if item.place.held_out is held_out] for held_out in (False, True)
    )
    return [item for part in parts for item in shuffled(part)]


def read_in_parts(
    items: Sequence[Item], read: Callable[[Item], Row], progress: Progress, noun: str
) -> Iterator[list[tuple[Item, Row]]]:
    """Each item with what `read` makes of it, by the hundred, in their order.

    `noun`: what they are, such as "files".
    """
    with ThreadPoolExecutor(THREADS) as threads:
        for done in range(0, len(items), AT_ONCE):
            progress(done, len(items), f"Converting {done:,} of {len(items):,} {noun}")
            part = items[done : done + AT_ONCE]
            yield list(zip(part, threads.map(read, part), strict=True))


def of_file(files: Source, name: str, convert: Callable[[BinaryIO], Row]) -> Row:
    """What `convert` makes of a file. Raises NotUsableError for whatever is wrong with it."""
    try:
        if files.size(name) > MAX_FILE_BYTES:
            raise NotUsableError(
                "too large", f"its file has more than {MAX_FILE_BYTES / 1e6:.0f} MB"
            )
        with files.open(name) as file:
            return convert(file)
    except OSError as error:
        raise NotUsableError(
            NOT_READABLE, f"it cannot be read ({error.strerror or error})"
        ) from None
    except UNREADABLE:
        raise NotUsableError("damaged", "it cannot be read") from None


def skip(name: str, error: NotUsableError) -> Skip:
    """A file that is left out, and why."""
    return left_out(name, error.kind, str(error))


def left_out(name: str, kind: str, reason: str) -> Skip:
    """A file that is left out; its name and those in the reason may be anything."""
    return Skip(name=readable(name), kind=kind, reason=readable(reason))
