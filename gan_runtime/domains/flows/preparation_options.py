"""Options of the preparations `karman` and `karman_small`: frames of a flow past an obstacle."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import field_validator

from gan_runtime.base.errors import FieldError
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.preparation import Promised
from gan_runtime.domains.flows.fields import DIAMETER, HEIGHT, WIDTH, flow_fields

Obstacle = Literal["square", "circle"]
Grid = Literal["full", "half"]
SHAPES = {"full": (HEIGHT, WIDTH), "half": (HEIGHT // 2, WIDTH // 2)}  # rows and columns of a frame
LOWEST, HIGHEST = 40.0, 250.0  # Reynolds numbers: below no street, above too coarse a lattice
MOST_FLOWS = 40  # most flows in a list
NARROWEST, WIDEST = 6, 20  # cells: below too coarse a grid, above too near walls
MOST_SHIFT = 20  # cells
GROUP = "Model and data"
_CASE = re.compile(r"(\d{1,3}(?:\.\d{1,2})?)(?:\s+width\s+(\d{1,2}))?(?:\s+shift\s+(-?\d{1,2}))?")
_LIST = (
    f"different flows separated by commas: a number from {LOWEST:g} to {HIGHEST:g}, optionally the"
    f" obstacle's width and shift, such as 140 width 14 shift -5; widths are even, {NARROWEST} to"
    f" {WIDEST} cells; shifts are up to {MOST_SHIFT} cells down, or up with a minus"
)


@dataclass(frozen=True)
class FlowCase:
    """One flow to simulate.

    `reynolds`: based on the obstacle's `width`, in cells across the stream. `shift`: of the
    obstacle, cells below the middle; None: by the option `shift`.
    """

    reynolds: float
    width: int = int(DIAMETER)
    shift: int | None = None

    def __str__(self) -> str:
        """The form in a list of flows, such as "140 width 14 shift -5"."""
        width = f" width {self.width}" if self.width != DIAMETER else ""
        return f"{self.reynolds:g}{width}{f' shift {self.shift}' if self.shift is not None else ''}"

    @property
    def key(self) -> tuple[float, int, int]:
        """A key that is equal for equal flows, apart from random shifts."""
        return self.reynolds, self.width, self.shift or 0


def title(reynolds: float, width: float = DIAMETER, shift: float = 0.0) -> str:
    """A flow in words: "Re 140", "Re 140, width 14, shift -5"."""
    parts = [f"Re {reynolds:g}"]
    parts += [f"width {width:g}"] if width != DIAMETER else []
    parts += [f"shift {shift:g}"] if shift else []
    return ", ".join(parts)


def grid(default: Grid) -> Any:
    """The option for the resolution of the frames."""
    return option(
        default,
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help=(
            "'full': frames of 80 × 192 pixels, the solver's cells. 'half': 40 × 96, means of four"
            " cells, for two cores."
        ),
        error="pick full or half.",
    )


class FlowOptions(OptionRecord):
    """The simulated flows, a trajectory for each, and the frames that are stored."""

    obstacle: Obstacle = option(
        "square",
        label="Obstacle",
        group=GROUP,
        choices=get_args(Obstacle),
        help=(
            "Shape of the obstacle: a square, as at KIT, or a circle. Its default width is 10"
            " cells, an eighth of the height."
        ),
        error="pick square or circle.",
    )
    reynolds: str = option(
        "80, 100, 180, 200, 90 shift 5, 190 shift -8, 100 width 8 shift -4, 190 width 8 shift 7, 80"
        " width 12 shift -6, 180 width 12 shift 3, 100 width 12 shift 8, 200 width 8 shift -2",
        label="Reynolds numbers",
        group=GROUP,
        text=_LIST,
        max_length=400,
        help=(
            "Training flows: U D / ν with the obstacle's whole width. Vortices appear from about"
            " 50. '100 width 12 shift -5': wider, 5 cells higher."
        ),
        error="use 80, 100, 180, 200.",
    )
    held_out_reynolds: str = option(
        "140, 60, 230, 140 shift 12, 140 width 14",
        label="Held-out Reynolds numbers",
        group=GROUP,
        text=_LIST,
        max_length=400,
        help=(
            "Flows for evaluations, which no run trains on. Near training flows, a replay of these"
            " is hard to beat."
        ),
        error="use 60, 140, 230, 140 width 14, or others that are not trained on.",
    )
    frames: int = option(
        150,
        label="Frames",
        group=GROUP,
        unit="per flow",
        ge=4,
        le=10_000,
        help=(
            "Stored frames of each flow. A shedding period has about 25, so 150 are six periods."
        ),
        error="use about 150.",
    )
    steps_per_frame: int = option(
        24,
        label="Steps per frame",
        group=GROUP,
        ge=1,
        le=500,
        help=(
            "Solver steps between two frames. In 24 the stream moves by a quarter of the obstacle's"
            " width."
        ),
        error="use 24.",
    )
    discarded: int = option(
        6_000,
        label="Discarded steps",
        group=GROUP,
        ge=0,
        le=100_000,
        help="Solver steps before the first frame, until vortices are shed periodically.",
        error="use 6000.",
    )
    later: int = option(
        2,
        label="Later frames",
        group=GROUP,
        unit="per row",
        ge=0,
        le=8,
        help=("Frames that a row has after the target, for training on several unrolled steps."),
        error="use 2, or 0 to save disk space.",
    )
    grid: Grid = grid("full")
    shift: int = option(
        0,
        label="Shift of the obstacle",
        group=GROUP,
        unit="cells",
        ge=0,
        le=MOST_SHIFT,
        help=(
            "Largest random shift of an obstacle from the middle, for flows without a shift in"
            " their list."
        ),
        error="use 0, or up to 20.",
    )
    seed: int = option(
        0,
        label="Seed",
        group=GROUP,
        ge=0,
        le=2**31 - 1,
        help="Seed of the random shifts. The same seed gives the same flows.",
        error="use any whole number, such as 0.",
    )

    @field_validator("reynolds", "held_out_reynolds", mode="after")
    @classmethod
    def _written_alike(cls, text: str) -> str:
        """The list in its normal form, "80, 100". Raises ValueError for other texts."""
        flows = cases(text)
        if (
            len(flows) > MOST_FLOWS
            or len({flow.key for flow in flows}) < len(flows)
            or not all(map(_is_possible, flows))
        ):
            raise ValueError("out of bounds, or twice")
        return ", ".join(map(str, flows))


class SmallFlowOptions(FlowOptions):
    """Flows for training on two cores in minutes."""

    grid: Grid = grid("half")


def cases(text: str) -> list[FlowCase]:
    """The flows of a list. Raises ValueError for other texts."""
    matches = [_CASE.fullmatch(part.strip()) for part in text.split(",")]
    parts = [match.groups() for match in matches if match]
    if len(parts) < len(matches):
        raise ValueError("not a list of flows")
    return [
        FlowCase(float(reynolds), int(width or DIAMETER), int(shift) if shift else None)
        for reynolds, width, shift in parts
    ]


def _is_possible(flow: FlowCase) -> bool:
    return (
        LOWEST <= flow.reynolds <= HIGHEST
        and NARROWEST <= flow.width <= WIDEST
        and flow.width % 2 == 0
        and abs(flow.shift or 0) <= MOST_SHIFT
    )


def pairs(options: FlowOptions) -> int:
    """The number of rows of one flow: its frames that are followed by the target and the later
    frames.
    """
    return options.frames - 1 - options.later


def promised(options: FlowOptions) -> Promised:
    """Fields and training rows of a simulation with these options."""
    fields = flow_fields(*SHAPES[options.grid], later=options.later)
    return Promised(fields, pairs(options) * len(cases(options.reynolds)))


def held_out_is_not_trained_on(options: FlowOptions) -> FieldError | None:
    """No flow is in both lists."""
    trained = {flow.key for flow in cases(options.reynolds)}
    both = [str(flow) for flow in cases(options.held_out_reynolds) if flow.key in trained]
    if not both:
        return None
    return FieldError(
        "held_out_reynolds",
        f"held_out_reynolds is {options.held_out_reynolds}, but reynolds has {', '.join(both)} too:"
        " remove it from one of them.",
    )


def enough_frames(options: FlowOptions) -> FieldError | None:
    """A flow gives at least one row."""
    if pairs(options) >= 1:
        return None
    return FieldError(
        "frames",
        f"frames is {options.frames}, fewer than the {options.later + 2} of a row with"
        f" later={options.later}: use more.",
    )


def solver_steps(options: FlowOptions) -> int:
    """Solver steps of all flows."""
    flows = len(cases(options.reynolds)) + len(cases(options.held_out_reynolds))
    return flows * (options.discarded + (options.frames - 1) * options.steps_per_frame)
