"""The calorimeter that is simulated: 25 layers of tungsten and silicon, the barrel ECAL of CLIC, and the medium that a shower sees in it.

Geometry: github.com/key4hep/k4geo, CLIC_o2_v04, ECalBarrel_o2_v01_01. That the authors' files were made with exactly this stack is
inferred: 25 layers and cells of 5.1 mm agree. Mixture rules: Grindhammer and Peters 2000, arXiv:hep-ex/0001020, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

SCATTERING_MEV = 21.2  # Es, of the Molière radius


@dataclass(frozen=True)
class Material:
    """One substance. `atomic_number`: Z; `density`: g/cm³; `radiation_length_mm`: X0; `critical_mev`: Ec."""

    atomic_number: float
    density: float
    radiation_length_mm: float
    critical_mev: float


TUNGSTEN = Material(74.0, 17.8, 3.9, 8.0)  # the alloy of the absorbers
SILICON = Material(14.0, 2.33, 93.7, 40.2)
BOARD_RADIATION_LENGTH_MM = 194.0  # G10


@dataclass(frozen=True)
class Medium:
    """A section of absorber and sensor as if it were one substance; what the parameters of a shower depend on.

    `sections_per_x0`: Fs, X0 over the length of a section. `response`: ê, of electrons over that of minimum ionizing particles.
    """

    atomic_number: float
    radiation_length_mm: float
    critical_mev: float
    moliere_mm: float
    sections_per_x0: float
    response: float

    @classmethod
    def of(
        cls, absorber: Material, absorber_mm: float, sensor: Material, sensor_mm: float, gaps_mm: float
    ) -> Medium:
        """By the mixture rules, with the mass shares w_i = d_i ρ_i / Σ d_j ρ_j:

        Z = Σ w_i Z_i;  X0 = Σ d_i / Σ (d_i / X0_i);  Ec = X0 Σ w_i Ec_i / X0_i;  R_M = Es X0 / Ec
        Fs = X0 / Σ d_i;  ê = 1 / (1 + 0.007 (Z_absorber - Z_sensor))

        `gaps_mm`: of air and boards, in which a shower goes on growing sideways, so R_M grows by the whole length.
        """
        parts = ((absorber, absorber_mm), (sensor, sensor_mm))
        length = absorber_mm + sensor_mm
        mass = sum(part.density * thick for part, thick in parts)
        shares = [part.density * thick / mass for part, thick in parts]
        radiation_length = length / sum(thick / part.radiation_length_mm for part, thick in parts)
        critical = radiation_length * sum(
            share * part.critical_mev / part.radiation_length_mm
            for share, (part, _) in zip(shares, parts, strict=True)
        )
        return cls(
            atomic_number=sum(
                share * part.atomic_number for share, (part, _) in zip(shares, parts, strict=True)
            ),
            radiation_length_mm=radiation_length,
            critical_mev=critical,
            moliere_mm=SCATTERING_MEV * radiation_length / critical * (length + gaps_mm) / length,
            sections_per_x0=radiation_length / length,
            response=1.0 / (1.0 + 0.007 * (absorber.atomic_number - sensor.atomic_number)),
        )


@dataclass(frozen=True)
class Detector:
    """A stack of layers, absorber first. `absorbers_mm`: of each; behind it lie sensor, board and air, the same in all layers."""

    absorbers_mm: tuple[float, ...]
    sensor_mm: float
    board_mm: float
    air_mm: float  # half of it before the sensor, half behind the board; with two thin sheets of a mixture
    cell_mm: float
    lateral_cells: int

    @property
    def layers(self) -> int:
        """Along the depth."""
        return len(self.absorbers_mm)

    @cached_property
    def layer_x0(self) -> Numbers:
        """(Z,): how thick each layer is, in radiation lengths."""
        behind = self.sensor_mm / SILICON.radiation_length_mm + self.board_mm / BOARD_RADIATION_LENGTH_MM
        return np.array(self.absorbers_mm) / TUNGSTEN.radiation_length_mm + behind

    @cached_property
    def edges_x0(self) -> Numbers:
        """(Z + 1,): where the layers begin and end, straight through."""
        return np.concatenate([[0.0], np.cumsum(self.layer_x0)])

    @cached_property
    def sensors_mm(self) -> Numbers:
        """(Z,): the depth of the middle of each sensor."""
        whole = np.array(self.absorbers_mm) + self.sensor_mm + self.board_mm + self.air_mm
        return np.cumsum(whole) - self.board_mm - (self.air_mm + self.sensor_mm) / 2.0

    @cached_property
    def density_seen(self) -> Numbers:
        """(Z,): a sensor sees how dense the shower is, not how much of it its absorber has stopped.

        What is deposited in a layer counts by 1 in a thin one, and by thin / thick, about 0.5, in one of twice the tungsten.
        """
        return self.layer_x0.min() / self.layer_x0

    @cached_property
    def medium(self) -> Medium:
        """Of a section of the first layer."""
        gaps = self.board_mm + self.air_mm
        return Medium.of(TUNGSTEN, self.absorbers_mm[0], SILICON, self.sensor_mm, gaps)


CLIC = Detector(
    absorbers_mm=(2.4,) * 17 + (4.8,) * 8,
    sensor_mm=0.5,
    board_mm=0.8,
    air_mm=0.7,
    cell_mm=5.1,
    lateral_cells=51,
)
