"""What preparations of picture files share: files are read by the hundred in threads, and what cannot be used is told by name."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import BinaryIO, TypeVar

import numpy as np

from gan_runtime.data import bit_depth
from gan_runtime.data.contract import Progress
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.picture_files import MAX_FILE_BYTES, UNREADABLE, Source, readable
from gan_runtime.data.summary import EXAMPLES, Skip, Skipped, Summary
from gan_runtime.errors import DatasetError

# Decoding leaves Python's lock; each thread may hold a picture of 89 million pixels.
THREADS = min(4, os.cpu_count() or 1)
AT_ONCE = 128  # pictures between two looks at whether somebody has cancelled
MOST_TOLD = 200  # left-out files that are told by name
GRID = 64  # pictures in the preview
Item = TypeVar("Item")
Row = TypeVar("Row")


@dataclass
class Tally:
    """What has come of the files so far."""

    hidden: int
    labels: list[str] = field(default_factory=list)  # of each row; all empty without labels
    skip_counts: Counter[str] = field(default_factory=Counter)
    first_skips: list[Skip] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)  # files by what was changed
    warnings: list[str] = field(default_factory=list)

    def skip(self, skip: Skip) -> None:
        """Counts a file that is left out."""
        self.skip_counts[skip.kind] += 1
        if len(self.first_skips) < MOST_TOLD or self.skip_counts[skip.kind] <= EXAMPLES:
            self.first_skips.append(skip)

    def white(self, files: Source, progress: Progress) -> int:
        """The value of white in the 16-bit files, see bit_depth.py; a warning where it is a guess."""
        white, warning = bit_depth.white_of(files, progress)
        self.warnings += filter(None, (warning,))
        return white

    @property
    def skipped(self) -> Skipped:
        """All of them."""
        first = sorted(self.first_skips, key=lambda skip: skip.name)
        return Skipped(counts=dict(self.skip_counts.most_common()), first=tuple(first), hidden=self.hidden)

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

    def held_out(self, percent: float) -> int:
        """Rows that are kept back; at least one is trained on."""
        return min(int(self.rows * percent / 100), self.rows - 1)

    def summary(self, percent: float) -> Summary:
        """What has come of the files where `percent` of the rows, the last ones, are held out."""
        held_out = self.held_out(percent)
        of_class = Counter(self.labels[self.rows - held_out :])
        return Summary(
            held_out=held_out,
            counts=self.counts,
            held_out_counts={name: of_class[name] for name in self.classes} if held_out else {},
            skipped=self.skipped,
            converted=dict(self.converted.most_common()),
            warnings=tuple(self.warnings),
        )

    def check(self) -> None:
        """Raises DatasetError when there is no picture that can be used."""
        if self.rows:
            return
        if not self.first_skips:
            raise DatasetError("there is no picture: give a folder or a .zip of JPEG, PNG or WebP files.")
        count, first = sum(self.skip_counts.values()), self.skipped.first[0]
        advice = "use fewer pixels" if first.kind == "too small" else "give other pictures"
        raise DatasetError(
            f"none of the {count:,} files can be used; {first.name}: {first.reason}: {advice}."
        )


def shuffled(items: Sequence[Item]) -> list[Item]:
    """The same order for as many items."""
    return [items[place] for place in np.random.RandomState(0).permutation(len(items))]


def read_in_parts(
    items: Sequence[Item], read: Callable[[Item], Row], progress: Progress, noun: str
) -> Iterator[list[tuple[Item, Row]]]:
    """Each item with what `read` makes of it, by the hundred, in their order. `noun`: what they are, such as "files"."""
    with ThreadPoolExecutor(THREADS) as threads:
        for done in range(0, len(items), AT_ONCE):
            progress(done, len(items), f"Converting {done:,} of {len(items):,} {noun}")
            part = items[done : done + AT_ONCE]
            yield list(zip(part, threads.map(read, part), strict=True))


def of_file(files: Source, name: str, convert: Callable[[BinaryIO], Row]) -> Row:
    """What `convert` makes of a file. Raises NotUsableError for whatever is wrong with it."""
    try:
        if files.size(name) > MAX_FILE_BYTES:
            raise NotUsableError("too large", f"its file has more than {MAX_FILE_BYTES / 1e6:.0f} MB")
        with files.open(name) as file:
            return convert(file)
    except UNREADABLE:
        raise NotUsableError("damaged", "it cannot be read") from None


def skip(name: str, error: NotUsableError) -> Skip:
    """A file that is left out, and why."""
    return Skip(name=readable(name), kind=error.kind, reason=str(error))
