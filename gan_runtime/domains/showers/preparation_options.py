"""Options for preparing showers: simulated showers, and files of other simulations."""

from __future__ import annotations

from typing import Any, Literal, get_args

from gan_runtime.base.errors import FieldError
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.preparation import Promised
from gan_runtime.domains.showers.entry import cells_along, shower_fields

Grid = Literal["full", "tiny"]
GROUP = "Model and data"
AUTO = "auto"
EnergyUnit = Literal["auto", "MeV", "GeV"]
CellUnit = Literal["auto", "MeV", "20MeV", "GeV"]
UNITS_GEV = {"MeV": 1e-3, "20MeV": 0.02, "GeV": 1.0}  # 20 MeV: the 3DGAN authors', GeV · 50
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
    """Share of the rows that no run trains on."""
    return option(
        default,
        label="Held out",
        group=GROUP,
        unit="%",
        ge=0,
        le=50,
        help="Share of the showers that no run trains on, for evaluations.",
        error="use about 10.",
    )


def events(default: int) -> Any:
    """Number of simulated showers."""
    return option(
        default,
        label="Showers",
        group=GROUP,
        ge=2,
        le=1_000_000,
        help="Simulated showers. One takes about 1 ms, and 130 kB on the full grid.",
        error="use about 20000; the authors trained on 124987.",
    )


def grid(default: Grid) -> Any:
    """The option for the resolution of the cells."""
    return option(
        default,
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help=(
            "'full': 51 × 51 × 25 cells of 5.1 mm. 'tiny': 17 × 17 × 25, sums of nine cells, for"
            " two cores."
        ),
        error="pick full or tiny.",
    )


class ShowerOptions(OptionRecord):
    """The simulated showers. Energies and angles are uniformly distributed between their limits."""

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
            "Of the electrons. The authors' reduced data set is from 100 to 200, their full one"
            " from 2 to 500."
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
        help="Between the electron's path and the layers; 90° is perpendicular incidence.",
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
    """Showers for training on two cores in minutes, with enough held-out showers for
    evaluations.
    """

    events: int = events(4_000)
    grid: Grid = grid("tiny")
    held_out_percent: float = held_out_percent(25.0)


class ShowerFileOptions(OptionRecord):
    """Options of all files of showers."""

    energy_unit: EnergyUnit = option(
        "auto",
        label="Unit of the incident energies",
        group=GROUP,
        choices=get_args(EnergyUnit),
        help=(
            "'auto': the unit that fits the known range of energies or the depth of the showers;"
            " refused if unclear."
        ),
        error="pick auto, MeV or GeV.",
    )
    cell_unit: CellUnit = option(
        "auto",
        label="Unit of the cells",
        group=GROUP,
        choices=get_args(CellUnit),
        help=(
            "'auto': the unit in which cells sum to the known share of the incident energy. 20MeV:"
            " the 3DGAN authors' unit."
        ),
        error="pick auto, MeV, 20MeV or GeV.",
    )
    negative_cells: NegativeCells = option(
        "refuse",
        label="Negative cells",
        group=GROUP,
        choices=get_args(NegativeCells),
        help=(
            "They become empty. 'refuse' limits the change of the sums to 1%, 'clip' has no limit,"
            " 'rescale' preserves the sums."
        ),
        error="pick refuse, clip or rescale.",
    )
    held_out_percent: float = held_out_percent()


class AuthorsOptions(ShowerFileOptions):
    """Options of files of the 3DGAN's authors."""

    grid: Grid = option(
        "full",
        label="Grid",
        group=GROUP,
        choices=get_args(Grid),
        help=(
            "'full': 51 × 51 × 25 cells, as in the files. 'tiny': 17 × 17 × 25, sums of nine cells,"
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
            "'auto': x, y, layer, with a check of the depth of the showers. 'x_y_layer': without"
            " that check."
        ),
        error="pick auto or x_y_layer.",
    )


class CaloChallengeOptions(ShowerFileOptions):
    """Options of files of the CaloChallenge."""

    threshold: float = option(
        0.0,
        label="Threshold",
        group=GROUP,
        unit="MeV",
        ge=0,
        le=1_000,
        help=(
            "Cells below it count as empty. The challenge's files have none below their readout"
            " threshold of 0.01515 MeV."
        ),
        error="use 0, or 0.01515.",
    )
    order: Order = option(
        "auto",
        label="Order of the cells",
        group=GROUP,
        choices=get_args(Order),
        help=(
            "Axes from the slowest to the fastest. 'auto': layer_angle_radius, with a check of"
            " depth and symmetry of the showers."
        ),
        error="pick auto, or the order of the axes in a row, such as layer_angle_radius.",
    )


def held_out(options: ShowerOptions) -> int:
    """Number of held-out simulated showers."""
    return int(options.events * options.held_out_percent / 100)


def promised(options: ShowerOptions) -> Promised:
    """Fields and training rows of a simulation with these options."""
    return Promised(
        shower_fields((*cells_along(options.grid), 1)), options.events - held_out(options)
    )


def energies_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower limit is not above the upper one."""
    return _in_order("energy_low", options.energy_low, "energy_high", options.energy_high)


def angles_in_order(options: ShowerOptions) -> FieldError | None:
    """The lower limit is not above the upper one."""
    return _in_order("angle_low", options.angle_low, "angle_high", options.angle_high)


def _in_order(low: str, lowest: float, high: str, highest: float) -> FieldError | None:
    if lowest <= highest:
        return None
    return FieldError(low, f"{low} is {lowest:g}, above {high}, which is {highest:g}: swap them.")
