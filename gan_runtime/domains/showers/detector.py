"""The simulated calorimeter, 25 layers of tungsten and silicon, the barrel ECAL of CLIC, and the
shape of electron showers in it.

Geometry: github.com/key4hep/k4geo, CLIC_o2_v04, ECalBarrel_o2_v01_01. It is inferred that the
authors' files are of this stack: 25 layers and cells of 5.1 mm agree. Mixture rules and shapes:
Grindhammer and Peters 2000, arXiv:hep-ex/0001020, section 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from gan_runtime.domains.showers.entry import MEV_PER_GEV

Numbers = NDArray[np.float64]

SCATTERING_MEV = 21.2  # Es, of the Molière radius


@dataclass(frozen=True)
class Material:
    """A substance. `atomic_number`: Z; `density`: g/cm³; `radiation_length_mm`: X0; `critical_mev`:
    Ec.
    """

    atomic_number: float
    density: float
    radiation_length_mm: float
    critical_mev: float


TUNGSTEN = Material(74.0, 17.8, 3.9, 8.0)  # the alloy of the absorbers
SILICON = Material(14.0, 2.33, 93.7, 40.2)
BOARD_RADIATION_LENGTH_MM = 194.0  # G10


@dataclass(frozen=True)
class Medium:
    """A section of absorber and sensor as one effective substance.

    `sections_per_x0`: Fs, X0 over the length of a section. `response`: ê, of electrons over that of
    minimum ionizing particles.
    """

    atomic_number: float
    radiation_length_mm: float
    critical_mev: float
    moliere_mm: float
    sections_per_x0: float
    response: float

    @classmethod
    def of(
        cls,
        absorber: Material,
        absorber_mm: float,
        sensor: Material,
        sensor_mm: float,
        gaps_mm: float,
    ) -> Medium:
        """By the mixture rules, with the mass shares w_i = d_i ρ_i / Σ d_j ρ_j:

        Z = Σ w_i Z_i;  X0 = Σ d_i / Σ (d_i / X0_i);  Ec = X0 Σ w_i Ec_i / X0_i;  R_M = Es X0 / Ec
        Fs = X0 / Σ d_i;  ê = 1 / (1 + 0.007 (Z_absorber - Z_sensor))

        `gaps_mm`: of air and boards, in which a shower widens too, so R_M scales with the whole
        length.
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
    """A stack of layers, absorber first.

    `absorbers_mm`: of each; after it are sensor, board and air, equal in all layers.
    """

    absorbers_mm: tuple[float, ...]
    sensor_mm: float
    board_mm: float
    # half of it before the sensor, half behind the board; with two thin sheets of a mixture
    air_mm: float
    cell_mm: float
    lateral_cells: int

    @property
    def layers(self) -> int:
        """The number of layers along the depth."""
        return len(self.absorbers_mm)

    @cached_property
    def layer_x0(self) -> Numbers:
        """(Z,): thickness of each layer in radiation lengths."""
        behind = (
            self.sensor_mm / SILICON.radiation_length_mm + self.board_mm / BOARD_RADIATION_LENGTH_MM
        )
        return np.array(self.absorbers_mm) / TUNGSTEN.radiation_length_mm + behind

    @cached_property
    def edges_x0(self) -> Numbers:
        """(Z + 1,): ends of the layers, for perpendicular incidence."""
        return np.concatenate([[0.0], np.cumsum(self.layer_x0)])

    @cached_property
    def sensors_mm(self) -> Numbers:
        """(Z,): the depth of the middle of each sensor."""
        whole = np.array(self.absorbers_mm) + self.sensor_mm + self.board_mm + self.air_mm
        return np.cumsum(whole) - self.board_mm - (self.air_mm + self.sensor_mm) / 2.0

    @cached_property
    def density_seen(self) -> Numbers:
        """(Z,): a sensor measures the density of the shower, not the energy in its absorber: the
        deposit of a layer counts by 1 in a thin one, by thin / thick, about 0.5, in a thick one.
        """
        return self.layer_x0.min() / self.layer_x0

    @cached_property
    def medium(self) -> Medium:
        """The effective medium of a section of the first layer."""
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


