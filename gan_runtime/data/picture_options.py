"""The options of the preparations `pictures` and `picture_pairs`: what the pictures of a
folder become.
"""

from __future__ import annotations

from typing import Any, Literal, TypeVar, get_args

from gan_runtime.base.options import OptionRecord, option
from gan_runtime.data.conversion import GROUNDS, Resample, Target
from gan_runtime.data.decoding import WHITE
from gan_runtime.data.zip_source import CodePage

Pixels = Literal["28", "32", "64", "128"]
Color = Literal["grey", "rgb"]
Frame = Literal["crop", "fit"]
Ground = Literal["black", "white", "grey"]
Labels = Literal["folders", "none"]
GROUP = "Model and data"


def frame() -> Any:
    """What becomes of a picture that is no square."""
    return option(
        "crop",
        label="Frame",
        group=GROUP,
        choices=get_args(Frame),
        help="'crop' cuts out the middle square, 'fit' keeps the whole picture beside the ground.",
        error="pick crop or fit.",
    )


def ground() -> Any:
    """What is below and beside pictures."""
    return option(
        "black",
        label="Ground",
        group=GROUP,
        choices=get_args(Ground),
        help="What shows through where a picture is transparent, and beside one that is fitted in.",
        error="pick one of the listed grounds.",
    )


def held_out_percent(default: float) -> Any:
    """The share for measuring."""
    return option(
        default,
        label="Held out",
        group=GROUP,
        unit="%",
        ge=0,
        le=50,
        help=(
            "Share of the pictures that no run trains on, kept for measuring. Has no effect where"
            " folders are held out."
        ),
        error="use 0, or about 10.",
    )


def held_out_folders() -> Any:
    """Which folders are for measuring."""
    return option(
        "auto",
        label="Held-out folders",
        group=GROUP,
        text="auto, none, or names of folders with commas between",
        max_length=200,
        help=(
            "Folders at any level that no run trains on, in place of a share. 'auto': those called"
            " val, test, holdout, dev, eval and the like. 'none': such names mean nothing. Or"
            " names, such as fold-5."
        ),
        error="use auto, none, or the names of folders.",
    )


def zip_names() -> Any:
    """How the names in a zip are to be read."""
    return option(
        "auto",
        label="Names in the zip",
        group=GROUP,
        choices=get_args(CodePage),
        help=(
            "The code page of names that the zip does not mark as UTF-8, such as cp932 for"
            " Japanese. 'auto': UTF-8, else cp437."
        ),
        error="pick one of the listed code pages.",
    )


class PictureOptions(OptionRecord):
    """What the pictures of a folder become."""

    pixels: Pixels = option(
        "64",
        label="Side",
        group=GROUP,
        unit="pixels",
        choices=get_args(Pixels),
        help="Width and height of every picture. Smaller ones are left out, never enlarged.",
        error="pick one of the listed sizes.",
    )
    color: Color = option(
        "rgb",
        label="Color",
        group=GROUP,
        choices=get_args(Color),
        help="'rgb' keeps three channels, 'grey' the luminance alone (ITU-R 601).",
        error="pick grey or rgb.",
    )
    frame: Frame = frame()
    ground: Ground = ground()
    labels: Labels = option(
        "folders",
        label="Labels",
        group=GROUP,
        choices=get_args(Labels),
        help=(
            "'folders': each sub-folder is a class, in alphabetical order. 'none': all pictures"
            " alike."
        ),
        error="pick folders or none.",
    )
    held_out_percent: float = held_out_percent(0.0)
    held_out_folders: str = held_out_folders()
    zip_names: CodePage = zip_names()

    @property
    def target(self) -> Target:
        """What one picture becomes."""
        channels = 1 if self.color == "grey" else 3
        return Target(int(self.pixels), channels, GROUNDS[self.ground], self.frame == "crop")


Layout = Literal["side_by_side", "folders", "halves"]
Side = TypeVar("Side")
Direction = Literal["a_to_b", "b_to_a"]
PairPixels = Literal["32", "64", "128", "256", "512"]


def resample(of: str) -> Any:
    """How the pictures of one side are resized."""
    return option(
        "lanczos",
        label=f"Resize the {of}",
        group=GROUP,
        choices=get_args(Resample),
        help=(
            f"'lanczos' is smooth, for photos. 'nearest' mixes no colors: for a {of} that is a"
            " label map."
        ),
        error="pick lanczos or nearest.",
    )


class PairOptions(OptionRecord):
    """What the pairs of a folder become. Both pictures of a pair are cut or fitted alike."""

    layout: Layout = option(
        "side_by_side",
        label="Layout",
        group=GROUP,
        choices=get_args(Layout),
        help=(
            "'side_by_side': each file holds both pictures, A on the left, B on the right, and is"
            " about twice as wide as high. 'halves': the same, whatever its shape. 'folders': A and"
            " B are in two folders, in alphabetical order, by equal names."
        ),
        error="pick side_by_side, folders or halves.",
    )
    direction: Direction = option(
        "a_to_b",
        label="Direction",
        group=GROUP,
        choices=get_args(Direction),
        help=(
            "Which picture of a pair is given and which is to be made of it: 'a_to_b' makes B of A."
        ),
        error="pick a_to_b or b_to_a.",
    )
    pixels: PairPixels = option(
        "256",
        label="Side",
        group=GROUP,
        unit="pixels",
        choices=get_args(PairPixels),
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
        """What the source and the target of a pair become.

        `white`: the value of white in files of 16 bits.
        """
        ground, cropped = GROUNDS[self.ground], self.frame == "crop"
        source, target = (
            Target(int(self.pixels), 3, ground, cropped, resample, white)
            for resample in (self.source_resample, self.target_resample)
        )
        return source, target

    def in_direction(self, first: Side, second: Side) -> tuple[Side, Side]:
        """What is of A and B as of source and target, and the other way round."""
        return (first, second) if self.direction == "a_to_b" else (second, first)
