"""The preparation `picture_pairs`: a folder or a .zip of image pairs becomes a data set, with one
image of each pair as the source and the other as the target.

The rows are shuffled, in the same order for the same number of pairs, so that held-out rows are a
random sample. Files that cannot be used are skipped by name.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator

from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.fields import SOURCE, TARGET, Fields, pair_fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.data import conversion, folder_layout, image_sizes, image_sources
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import (
    GROUNDS,
    ConvertedImage,
    Resample,
    Target,
    convert,
    convert_file,
    convert_halves,
)
from gan_runtime.data.decoding import WHITE, NotUsableError
from gan_runtime.data.folder_layout import ImagePlace, in_order
from gan_runtime.data.image_files import ImageSource
from gan_runtime.data.image_sizes import AUTO
from gan_runtime.data.image_sources import CodePage
from gan_runtime.data.images import (
    GROUP,
    Frame,
    Ground,
    as_gray,
    content,
    frame,
    ground,
    held_out_folders,
    held_out_percent,
    zip_names,
)
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter, row_bytes
from gan_runtime.data.summary import ADVICE, GRID_IMAGES, NO_PARTNER, Skip, Survey, Tally, readable

__all__ = ["ImagePairOptions", "content", "prepare", "survey"]
Stem = tuple[str, str]
Pixels = NDArray[np.uint8]
Side = TypeVar("Side")
Layout = Literal["side_by_side", "folders", "halves"]
Direction = Literal["a_to_b", "b_to_a"]
PairPixels = Literal["auto", "32", "64", "128", "256", "512"]
USUAL_PIXELS = (32, 64, 128, 256)  # the largest one that most images have is the default


def resample(of: str) -> Any:
    """The resampling option for the images of one side."""
    return option(
        "lanczos",
        label=f"Resize the {of}",
        group=GROUP,
        choices=get_args(Resample),
        help=(
            f"'lanczos' is smooth, for photos. 'nearest' mixes no colors: for a {of} that is a"
            " label map."
        ),
        error="use lanczos or nearest.",
    )


class ImagePairOptions(OptionRecord):
    """The options of the preparation `picture_pairs`. Both images of a pair are cropped or fitted
    alike.
    """

    layout: Layout = option(
        "side_by_side",
        label="Layout",
        group=GROUP,
        choices=get_args(Layout),
        help=(
            "'side_by_side': each file contains A on the left and B on the right, and is about"
            " twice as wide as high. 'halves': the same, of any shape. 'folders': A and B are in"
            " two folders, in alphabetical order, by equal names."
        ),
        error="use side_by_side, folders or halves.",
    )
    direction: Direction = option(
        "a_to_b",
        label="Direction",
        group=GROUP,
        choices=get_args(Direction),
        help="'a_to_b' generates B from A, 'b_to_a' A from B.",
        error="use a_to_b or b_to_a.",
    )
    pixels: PairPixels = option(
        AUTO,
        label="Image size",
        group=GROUP,
        unit="pixels",
        choices=get_args(PairPixels),
        help=(
            "Width and height of both images. Smaller ones are skipped, never enlarged. 'auto':"
            " 256, or the largest size that 9 in 10 images have."
        ),
        error="use one of these sizes.",
    )
    frame: Frame = frame()
    ground: Ground = ground()
    source_resample: Resample = resample("source")
    target_resample: Resample = resample("target")
    held_out_percent: float = held_out_percent(10.0)
    held_out_folders: str = held_out_folders()
    zip_names: CodePage = zip_names()
    _spelling = field_validator("ground", mode="before")(as_gray)

    def targets(self, white: int = WHITE) -> tuple[Target, Target]:
        """The shapes of source and target. `white`: the value of white in 16-bit files. Raises
        ValueError before `image_sizes.sized` has set the size.
        """
        ground, cropped = GROUNDS[self.ground], self.frame == "crop"
        source, target = (
            Target(int(self.pixels), 3, ground, cropped, resample, white)
            for resample in (self.source_resample, self.target_resample)
        )
        return source, target

    def in_direction(self, first: Side, second: Side) -> tuple[Side, Side]:
        """(A, B) → (source, target), and the inverse."""
        return (first, second) if self.direction == "a_to_b" else (second, first)


@dataclass(frozen=True)
class ImagePair:
    """The files of A and B, the same file for two halves. `place`: of A."""

    a: str
    b: str
    place: ImagePlace


def survey(source: Path, options: ImagePairOptions, progress: Progress) -> Survey:
    """Converts every pair and stores nothing; the grid shows source and target side by side.

    Raises DatasetError: the source cannot be read, does not have two folders, or has no usable
    pair.
    """
    with image_sources.open_source(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        pairs = _pairs(files, options, tally, progress)
        options = _sized(files, pairs, options, tally, progress)
        grid: list[Pixels] = []
        for rows in _rows(files, pairs, options, tally, progress):
            grid += [np.concatenate(row, axis=1) for row in rows[: GRID_IMAGES - len(grid)]]
    tally.check()
    fields, summary = _fields(options), tally.summary(options.held_out_percent)
    return Survey(
        fields=fields,
        rows=tally.rows - summary.held_out,
        summary=summary,
        grid=np.stack(grid),
        grid_labels=(),
        bytes_on_disk=tally.rows * sum(map(row_bytes, fields.values())),
    )


def prepare(source: Path, options: ImagePairOptions, folder: Path, progress: Progress) -> Stored:
    """Writes all usable pairs into the existing, empty `folder`.

    Raises:
        DatasetError: as `survey`. HomeError: the disk has too little space.
    """
    with image_sources.open_source(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        pairs = _pairs(files, options, tally, progress)
        options = _sized(files, pairs, options, tally, progress)
        fields = _fields(options)
        purpose = f"a data set of {formats.quantity(len(pairs), 'pair')}"
        with RowWriter(folder, fields, len(pairs), purpose) as writer:
            for rows in _rows(files, pairs, options, tally, progress):
                if rows:
                    sources, targets = zip(*rows, strict=True)
                    writer.append({SOURCE: np.stack(sources), TARGET: np.stack(targets)})
    tally.check()
    return Stored(fields, writer.shards, tally.summary(options.held_out_percent))


def pairs_of(
    places: Mapping[str, ImagePlace], layout: str, skipped: Sequence[Skip] = ()
) -> tuple[list[ImagePair], list[Skip]]:
    """The pairs among the images, and the images without a partner. `skipped`: files that are no
    images, for the error.

    Raises DatasetError: the folders fit another layout.
    """
    folders = sorted({place.folder for place in places.values() if place.folder})
    if not places:
        return [], []
    if layout != "folders":
        if layout == "side_by_side" and len(folders) == 2:
            _check_no_partners(places, folders)
        return [ImagePair(name, name, place) for name, place in places.items()], []
    if len(folders) != 2:
        raise DatasetError(
            f"pairs by equal names need two folders of images, but {_folders_text(folders)}"
            f"{_skipped_text(skipped)}: put A into one folder and B into another, or use"
            " layout=side_by_side."
        )
    by_key: dict[tuple[str, Stem], str] = {}
    skips = []
    for name, place in places.items():
        key = place.folder, _stem(place)
        if not place.folder:
            skips.append(Skip.of(name, NO_PARTNER, "it is next to the two folders"))
        elif key in by_key:
            skips.append(Skip.of(name, "twice", f"{by_key[key]} has the same name"))
        else:
            by_key[key] = name
    return _matched(by_key, places, folders, skips)


def _matched(
    by_key: Mapping[tuple[str, Stem], str],
    places: Mapping[str, ImagePlace],
    folders: Sequence[str],
    skips: list[Skip],
) -> tuple[list[ImagePair], list[Skip]]:
    """`by_key`: the file by folder and name."""
    a, b = folders
    pairs = []
    stems = {
        folder: sorted(stem for other, stem in by_key if other == folder) for folder in folders
    }
    for (folder, stem), name in by_key.items():
        other = b if folder == a else a
        partner = by_key.get((other, stem))
        if partner is None:
            where = f"{quoted(readable(other))}{f' of {stem[0]}' if stem[0] else ''}"
            near = _nearest_text(stem, stems[other])
            skips.append(Skip.of(name, NO_PARTNER, f"no image in {where} has this name{near}"))
        elif folder == a:
            pairs.append(ImagePair(name, partner, places[name]))
    return pairs, skips


def _nearest_text(stem: Stem, others: Sequence[Stem]) -> str:
    """The other name that begins alike, as the end of a sentence, since many sets mark the two
    images of a pair by different endings; "" without one. `others`: sorted.
    """
    place = bisect.bisect(others, stem)
    alike = {other[1]: _alike(other[1], stem[1]) for other in others[max(0, place - 1) : place + 1]}
    near = max(alike, key=lambda name: alike[name], default="")
    return f", only {quoted(readable(near))}" if 2 * alike.get(near, 0) > len(stem[1]) else ""


def _alike(first: str, second: str) -> int:
    """The number of equal letters at the beginning."""
    pairs = zip(first, second, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _stem(place: ImagePlace) -> Stem:
    """The split and the name without its suffix, which two partners share."""
    return place.split, str(PurePosixPath(place.rest).with_suffix(""))


def _check_no_partners(places: Mapping[str, ImagePlace], folders: Sequence[str]) -> None:
    """Raises DatasetError: the names of the two folders, or of most of their images, show that the
    folders are A and B.
    """
    counts = Counter(_stem(place) for place in places.values() if place.folder)
    partners = sum(1 for count in counts.values() if count > 1)
    if [folder.casefold() for folder in folders] == ["a", "b"] or 2 * partners > len(counts):
        raise DatasetError(
            f"the images are in 2 folders ({folder_layout.quoted_names(folders)}) with equal names:"
            " use layout=folders, or layout=halves if each file contains both images."
        )


def _pairs(
    files: ImageSource, options: ImagePairOptions, tally: Tally, progress: Progress
) -> list[ImagePair]:
    """All pairs, in the order of their rows; `tally` counts the skipped files.

    Raises DatasetError as `survey`.
    """
    contents = image_sources.sort_files(files, progress)
    places = folder_layout.places(contents.images, options.held_out_folders)
    skipped = [*files.skipped, *contents.skips, *places.skipped]
    pairs, unpaired = pairs_of(places.of, options.layout, skipped)
    skips = [*skipped, *unpaired]
    tally.begin(skips, (files.warning, places.warning), places.holds_out)
    return in_order(pairs)


def _sized(
    files: ImageSource,
    pairs: Sequence[ImagePair],
    options: ImagePairOptions,
    tally: Tally,
    progress: Progress,
) -> ImagePairOptions:
    names, halved = [pair.a for pair in pairs], options.layout != "folders"
    return image_sizes.sized(options, files, names, USUAL_PIXELS, tally, progress, halved=halved)


def _rows(
    files: ImageSource,
    pairs: list[ImagePair],
    options: ImagePairOptions,
    tally: Tally,
    progress: Progress,
) -> Iterator[list[tuple[Pixels, Pixels]]]:
    """Sources and targets in parts; `tally` counts each row and each skipped file."""
    few_colors: list[tuple[int, int]] = []
    contrasts: list[tuple[float, ...]] = []
    white, warning = conversion.white_of(files, progress)
    tally.warn(warning)
    targets = options.in_direction(*options.targets(white))
    any_shape = options.layout == "halves"
    for part in conversion.read_in_parts(
        pairs, lambda pair: _row(files, pair, targets, any_shape), progress, "pair"
    ):
        rows = []
        for pair, result in part:
            if isinstance(result, Skip):
                tally.skip(result)
            else:
                source, target = options.in_direction(*result)
                tally.add(pair.place.held_out_split, (*source.changes, *target.changes))
                few_colors.append((source.mixed, target.mixed))
                contrasts += [source.contrasts, target.contrasts]
                rows.append((source.pixels, target.pixels))
        yield rows
    tally.warn(
        *_label_map_warnings(few_colors), conversion.ground_warning(contrasts, options.ground)
    )
    progress(len(pairs), len(pairs), f"Converted {formats.quantity(tally.rows, 'pair')}")


def _label_map_warnings(few_colors: Sequence[tuple[int, int]]) -> list[str]:
    """A warning for each side whose images all have few colors, mixed by resizing.

    `few_colors`: of sources and targets.
    """
    return [
        f"The {side}s have at most {max(colors)} colors each, and resizing mixes them. For label"
        f" maps use {side}_resample=nearest."
        for side, colors in zip((SOURCE, TARGET), zip(*few_colors, strict=True), strict=False)
        if all(colors) and max(colors) > 1
    ]


def _row(
    files: ImageSource, pair: ImagePair, targets: tuple[Target, Target], any_shape: bool
) -> tuple[ConvertedImage, ConvertedImage] | Skip:
    """A and B of a pair, or why it has none. `targets`: their shapes."""
    name = pair.a
    target_a, target_b = targets
    try:
        if pair.a == pair.b:
            return convert_file(
                files,
                pair.a,
                lambda file: convert_halves(file, target_a, target_b, any_shape=any_shape),
            )
        a = convert_file(files, pair.a, lambda file: convert(file, target_a))
        name = pair.b
        b = convert_file(files, pair.b, lambda file: convert(file, target_b))
        if b.size != a.size:
            raise NotUsableError(
                "other size", f"it has {_size(b.size)} pixels, but its partner {_size(a.size)}"
            )
    except NotUsableError as error:
        return Skip.of(name, error.kind, str(error))
    return a, b


def _fields(options: ImagePairOptions) -> Fields:
    side = int(options.pixels)
    return pair_fields(side, side)


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"


def _folders_text(folders: Sequence[str]) -> str:
    """The number of folders and their names, after "but"."""
    if not folders:
        return "all images are in one folder"
    return f"there are {formats.count(len(folders))} ({folder_layout.quoted_names(folders)})"


def _skipped_text(skipped: Sequence[Skip]) -> str:
    """The first skipped file that could be an image of a pair; "" without any."""
    first = next((skip for kind in ADVICE for skip in skipped if skip.kind == kind), None)
    if first is None:
        return ""
    count = formats.quantity(len(skipped), "file")
    return f" ({count} skipped; {first.name}: {first.reason}: {ADVICE[first.kind]})"
