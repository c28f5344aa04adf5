"""Copies runs in a smaller form, for example bundles: images and histograms of some epochs, fewer
digits of losses and times. Runs of the Kármán street have the film of one rollout, with 256 levels.

python -m examples.smaller_runs HOME RUN… TO_HOME
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image

from gan_runtime.records import image_files
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir

COLORS = 64
EVERY_EPOCHS = {"sample": 15, "histogram": 45}  # and the first and the last epoch
# The edges of narrow bins around 1 differ in the sixth digit.
DIGITS = {"values": 4, "wall_s": 7, "bin_left": 7, "bin_right": 7}
Record = dict[str, Any]


def main(home: Home, run_ids: list[str], target: Home) -> None:
    """Copies the runs into `target`, which must not have them."""
    for run_id in run_ids:
        run, small = home.run_dir(run_id), RunDir(target.runs / run_id)
        small.path.mkdir(parents=True)
        small.spec_path.write_bytes(run.spec_path.read_bytes())
        for journal in run.journals():
            records = reduced_records(list(records_of(journal)))
            lines = [json.dumps(record, separators=(",", ":")) for record in records]
            (small.path / journal.name).write_text(
                "".join(f"{line}\n" for line in lines), encoding="utf-8"
            )
        copy_images(run, small)
        copy_film(run, small)


def records_of(journal: Path) -> Iterator[Record]:
    """The records of a journal, without lines torn by a crash."""
    for line in journal.read_bytes().splitlines():
        try:
            yield json.loads(line)
        except ValueError:
            continue


def reduced_records(records: list[Record]) -> list[Record]:
    """Fewer records with fewer digits; only one rollout has its film."""
    last = max((record.get("epoch", 0) for record in records), default=0)
    film = film_of(records)
    return [
        (
            rounded({**record, "arrays": record["arrays"] if record is film else []})
            if record["kind"] == "answer"
            else rounded(record)
        )
        for record in records
        if is_copied(record, last)
    ]


def is_copied(record: Record, last: int) -> bool:
    """Whether the smaller run has this record. `last`: epoch."""
    every = EVERY_EPOCHS.get(record["kind"], 1)
    return every == 1 or record["epoch"] in (1, last) or record["epoch"] % every == 0


def film_of(records: list[Record]) -> Record | None:
    """The record of the newest rollout, by map-reduce if it has that."""
    filmed = [record for record in records if record["kind"] == "answer" and record["arrays"]]
    newest = max((record["facts"]["iteration"] for record in filmed), default="")
    ways = [record for record in filmed if record["facts"]["iteration"] == newest]
    return max(ways, key=lambda record: record["facts"]["way"] == "map_reduce", default=None)


def rounded(record: Record) -> Record:
    """The record with fewer digits."""
    return {
        name: to_digits(value, DIGITS[name]) if name in DIGITS else value
        for name, value in record.items()
    }


def to_digits(value: Any, digits: int) -> Any:
    """`value` with every float rounded to `digits` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{digits}g}")
    if isinstance(value, list):
        return [to_digits(element, digits) for element in value]
    return (
        {name: to_digits(element, digits) for name, element in value.items()}
        if isinstance(value, dict)
        else value
    )


def copy_images(run: RunDir, small: RunDir) -> None:
    """Copies the image files that the copied records name, with COLORS colors."""
    small.samples.mkdir()
    files = [
        record["file"]
        for record in records_of(small.trainer_journal())
        if record["kind"] == "sample"
    ]
    for file in files:
        with Image.open(run.path / file) as image:
            # By coverage, not frequency: most pixels are nearly white, so eddies would be gray.
            reduced = image.convert("RGB").quantize(
                COLORS, Image.Quantize.MAXCOVERAGE, kmeans=10, dither=Image.Dither.NONE
            )
        reduced.save(small.path / file, optimize=True)


def copy_film(run: RunDir, small: RunDir) -> None:
    """Copies the film that a copied record names."""
    records = records_of(small.evaluations_journal)
    for file in [array["file"] for record in records for array in record["arrays"]]:
        image_files.write_film(
            small, Path(file).stem, image_files.read_film(run, file), is_small=True
        )


if __name__ == "__main__":
    main(Home(Path(sys.argv[1])), sys.argv[2:-1], Home(Path(sys.argv[-1])))
