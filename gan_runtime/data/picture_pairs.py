"""The preparation `picture_pairs`: a folder or a .zip of pairs of pictures becomes a data set, one picture the source, the other the target.

The order of the rows is shuffled, the same for as many pairs, so that the held-out ones are a fair choice. What cannot be used is left out and
told by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from gan_runtime.data import picture_files
from gan_runtime.data.contract import Progress
from gan_runtime.data.conversion import Converted, Target, converted, halves
from gan_runtime.data.decoding import NotUsableError
from gan_runtime.data.pair_options import PairOptions
from gan_runtime.data.picture_files import Source, readable
from gan_runtime.data.picture_rows import GRID, Tally, of_file, read_in_parts, shuffled, skip
from gan_runtime.data.pictures import content, folders_of
from gan_runtime.data.prepared import Stored
from gan_runtime.data.sharded import RowWriter, row_bytes
from gan_runtime.data.summary import Skip
from gan_runtime.data.survey import Survey
from gan_runtime.errors import DatasetError, quoted
from gan_runtime.fields import Fields
from gan_runtime.frame_fields import SOURCE, TARGET, pair_fields

__all__ = ["content", "prepare", "survey"]
MOST_NAMED = 5  # folders in a sentence
Pixels = NDArray[np.uint8]


@dataclass(frozen=True)
class Pair:
    """The files of A and B; side by side it is one file."""

    a: str
    b: str


def survey(source: Path, options: PairOptions, progress: Progress) -> Survey:
    """Looks at every pair and stores nothing; its grid shows source and target beside each other.

    Raises DatasetError: the source cannot be read, has other folders than two, or nothing to use.
    """
    with picture_files.opened(source) as files:
        tally = Tally(files.hidden)
        grid: list[Pixels] = []
        for rows in _rows(files, options, tally, progress):
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
    with picture_files.opened(source) as files:
        tally, most = Tally(files.hidden), len(pairs_of(files.names, options.layout)[0])
        with RowWriter(folder, fields, most, f"a data set of {most:,} pairs") as writer:
            for rows in _rows(files, options, tally, progress):
                if rows:
                    sources, targets = zip(*rows, strict=True)
                    writer.append({SOURCE: np.stack(sources), TARGET: np.stack(targets)})
    tally.check()
    return Stored(fields, writer.shards, tally.summary(options.held_out_percent))


def pairs_of(names: Sequence[str], layout: str) -> tuple[list[Pair], list[Skip]]:
    """The pairs among some files, and the files without a partner.

    Raises DatasetError: they do not lie in two folders, where they should.
    """
    if layout == "side_by_side":
        return [Pair(name, name) for name in names], []
    lies = folders_of(names)
    folders = sorted({folder for folder, _ in lies.values() if folder})
    if len(folders) != 2:
        raise DatasetError(
            f"pairs by equal names need two folders of pictures, but there are {_told(folders)}: "
            "put A into one folder and B into another, or use layout=side_by_side."
        )
    found: dict[tuple[str, str], str] = {}
    skips = []
    for name, (folder, rest) in lies.items():
        key = folder, str(PurePosixPath(rest).with_suffix(""))
        if not folder:
            skips.append(_left_out(name, "no partner", "it lies beside the two folders"))
        elif key in found:
            skips.append(_left_out(name, "twice", f"{found[key]} has the same name"))
        else:
            found[key] = name
    a, b = folders
    return _matched(found, a, b, skips)


def _matched(
    found: dict[tuple[str, str], str], a: str, b: str, skips: list[Skip]
) -> tuple[list[Pair], list[Skip]]:
    """`found`: the file of each folder and name."""
    pairs = [
        Pair(name, found[b, stem])
        for (folder, stem), name in found.items()
        if folder == a and (b, stem) in found
    ]
    alone = {
        name: b if folder == a else a
        for (folder, stem), name in found.items()
        if (b if folder == a else a, stem) not in found
    }
    reasons = {
        name: f"there is no picture of this name in {quoted(readable(other))}"
        for name, other in alone.items()
    }
    return pairs, skips + [_left_out(name, "no partner", reason) for name, reason in reasons.items()]


def _rows(
    files: Source, options: PairOptions, tally: Tally, progress: Progress
) -> Iterator[list[tuple[Pixels, Pixels]]]:
    """Sources and targets by the hundred, in the set's order; `tally` is told of each row and of each file left out."""
    pairs, alone = pairs_of(files.names, options.layout)
    for left_out in (*files.skipped, *alone):
        tally.skip(left_out)
    few_colors: list[tuple[int, int]] = []
    chosen = options.in_direction(*options.targets(tally.white(files, progress)))
    for part in read_in_parts(shuffled(pairs), lambda pair: _row(files, pair, chosen), progress, "pairs"):
        rows = []
        for _, result in part:
            if isinstance(result, Skip):
                tally.skip(result)
            else:
                tally.labels.append("")
                pair = options.in_direction(*result)
                for picture in pair:
                    tally.converted.update(picture.changes)
                few_colors.append((pair[0].mixed, pair[1].mixed))
                rows.append((pair[0].pixels, pair[1].pixels))
        yield rows
    tally.warnings += _of_label_maps(few_colors)
    progress(len(pairs), len(pairs), f"Converted {tally.rows:,} pairs")


def _of_label_maps(few_colors: Sequence[tuple[int, int]]) -> list[str]:
    """A warning for each side of which every picture had few colors that were mixed. `few_colors`: of sources and targets."""
    return [
        f"The {side}s have at most {max(colors)} colors each, and resizing mixes them. If they are label maps, prepare them with "
        f"{side}_resample=nearest."
        for side, colors in zip((SOURCE, TARGET), zip(*few_colors, strict=True), strict=False)
        if all(colors)
    ]


def _row(files: Source, pair: Pair, targets: tuple[Target, Target]) -> tuple[Converted, Converted] | Skip:
    """A and B of a pair, or why it gives none. `targets`: what each becomes."""
    name = pair.a
    target_a, target_b = targets
    try:
        if pair.a == pair.b:
            return of_file(files, pair.a, lambda file: halves(file, target_a, target_b))
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


def _left_out(name: str, kind: str, reason: str) -> Skip:
    return Skip(name=readable(name), kind=kind, reason=readable(reason))


def _size(size: tuple[int, int]) -> str:
    return f"{size[0]} × {size[1]}"


def _told(folders: Sequence[str]) -> str:
    """How many folders there are, and which."""
    if not folders:
        return "none"
    named = ", ".join(quoted(readable(folder)) for folder in folders[:MOST_NAMED])
    return f"{len(folders):,} ({named}{', …' if len(folders) > MOST_NAMED else ''})"
