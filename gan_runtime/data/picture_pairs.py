"""The preparation `picture_pairs`: a folder or a .zip of pairs of pictures becomes a data set, one
picture the source, the other the target.

The order of the rows is shuffled, the same for as many pairs, so that the held-out ones are a fair
choice. What cannot be used is left out and named.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError, quoted
from gan_runtime.base.fields import SOURCE, TARGET, Fields, pair_fields
from gan_runtime.data import picture_places, picture_sources
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import Converted, Target, converted, halves
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.picture_files import Source, readable
from gan_runtime.data.picture_options import PairOptions
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
from gan_runtime.data.pictures import content
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter, row_bytes
from gan_runtime.data.summary import Skip, Survey

__all__ = ["content", "prepare", "survey"]
Stem = tuple[str, str]
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Pair:
    """The files of A and B; side by side it is one file. `place`: that of A."""

    a: str
    b: str
    place: Place


def survey(source: Path, options: PairOptions, progress: Progress) -> Survey:
    """Looks at every pair and stores nothing; its grid shows source and target side by side.

    Raises DatasetError: the source cannot be read, has other folders than two, or nothing to use.
    """
    with picture_sources.opened(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        pairs = _pairs(files, options, tally, progress)
        grid: list[Pixels] = []
        for rows in _rows(files, pairs, options, tally, progress):
            grid += [np.concatenate(row, axis=1) for row in rows[: GRID - len(grid)]]
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


def prepare(source: Path, options: PairOptions, folder: Path, progress: Progress) -> Stored:
    """Writes all usable pairs into the existing, empty `folder`.

    Raises:
        DatasetError: as `survey`. HomeError: the disk has too little space.
    """
    fields = _fields(options)
    with picture_sources.opened(source, options.zip_names) as files:
        tally = Tally(files.hidden)
        pairs = _pairs(files, options, tally, progress)
        with RowWriter(folder, fields, len(pairs), f"a data set of {len(pairs):,} pairs") as writer:
            for rows in _rows(files, pairs, options, tally, progress):
                if rows:
                    sources, targets = zip(*rows, strict=True)
                    writer.append({SOURCE: np.stack(sources), TARGET: np.stack(targets)})
    tally.check()
    return Stored(fields, writer.shards, tally.summary(options.held_out_percent))


def pairs_of(places: Mapping[str, Place], layout: str) -> tuple[list[Pair], list[Skip]]:
    """The pairs among some pictures, and those without a partner.

    Raises DatasetError: their folders are those of another layout.
    """
    folders = sorted({place.folder for place in places.values() if place.folder})
    if layout != "folders":
        if layout == "side_by_side" and len(folders) == 2:
            _check_no_partners(places, folders)
        return [Pair(name, name, place) for name, place in places.items()], []
    if len(folders) != 2:
        raise DatasetError(
            f"pairs by equal names need two folders of pictures, but there are {_listed(folders)}: "
            "put A into one folder and B into another, or use layout=side_by_side."
        )
    by_key: dict[tuple[str, Stem], str] = {}
    skips = []
    for name, place in places.items():
        key = place.folder, _stem(place)
        if not place.folder:
            skips.append(left_out(name, "no partner", "it lies beside the two folders"))
        elif key in by_key:
            skips.append(left_out(name, "twice", f"{by_key[key]} has the same name"))
        else:
            by_key[key] = name
    return _matched(by_key, places, folders, skips)


def _matched(
    by_key: Mapping[tuple[str, Stem], str],
    places: Mapping[str, Place],
    folders: Sequence[str],
    skips: list[Skip],
) -> tuple[list[Pair], list[Skip]]:
    """`by_key`: the file of each folder and name."""
    a, b = folders
    pairs = []
    for (folder, stem), name in by_key.items():
        other = b if folder == a else a
        partner = by_key.get((other, stem))
        if partner is None:
            where = f"{quoted(readable(other))}{f' of {stem[0]}' if stem[0] else ''}"
            skips.append(
                left_out(name, "no partner", f"there is no picture of this name in {where}")
            )
        elif folder == a:
            pairs.append(Pair(name, partner, places[name]))
    return pairs, skips


def _stem(place: Place) -> Stem:
    """What two partners have in common: the split, and the name without its ending."""
    return place.split, str(PurePosixPath(place.rest).with_suffix(""))


def _check_no_partners(places: Mapping[str, Place], folders: Sequence[str]) -> None:
    """Raises DatasetError: the two folders are those of A and B, by what they or most of
    their pictures are called.
    """
    counts = Counter(_stem(place) for place in places.values() if place.folder)
    partners = sum(1 for count in counts.values() if count > 1)
    if [folder.casefold() for folder in folders] == ["a", "b"] or 2 * partners > len(counts):
        raise DatasetError(
            f"the pictures are in 2 folders ({picture_places.named(folders)}), as pairs by equal"
            " names are: use layout=folders, or layout=halves if each file holds both pictures."
        )


def _pairs(files: Source, options: PairOptions, tally: Tally, progress: Progress) -> list[Pair]:
    """All pairs, in the order of their rows; `tally` counts the files that are left out.

    Raises DatasetError as `survey`.
    """
    contents = picture_sources.contents(files, progress)
    places = picture_places.places(contents.pictures, options.held_out_folders)
    pairs, alone = pairs_of(places.of, options.layout)
    tally.begin(files, [*contents.others, *places.skipped, *alone], places.holds_out)
    return in_order(pairs)


def _rows(
    files: Source, pairs: list[Pair], options: PairOptions, tally: Tally, progress: Progress
) -> Iterator[list[tuple[Pixels, Pixels]]]:
    """Sources and targets by the hundred; `tally` counts each row and each file left out."""
    few_colors: list[tuple[int, int]] = []
    chosen = options.in_direction(*options.targets(tally.white(files, progress)))
    any_shape = options.layout == "halves"
    for part in read_in_parts(
        pairs, lambda pair: _row(files, pair, chosen, any_shape), progress, "pairs"
    ):
        rows = []
        for pair, result in part:
            if isinstance(result, Skip):
                tally.skip(result)
            else:
                source, target = options.in_direction(*result)
                tally.add(pair.place, (*source.changes, *target.changes))
                few_colors.append((source.mixed, target.mixed))
                rows.append((source.pixels, target.pixels))
        yield rows
    tally.warnings += _of_label_maps(few_colors)
    progress(len(pairs), len(pairs), f"Converted {tally.rows:,} pairs")


def _of_label_maps(few_colors: Sequence[tuple[int, int]]) -> list[str]:
    """A warning for each side of which every picture had few colors that were mixed.

    `few_colors`: of sources and targets.
    """
    return [
        f"The {side}s have at most {max(colors)} colors each, and resizing mixes them. If they are"
        f" label maps, prepare them with {side}_resample=nearest."
        for side, colors in zip((SOURCE, TARGET), zip(*few_colors, strict=True), strict=False)
        if all(colors) and max(colors) > 1
    ]


def _row(
    files: Source, pair: Pair, targets: tuple[Target, Target], any_shape: bool
) -> tuple[Converted, Converted] | Skip:
    """A and B of a pair, or why it gives none. `targets`: what each becomes."""
    name = pair.a
    target_a, target_b = targets
    try:
        if pair.a == pair.b:
            return of_file(
                files, pair.a, lambda file: halves(file, target_a, target_b, any_shape=any_shape)
            )
        a = of_file(files, pair.a, lambda file: converted(file, target_a))
        name = pair.b
        b = of_file(files, pair.b, lambda file: converted(file, target_b))
        if b.size != a.size:
            raise NotUsableError(
                "other size", f"it has {_size(b.size)} pixels, but its partner {_size(a.size)}"
            )
    except NotUsableError as error:
        return skip(name, error)
    return a, b


def _fields(options: PairOptions) -> Fields:
    side = int(options.pixels)
    return pair_fields(side, side)


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"


def _listed(folders: Sequence[str]) -> str:
    """How many folders there are, and which."""
    return f"{len(folders):,} ({picture_places.named(folders)})" if folders else "none"
