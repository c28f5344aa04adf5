"""The options of the preparation `picture_pairs`: how pairs lie in files, and what they become."""

from __future__ import annotations

from typing import Any, Literal, TypeVar, get_args

from gan_runtime.base.options import OptionRecord, option
from gan_runtime.data.conversion import GROUNDS, Resample, Target
from gan_runtime.data.decoding import WHITE
from gan_runtime.data.picture_options import (
    GROUP,
    Frame,
    Ground,
    frame,
    ground,
    held_out_folders,
    held_out_percent,
    zip_names,
)
from gan_runtime.data.zip_names import CodePage

Layout = Literal["side_by_side", "folders", "halves"]
Side = TypeVar("Side")
Direction = Literal["a_to_b", "b_to_a"]
Pixels = Literal["32", "64", "128", "256", "512"]


def resample(of: str) -> Any:
    """How the pictures of one side are resized."""
    return option(
        "lanczos",
        label=f"Resize the {of}",
        group=GROUP,
        choices=get_args(Resample),
        help=f"'lanczos' is smooth, for photos. 'nearest' mixes no colors: for a {of} that is a label map.",
        error="pick lanczos or nearest.",
    )


class PairOptions(OptionRecord):
    """What the pairs of a folder become. Both pictures of a pair are cut or fitted alike."""

    layout: Layout = option(
        "side_by_side",
        label="Layout",
        group=GROUP,
        choices=get_args(Layout),
        help="'side_by_side': each file holds both pictures, A on the left, B on the right, and is about twice as wide as high. "
        "'halves': the same, whatever its shape. 'folders': A and B are in two folders, in alphabetical order, by equal names.",
        error="pick side_by_side, folders or halves.",
    )
    direction: Direction = option(
        "a_to_b",
        label="Direction",
        group=GROUP,
        choices=get_args(Direction),
        help="Which picture of a pair is given and which is to be made of it: 'a_to_b' makes B of A.",
        error="pick a_to_b or b_to_a.",
    )
    pixels: Pixels = option(
        "256",
        label="Side",
        group=GROUP,
        unit="pixels",
        choices=get_args(Pixels),
        help="Width and height of both pictures. Smaller ones are left out, never enlarged.",
        error="pick one of the listed sizes.",
    )
    frame: Frame = frame()
    ground: Ground = ground()
    source_resample: Resample = resample("source")
    target_resample: Resample = resample("target")
    held_out_percent: float = held_out_percent(10.0)
    held_out_folders: str = held_out_folders()
    zip_names: CodePage = zip_names()

    def targets(self, white: int = WHITE) -> tuple[Target, Target]:
        """What the source and the target of a pair become. `white`: the value of white in files of 16 bits."""
        ground, cropped = GROUNDS[self.ground], self.frame == "crop"
        source, target = (
            Target(int(self.pixels), 3, ground, cropped, resample, white)
            for resample in (self.source_resample, self.target_resample)
        )
        return source, target

    def in_direction(self, first: Side, second: Side) -> tuple[Side, Side]:
        """What is of A and B as of source and target, and the other way round."""
        return (first, second) if self.direction == "a_to_b" else (second, first)
