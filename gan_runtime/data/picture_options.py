"""The options of the preparation `pictures`: what the pictures of a folder become. Those of pairs share some of them."""

from __future__ import annotations

from typing import Any, Literal, get_args

from gan_runtime.data.conversion import GROUNDS, Target
from gan_runtime.options import OptionRecord, option

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
        help="Share of the pictures that no run trains on, kept for measuring.",
        error="use 0, or about 10.",
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
        help="'folders': each sub-folder is a class, in alphabetical order. 'none': all pictures alike.",
        error="pick folders or none.",
    )
    held_out_percent: float = held_out_percent(0.0)

    @property
    def target(self) -> Target:
        """What one picture becomes."""
        channels = 1 if self.color == "grey" else 3
        return Target(int(self.pixels), channels, GROUNDS[self.ground], self.frame == "crop")
