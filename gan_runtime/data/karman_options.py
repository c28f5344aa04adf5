"""The options of the preparations that make frames of a flow past an obstacle."""

from __future__ import annotations

import re
from typing import Any, Literal, get_args

from pydantic import field_validator

from gan_runtime.data.contract import Promised
from gan_runtime.errors import FieldError
from gan_runtime.flow.lattice import HEIGHT, WIDTH
from gan_runtime.frame_fields import flow_fields
from gan_runtime.options import OptionRecord, option

Obstacle = Literal["square", "circle"]
Grid = Literal["full", "half"]
SHAPES = {"full": (HEIGHT, WIDTH), "half": (HEIGHT // 2, WIDTH // 2)}  # rows and columns of a frame
LOWEST, HIGHEST = 40.0, 250.0  # Reynolds numbers: below there is no street, above the lattice is too coarse
MOST_FLOWS = 40  # in a list
GROUP = "Model and data"
_NUMBER = re.compile(r"\d{1,3}(\.\d{1,2})?")
_LIST = f"numbers from {LOWEST:g} to {HIGHEST:g}, each once, with commas between"


def grid(default: Grid) -> Any:
    """How fine the frames are."""
    return option(
        default,
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help="'full': frames of 80 × 192 pixels, the solver's cells. 'half': 40 × 96, four cells averaged: for two cores.",
        error="pick full or half.",
    )


class FlowOptions(OptionRecord):
    """Which flows are simulated, a trajectory for each Reynolds number, and what of them is kept."""

    obstacle: Obstacle = option(
        "square",
        label="Obstacle",
        group=GROUP,
        choices=get_args(Obstacle),
        help="What the flow has to pass: a square, as at KIT, or a circle. Each 10 cells wide, an eighth of the height.",
        error="pick square or circle.",
    )
    reynolds: str = option(
        "80, 100, 140, 160, 180, 200",
        label="Reynolds numbers",
        group=GROUP,
        text=_LIST,
        max_length=200,
        help="U D / ν with the obstacle's whole width: one flow for each is trained on. A street appears from about 50.",
        error="use 80, 100, 140, 160, 180, 200.",
    )
    held_out_reynolds: str = option(
        "120, 170",
        label="Held-out Reynolds numbers",
        group=GROUP,
        text=_LIST,
        max_length=200,
        help="One whole flow for each, which no run trains on: for measuring on flows that a model has never seen.",
        error="use 120, 170, or others that are not trained on.",
    )
    frames: int = option(
        250,
        label="Frames",
        group=GROUP,
        unit="per flow",
        ge=4,
        le=10_000,
        help="How many moments of each flow are kept. A pair of eddies is shed in about 25, so 250 are ten periods.",
        error="use about 250.",
    )
    steps_per_frame: int = option(
        24,
        label="Steps per frame",
        group=GROUP,
        ge=1,
        le=500,
        help="Of the solver, from one frame to the next. In 24 the stream passes a quarter of the obstacle's width.",
        error="use 24.",
    )
    discarded: int = option(
        6_000,
        label="Steps thrown away",
        group=GROUP,
        ge=0,
        le=100_000,
        help="Of the solver, before the first frame: until the street is there.",
        error="use 6000.",
    )
    later: int = option(
        2,
        label="Later frames",
        group=GROUP,
        unit="per row",
        ge=0,
        le=8,
        help="A row holds a frame, the next one, and so many after it: for training on several steps in a row.",
        error="use 2, or 0 to save room.",
    )
    grid: Grid = grid("full")
    shift: int = option(
        0,
        label="Shift of the obstacle",
        group=GROUP,
        unit="cells",
        ge=0,
        le=20,
        help="Each flow's obstacle lies up to so many cells above or below the middle, by the seed.",
        error="use 0, or up to 20.",
    )
    seed: int = option(
        0,
        label="Seed",
        group=GROUP,
        ge=0,
        le=2**31 - 1,
        help="Of the obstacles' places, where these differ. The same seed gives the same flows.",
        error="use any whole number, such as 0.",
    )

    @field_validator("reynolds", "held_out_reynolds", mode="after")
    @classmethod
    def _written_alike(cls, text: str) -> str:
        """The list as everybody writes it, "80, 100". Raises ValueError for what is no such list."""
        parts = [part.strip() for part in text.split(",")]
        if not all(map(_NUMBER.fullmatch, parts)) or len(parts) > MOST_FLOWS:
            raise ValueError("no list of numbers")
        values = [float(part) for part in parts]
        if min(values) < LOWEST or max(values) > HIGHEST or len(set(values)) < len(values):
            raise ValueError("out of bounds, or twice")
        return ", ".join(f"{value:g}" for value in values)


class SmallFlowOptions(FlowOptions):
    """Those that two cores can learn from in minutes."""

    grid: Grid = grid("half")


def numbers(text: str) -> list[float]:
    """Those of a list that has been checked."""
    return [float(part) for part in text.split(",")]


def pairs(options: FlowOptions) -> int:
    """Rows that one flow gives: each frame that has a next one, and as many after that as a row holds."""
    return options.frames - 1 - options.later


def promised(options: FlowOptions) -> Promised:
    """What a simulation with these options will give."""
    fields = flow_fields(*SHAPES[options.grid], later=options.later)
    return Promised(fields, pairs(options) * len(numbers(options.reynolds)))


def held_out_is_not_trained_on(options: FlowOptions) -> FieldError | None:
    """No Reynolds number stands in both lists."""
    both = set(numbers(options.reynolds)) & set(numbers(options.held_out_reynolds))
    if not both:
        return None
    told = ", ".join(f"{value:g}" for value in sorted(both))
    return FieldError(
        "held_out_reynolds",
        f"held_out_reynolds is {options.held_out_reynolds}, but reynolds holds {told} as well: leave it out of one.",
    )


def enough_frames(options: FlowOptions) -> FieldError | None:
    """A flow gives at least one row."""
    if pairs(options) >= 1:
        return None
    return FieldError(
        "frames",
        f"frames is {options.frames}, fewer than the {options.later + 2} of a row with later={options.later}: use more.",
    )


def solver_steps(options: FlowOptions) -> int:
    """Of all flows together."""
    flows = len(numbers(options.reynolds)) + len(numbers(options.held_out_reynolds))
    return flows * (options.discarded + (options.frames - 1) * options.steps_per_frame)
