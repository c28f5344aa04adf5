"""The options of the preparations that make showers."""

from __future__ import annotations

from typing import Any, Literal, get_args

from gan_runtime.base.errors import FieldError
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.domain import Promised
from gan_runtime.domains.showers.fields import cells_along, shower_fields

Grid = Literal["full", "tiny"]
GROUP = "Model and data"
AUTO = "auto"
EnergyUnit = Literal["auto", "MeV", "GeV"]
CellUnit = Literal["auto", "MeV", "20MeV", "GeV"]
UNITS_GEV = {
    "MeV": 1e-3,
    "20MeV": 0.02,
    "GeV": 1.0,
}  # 20 MeV is the unit of the 3DGAN's authors, GeV · 50
NegativeCells = Literal["refuse", "clip", "rescale"]
Order = Literal[
    "auto",
    "layer_angle_radius",
    "layer_radius_angle",
    "angle_layer_radius",
    "angle_radius_layer",
    "radius_layer_angle",
    "radius_angle_layer",
]
AuthorsOrder = Literal["auto", "x_y_layer"]


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
        help=(
            "'full': 51 × 51 × 25 cells of 5.1 mm. 'tiny': 17 × 17 × 25, nine cells in one: for two"
            " cores."
        ),
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
        help=(
            "Of the electrons. From 100 to 200 is the authors' reduced set, from 2 to 500 their"
            " full one."
        ),
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
    """Those that two cores can learn from in minutes, and enough held-out ones for the
    evaluation.
    """

    events: int = events(4_000)
    grid: Grid = grid("tiny")
    held_out_percent: float = held_out_percent(25.0)


class ShowerFileOptions(OptionRecord):
    """What becomes of the showers of files, whosever they are."""

    energy_unit: EnergyUnit = option(
        "auto",
        label="Unit of the incident energies",
        group=GROUP,
        choices=get_args(EnergyUnit),
        help=(
            "'auto': the one that puts them into the range of the known sets, or that the depth of"
            " the showers fits; refused if it is unclear."
        ),
        error="pick auto, MeV or GeV.",
    )
    cell_unit: CellUnit = option(
        "auto",
        label="Unit of the cells",
        group=GROUP,
        choices=get_args(CellUnit),
        help=(
            "'auto': the one in which they sum up to the known share of the incident energy. 20MeV:"
            " GeV · 50, as the 3DGAN's authors have it."
        ),
        error="pick auto, MeV, 20MeV or GeV.",
    )
    negative_cells: NegativeCells = option(
        "refuse",
        label="Cells below 0",
        group=GROUP,
        choices=get_args(NegativeCells),
        help=(
            "They become empty. 'refuse': not if one shower in ten then holds over 1 % more energy."
            " 'clip': in any case. 'rescale': the other cells of the shower are scaled, so that its"
            " sum stays."
        ),
        error="pick refuse, clip or rescale.",
    )
    held_out_percent: float = held_out_percent()


class AuthorsOptions(ShowerFileOptions):
    """What becomes of the showers of the 3DGAN's authors."""

    grid: Grid = option(
        "full",
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help=(
            "'full': 51 × 51 × 25 cells, as in the files. 'tiny': 17 × 17 × 25, nine cells in one:"
            " for two cores."
        ),
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
    order: AuthorsOrder = option(
        "auto",
        label="Order of the cells",
        group=GROUP,
        choices=get_args(AuthorsOrder),
        help=(
            "'auto': x, y, layer, if the showers have the depth of electrons. 'x_y_layer': the same"
            " without that check."
        ),
        error="pick auto or x_y_layer.",
    )


class CaloChallengeOptions(ShowerFileOptions):
    """What becomes of the showers of the CaloChallenge."""

    threshold: float = option(
        0.0,
        label="Threshold",
        group=GROUP,
        unit="MeV",
        ge=0,
        le=1_000,
        help=(
            "Cells below it count as empty. The challenge reads out from 0.01515 MeV on, so its own"
            " files hold none below."
        ),
        error="use 0, or 0.01515.",
    )
    order: Order = option(
        "auto",
        label="Order of the cells",
        group=GROUP,
        choices=get_args(Order),
        help=(
            "From the axis that changes slowest to the fastest one. 'auto': the challenge's,"
            " layer_angle_radius, if the showers then have the depth of electrons and are round."
        ),
        error="pick auto, or the order of the axes in a row, such as layer_angle_radius.",
    )


def held_out(options: ShowerOptions) -> int:
    """How many of the simulated showers no run trains on."""
    return int(options.events * options.held_out_percent / 100)


def promised(options: ShowerOptions) -> Promised:
    """What a simulation with these options will give."""
    return Promised(
        shower_fields((*cells_along(options.grid), 1)), options.events - held_out(options)
    )


def energies_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower end is not above the higher one."""
    return _in_order("energy_low", options.energy_low, "energy_high", options.energy_high)


def angles_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower end is not above the higher one."""
    return _in_order("angle_low", options.angle_low, "angle_high", options.angle_high)


def _in_order(low: str, lowest: float, high: str, highest: float) -> FieldError | None:
    if lowest <= highest:
        return None
    return FieldError(
        low, f"{low} is {lowest:g}, above {high}, which is {highest:g}: exchange them."
    )