# ---- longitudinal --------------------------------------------------------------------------------
# The energy along the axis of a shower (Grindhammer and Peters 2000, section 3.1).
#
#     f(t) = b (b t)^(a - 1) exp(-b t) / Γ(a),   b = (a - 1) / T,   t in radiation lengths
#
# T is the depth of the maximum, a the shape; both fluctuate from shower to shower and are
# correlated. Constants as in Geant4's gflash.

LARGEST_SPREAD = 0.5  # of ln T and ln a, and the least T and a below: Geant4's, for low energies
LEAST_MAXIMUM, LEAST_SHAPE = 1.0, 1.1


@dataclass(frozen=True)
class Profiles:
    """Longitudinal profiles of showers: `maximum` (N,), T in radiation lengths; `shape` (N,), a."""

    maximum: Numbers
    shape: Numbers

    def fractions(self, edges_x0: Numbers) -> Numbers:
        """The fractions of the energy between edges (N, Z + 1) → (N, Z): ∫ f dt = P(a, b t₂) - P(a,
        b t₁).
        """
        slope = (self.shape - 1.0) / self.maximum  # b
        return np.diff(special.gammainc(self.shape[:, None], slope[:, None] * edges_x0), axis=1)

    def of_spots(self, medium: Medium) -> Profiles:
        """The profiles of the spots: T_s = T (0.813 + 0.0019 Z), a_s = a (0.844 + 0.0026 Z)."""
        number = medium.atomic_number
        shape = np.maximum(self.shape * (0.844 + 0.0026 * number), LEAST_SHAPE)
        return Profiles(self.maximum * (0.813 + 0.0019 * number), shape)


def mean_profiles(energies_gev: Numbers, medium: Medium) -> Profiles:
    """exp ⟨ln T⟩ and exp ⟨ln a⟩ of a sampling calorimeter, from those of a homogeneous one
    (equations for T_hom, a_hom, T_samp, a_samp).

    With ln y = ln(E / Ec):
        T_hom = ln y - 0.812;                      T = T_hom - 0.55 / Fs - 0.69 (1 - ê)
        a_hom = 0.81 + (0.458 + 2.26 / Z) ln y;    a = a_hom - 0.476 / Fs
    """
    log_y = _log_y(energies_gev, medium)
    maximum = log_y - 0.812 - 0.55 / medium.sections_per_x0 - 0.69 * (1.0 - medium.response)
    shape = 0.81 + (0.458 + 2.26 / medium.atomic_number) * log_y - 0.476 / medium.sections_per_x0
    return Profiles(np.maximum(maximum, LEAST_MAXIMUM), np.maximum(shape, LEAST_SHAPE))


def drawn_profiles(energies_gev: Numbers, medium: Medium, random: np.random.Generator) -> Profiles:
    """T and a of single showers: log-normal, correlated by ρ.

    With g₁, g₂ standard normal and C± = √((1 ± ρ) / 2):

    ln T = ⟨ln T⟩ + σ_T (C₊ g₁ + C₋ g₂);    ln a = ⟨ln a⟩ + σ_a (C₊ g₁ - C₋ g₂)
    σ_T = 1 / (-2.5 + 1.25 ln y);  σ_a = 1 / (-0.82 + 0.79 ln y);  ρ = 0.784 - 0.023 ln y
    """
    log_y, mean = _log_y(energies_gev, medium), mean_profiles(energies_gev, medium)
    together, apart = random.standard_normal((2, len(log_y)))
    correlation = 0.784 - 0.023 * log_y
    together *= np.sqrt((1.0 + correlation) / 2.0)
    apart *= np.sqrt((1.0 - correlation) / 2.0)
    maximum = mean.maximum * np.exp(_spread(-2.5 + 1.25 * log_y) * (together + apart))
    shape = mean.shape * np.exp(_spread(-0.82 + 0.79 * log_y) * (together - apart))
    return Profiles(np.maximum(maximum, LEAST_MAXIMUM), np.maximum(shape, LEAST_SHAPE))


