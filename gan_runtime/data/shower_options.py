"""The options of the preparations that make showers."""

from __future__ import annotations

from typing import Any, Literal, get_args

from gan_runtime.data.contract import Promised
from gan_runtime.errors import FieldError
from gan_runtime.options import OptionRecord, option
from gan_runtime.shower_fields import cells_along, shower_fields

Grid = Literal["full", "tiny"]
GROUP = "Model and data"


def held_out_percent(default: float = 10.0) -> Any:
    """The option that all of them have."""
    return option(
        default,
        label="Held out",
        group=GROUP,
        unit="%",
        ge=0,
        le=50,
        help="Share of the showers that no run trains on, kept for measuring.",
        error="use about 10.",
    )


def events(default: int) -> Any:
    """How many showers."""
    return option(
        default,
        label="Showers",
        group=GROUP,
        ge=2,
        le=1_000_000,
        help="How many are simulated. One takes about a millisecond, and 130 kB on the full grid.",
        error="use about 20000; the authors trained on 124987.",
    )


def grid(default: Grid) -> Any:
    """How fine the cells are."""
    return option(
        default,
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help="'full': 51 × 51 × 25 cells of 5.1 mm. 'tiny': 17 × 17 × 25, nine cells in one: for two cores.",
        error="pick full or tiny.",
    )


class ShowerOptions(OptionRecord):
    """Which showers are simulated. Energies and angles are drawn evenly between their ends."""

    events: int = events(20_000)
    seed: int = option(
        0,
        label="Seed",
        group=GROUP,
        ge=0,
        le=2**31 - 1,
        help="The same seed gives the same showers.",
        error="use any whole number, such as 0.",
    )
    grid: Grid = grid("full")
    energy_low: float = option(
        100.0,
        label="Lowest energy",
        group=GROUP,
        unit="GeV",
        ge=2,
        le=500,
        help="Of the electrons. From 100 to 200 is the authors' reduced set, from 2 to 500 their full one.",
        error="use 100, or 2.",
    )
    energy_high: float = option(
        200.0,
        label="Highest energy",
        group=GROUP,
        unit="GeV",
        ge=2,
        le=500,
        help="Of the electrons.",
        error="use 200, or 500.",
    )
    angle_low: float = option(
        60.0,
        label="Least angle",
        group=GROUP,
        unit="°",
        ge=45,
        le=135,
        help="Between the electron's path and the layers; 90° is straight in.",
        error="use 60.",
    )
    angle_high: float = option(
        120.0,
        label="Largest angle",
        group=GROUP,
        unit="°",
        ge=45,
        le=135,
        help="Between the electron's path and the layers.",
        error="use 120.",
    )
    held_out_percent: float = held_out_percent()


class TinyShowerOptions(ShowerOptions):
    """Those that two cores can learn from in minutes, and enough held-out ones for the Physics page."""

    events: int = events(4_000)
    grid: Grid = grid("tiny")
    held_out_percent: float = held_out_percent(25.0)


class ShowerFileOptions(OptionRecord):
    """What becomes of the showers of files."""

    grid: Grid = option(
        "full",
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help="'full': 51 × 51 × 25 cells, as in the files. 'tiny': 17 × 17 × 25, nine cells in one: for two cores.",
        error="pick full or tiny.",
    )
    threshold: float = option(
        1e-4,
        label="Threshold",
        group=GROUP,
        unit="of 20 MeV",
        ge=0,
        le=1,
        help="Cells below it count as empty. 1e-4 of the files' unit, GeV · 50, is 2 keV.",
        error="use 1e-4, or 0.",
    )
    held_out_percent: float = held_out_percent()


class CaloChallengeOptions(OptionRecord):
    """What becomes of the showers of the CaloChallenge."""

    held_out_percent: float = held_out_percent()


def held_out(options: ShowerOptions) -> int:
    """How many of the simulated showers no run trains on."""
    return int(options.events * options.held_out_percent / 100)


def promised(options: ShowerOptions) -> Promised:
    """What a simulation with these options will give."""
    return Promised(shower_fields((*cells_along(options.grid), 1)), options.events - held_out(options))


def energies_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower end is not above the higher one."""
    return _in_order("energy_low", options.energy_low, "energy_high", options.energy_high)


def angles_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower end is not above the higher one."""
    return _in_order("angle_low", options.angle_low, "angle_high", options.angle_high)


def _in_order(low: str, lowest: float, high: str, highest: float) -> FieldError | None:
    if lowest <= highest:
        return None
    return FieldError(low, f"{low} is {lowest:g}, above {high}, which is {highest:g}: exchange them.")
