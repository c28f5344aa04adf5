"""The summary of a preparation: its rows, skipped files with reasons, conversions, and warnings to
check before training.

Every preparation returns a `Summary`; the manifest of a prepared set extends it. A `Survey` is the
preview of a preparation, before anything is stored. A `Tally` counts the rows of image files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, FiniteFloat
from pydantic import Field as Bounds

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields

EXAMPLES = 3  # names of each kind in a sentence
MOST_SKIPS = 200  # skipped files by name
GRID_IMAGES = 64  # images in the preview
# Kinds of skipped files. `ADVICE` is for sources without a usable file: the first kind that occurs
# is the most helpful one.
NOT_SIDE_BY_SIDE, NOT_READABLE = "not side by side", "not readable"
ARCHIVE = "archive"  # can contain images
PACKING = "packing"  # compressed by a method that Python lacks
NO_IMAGE, OTHER_FORMAT, LINK, NO_PARTNER = "no image", "other format", "link", "no partner"
SYSTEM_FOLDER, HIDDEN_FOLDER = "system folder", "hidden folder"
FOLDER_KINDS = (SYSTEM_FOLDER, HIDDEN_FOLDER)
ADVICE = {
    "too small": "give larger images, or choose fewer pixels",
    NOT_SIDE_BY_SIDE: "use layout=folders for two folders of images, or layout=halves to cut them",
    ARCHIVE: "unpack it, and give the folder",
    PACKING: "pack it with Deflate, or unpack it and give the folder",
    NOT_READABLE: "give files that you can read",
    OTHER_FORMAT: "save it as JPEG, PNG or WebP",
    LINK: "give the files themselves, which `cp -rL FOLDER COPY` makes of links",
    NO_PARTNER: "give both images of a pair the same name, except for .png or .jpg",
    HIDDEN_FOLDER: "rename it",
}
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


def readable(name: str) -> str:
    """A file's name as text that can be stored and shown. Names are bytes, not always text, and can
    contain control characters of a terminal.
    """
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", name.encode("utf-8", "replace").decode())


class Skip(BaseModel):
    """A skipped file. `kind`: one or two words, for counting. `reason`: the end of a sentence about
    the file.
    """

    model_config = ConfigDict(frozen=True)
    name: str
    kind: str
    reason: str

    @classmethod
    def of(cls, name: str, kind: str, reason: str) -> Skip:
        """A skip with a readable name and reason."""
        return cls(name=readable(name), kind=kind, reason=readable(reason))


class SkippedFiles(BaseModel):
    """The number of skipped files of each kind, the first files by name, and the number of hidden
    files.
    """

    model_config = ConfigDict(frozen=True)
    counts: dict[str, int] = {}
    first: tuple[Skip, ...] = ()
    hidden: int = 0

    @property
    def files(self) -> int:
        """The number of skipped files, without those in skipped folders."""
        return sum(count for kind, count in self.counts.items() if kind not in FOLDER_KINDS)

    def in_words(self, noun: str = "file") -> str:
        """3 files skipped: too small 2 (a.png, b.png), damaged 1 (c.png). Empty without any."""
        files, folders = (
            ", ".join(
                f"{kind} {formats.count(count)}{self._examples(kind)}"
                for kind, count in self.counts.items()
                if (kind in FOLDER_KINDS) is are_folders
            )
            for are_folders in (False, True)
        )
        count = sum(self.counts.values()) - self.files
        sentences = (
            f"{formats.quantity(self.files, noun)} skipped: {files}." if files else "",
            f"{formats.quantity(count, 'folder')} skipped: {folders}." if folders else "",
            f"{formats.quantity(self.hidden, 'hidden file')} skipped." if self.hidden else "",
        )
        return " ".join(filter(None, sentences))

    def _examples(self, kind: str) -> str:
        names = [skip.name for skip in self.first if skip.kind == kind][:EXAMPLES]
        more = ", …" if names and self.counts[kind] > len(names) else ""
        return f" ({', '.join(names)}{more})" if names else ""


class Quantity(BaseModel):
    """A measured number of the rows, such as a sampling fraction."""

    model_config = ConfigDict(frozen=True)
    name: str
    value: FiniteFloat
    unit: str = ""

    def in_words(self) -> str:
        """The quantity as text, such as "sampling fraction 0.0213"."""
        return f"{self.name} {self.value:.4g} {self.unit}".strip()


class SummaryCurve(BaseModel):
    """A curve of the rows, such as a mean profile: `y` over `x`, up to some hundred points."""

    model_config = ConfigDict(frozen=True)
    title: str
    x_label: str
    y_label: str
    x: tuple[FiniteFloat, ...]
    y: tuple[FiniteFloat, ...]


class Summary(BaseModel):
    """The result of reading files, or of a simulation.

    `held_out`: rows that no run trains on. `counts`: rows of each class, or of each film of a
    simulation, in the order of the classes; `held_out_counts`: the held-out ones of them.
    `held_out_splits`: rows of each folder that is held out as a whole, such as test. `converted`:
    the number of files by what was changed, such as "color profile to sRGB". `quantities`, `curve`:
    measured on the rows. `warnings`: what to check before training. `note`: shown with each run on
    the set.
    """

    model_config = ConfigDict(frozen=True)
    held_out: Annotated[int, Bounds(ge=0)] = 0
    counts: dict[str, int] = {}
    held_out_counts: dict[str, int] = {}
    held_out_splits: dict[str, int] = {}
    skipped: SkippedFiles = SkippedFiles()
    converted: dict[str, int] = {}
    quantities: tuple[Quantity, ...] = ()
    curve: SummaryCurve | None = None
    warnings: tuple[str, ...] = ()
    note: str = ""

    def by_split(self) -> dict[str, tuple[int, int]]:
        """Rows of each class to train on, and held-out ones."""
        held_out = {name: self.held_out_counts.get(name, 0) for name in self.counts}
        return {
            name: (count - held_out[name], held_out[name]) for name, count in self.counts.items()
        }

    def sentences(self) -> list[str]:
        """The nonempty sentences about held-out rows, skipped files, conversions and measurements,
        and the note.
        """
        splits = _counts_text(self.held_out_splits)
        changes = _counts_text(self.converted)
        measured = ", ".join(quantity.in_words() for quantity in self.quantities)
        sentences = (
            f"Held out by their folders: {splits}." if splits else "",
            self.skipped.in_words(),
            f"Converted: {changes}." if changes else "",
            f"Measured: {measured}." if measured else "",
            f"{self.note.rstrip('.')}." if self.note else "",
        )
        return list(filter(None, sentences))


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {formats.count(count)}" for name, count in counts.items())


@dataclass(frozen=True)
class Survey:
    """The result of a preparation, before anything is stored.

    `grid`: uint8 (up to 64, pixels, pixels, channels), the first rows; `grid_labels`: their
    classes, empty without labels. `bytes_on_disk`: of the prepared set.
    """

    fields: Fields
    rows: int
    summary: Summary
    grid: NDArray[np.uint8]
    grid_labels: tuple[str, ...]
    bytes_on_disk: int


@dataclass
class Tally:
    """Counts rows and skipped files while image files are read."""

    hidden: int
    labels: list[str] = field(default_factory=list)  # one per row; all "" without labels
    folders_hold_out: bool = False
    held_out_splits: Counter[str] = field(default_factory=Counter)  # rows of each
    trained_classes: set[str] = field(default_factory=set)
    skip_counts: Counter[str] = field(default_factory=Counter)
    first_skips: list[Skip] = field(default_factory=list)
    converted: Counter[str] = field(default_factory=Counter)  # number of files by change
    warnings: list[str] = field(default_factory=list)

    def begin(self, skips: Iterable[Skip], warnings: Iterable[str], folders_hold_out: bool) -> None:
        """Counts the files skipped before any image is read. `folders_hold_out`: whether folders
        determine the held-out rows.
        """
        self.folders_hold_out = folders_hold_out
        self.warn(*warnings)
        for skip in skips:
            self.skip(skip)

    def warn(self, *warnings: str) -> None:
        """Adds the sentences that are not empty."""
        self.warnings += filter(None, warnings)

    def skip(self, skip: Skip) -> None:
        """Counts a skipped file."""
        self.skip_counts[skip.kind] += 1
        if len(self.first_skips) < MOST_SKIPS or self.skip_counts[skip.kind] <= EXAMPLES:
            self.first_skips.append(skip)

    @property
    def skipped(self) -> SkippedFiles:
        """All skipped files."""
        first = sorted(self.first_skips, key=lambda skip: skip.name)
        return SkippedFiles(
            counts=dict(self.skip_counts.most_common()), first=tuple(first), hidden=self.hidden
        )

    @property
    def rows(self) -> int:
        """All rows, held out or not."""
        return len(self.labels)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes that have an image, sorted; empty without labels."""
        return tuple(sorted(set(self.labels) - {""}))

    def add(self, held_out_split: str | None, changes: Iterable[str], label: str = "") -> None:
        """Counts a row and the changes of its images. Held-out rows come last. `held_out_split`:
        the split of a row held out by its folder; None for a training row.
        """
        self.labels.append(label)
        self.converted.update(changes)
        if held_out_split is None:
            self.trained_classes.add(label)
        else:
            self.held_out_splits[held_out_split] += 1

    def held_out(self, percent: float) -> int:
        """The number of held-out rows: those of the held-out folders, else a share. At least one
        row is left to train on.
        """
        if self.folders_hold_out:
            return self.held_out_splits.total()
        return min(int(self.rows * percent / 100), self.rows - 1)

    def summary(self, percent: float) -> Summary:
        """The summary where the last `percent` of the rows are held out."""
        held_out = self.held_out(percent)
        rows_of, held_out_of = Counter(self.labels), Counter(self.labels[self.rows - held_out :])
        return Summary(
            held_out=held_out,
            counts={name: rows_of[name] for name in self.classes},
            held_out_counts={name: held_out_of[name] for name in self.classes} if held_out else {},
            held_out_splits=dict(sorted(self.held_out_splits.items())),
            skipped=self.skipped,
            converted=dict(self.converted.most_common()),
            warnings=tuple(self.warnings),
        )

    def check(self) -> None:
        """Raises DatasetError when there is no image to train on."""
        if self.rows > self.held_out_splits.total():
            return
        if not self.first_skips:
            raise DatasetError(
                "the source has no image: give a folder or a .zip of JPEG, PNG or WebP files."
            )
        skips = self.skipped.first
        first = next((skip for kind in ADVICE for skip in skips if skip.kind == kind), skips[0])
        advice = ADVICE.get(first.kind, "give other images")
        purpose = "used for training" if self.rows else "used"
        count = formats.quantity(sum(self.skip_counts.values()), "file")
        raise DatasetError(
            f"no image can be {purpose} ({count} skipped). {first.name}: {first.reason}: {advice}."
        )