def _spread(inverse: Numbers) -> Numbers:
    return 1.0 / np.maximum(inverse, 1.0 / LARGEST_SPREAD)


def _log_y(energies_gev: Numbers, medium: Medium) -> Numbers:
    return np.log(energies_gev * MEV_PER_GEV / medium.critical_mev)


# ---- radial --------------------------------------------------------------------------------------
# The width of a shower at each depth (Grindhammer and Peters 2000, section 3.2): a core and a tail.
#
# f(r) = p 2 r R_c² / (r² + R_c²)² + (1 - p) 2 r R_t² / (r² + R_t²)²,   r in Molière radii

LEAST_RADIUS = 1e-3  # in Molière radii: far from the maximum the fits become negative


@dataclass(frozen=True)
class Widths:
    """Lateral widths at each depth of each shower, all (N, Z): `core` R_c and `tail` R_t in Molière
    radii, `core_share` p.
    """

    core: Numbers
    tail: Numbers
    core_share: Numbers


def shower_ages(depths_x0: Numbers, profiles: Profiles, mean: Profiles) -> Numbers:
    """Depths (N, Z) relative to the depth of the shower's middle: τ = t / T · (a - 1) / a · ⟨a⟩ /
    (⟨a⟩ - 1).
    """
    factor = (
        (profiles.shape - 1.0) / profiles.shape * mean.shape / (mean.shape - 1.0) / profiles.maximum
    )
    return depths_x0 * factor[:, None]


def widths(energies_gev: Numbers, ages: Numbers, medium: Medium) -> Widths:
    """Energies (N,) and ages τ (N, Z) → widths.

    Of a homogeneous calorimeter, then the terms of a sampling one.

    R_c = 0.0251 + 0.00319 ln E + (0.1162 - 0.000381 Z) τ
    R_t = (0.659 - 0.00309 Z) (exp(-2.59 (τ - 0.645)) + exp((0.3585 + 0.0412 ln E) (τ - 0.645)))
    p = (2.632 - 0.00094 Z) exp(q - exp q),  q = (0.401 + 0.00187 Z - τ) / (1.313 - 0.0686 ln E)
    """
    number, log_energy = medium.atomic_number, np.log(energies_gev)[:, None]
    core = 0.0251 + 0.00319 * log_energy + (0.1162 - 0.000381 * number) * ages
    late = ages - 0.645
    tail = (0.659 - 0.00309 * number) * (
        np.exp(-2.59 * late) + np.exp((0.3585 + 0.0412 * log_energy) * late)
    )
    q = (0.401 + 0.00187 * number - ages) / (1.313 - 0.0686 * log_energy)
    return _sampled(core, tail, (2.632 - 0.00094 * number) * np.exp(q - np.exp(q)), ages, medium)


def _sampled(
    core: Numbers, tail: Numbers, core_share: Numbers, ages: Numbers, medium: Medium
) -> Widths:
    """Terms of a sampling calorimeter.

    R_c: - 0.0203 (1 - ê) + 0.0397 exp(-τ) / Fs;   R_t: - 0.14 (1 - ê) - 0.495 exp(-τ) / Fs
    p: + (1 - ê) (0.348 - 0.642 exp(-(τ - 1)²) / Fs)
    """
    unlike, young = 1.0 - medium.response, np.exp(-ages) / medium.sections_per_x0
    near = np.exp(-((ages - 1.0) ** 2)) / medium.sections_per_x0
    return Widths(
        core=np.maximum(core - 0.0203 * unlike + 0.0397 * young, LEAST_RADIUS),
        tail=np.maximum(tail - 0.14 * unlike - 0.495 * young, LEAST_RADIUS),
        core_share=np.clip(core_share + unlike * (0.348 - 0.642 * near), 0.0, 1.0),
    )
