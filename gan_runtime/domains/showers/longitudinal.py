"""How a shower of electrons grows and dies along its axis (Grindhammer and Peters 2000, arXiv:hep-ex/0001020, section 3.1).

    f(t) = b (b t)^(a - 1) exp(-b t) / Γ(a),   b = (a - 1) / T,   t in radiation lengths

T is the depth of the maximum, a the shape; both fluctuate from shower to shower and are correlated. Constants as in Geant4's gflash.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from gan_runtime.domains.showers.detector import Medium, Numbers

MEV_PER_GEV = 1_000.0
LARGEST_SPREAD = 0.5  # of ln T and ln a, and the least T and a below: Geant4's, for low energies
LEAST_MAXIMUM, LEAST_SHAPE = 1.0, 1.1


@dataclass(frozen=True)
class Profiles:
    """Of each shower: `maximum` (N,), T in radiation lengths; `shape` (N,), a."""

    maximum: Numbers
    shape: Numbers

    def fractions(self, edges_x0: Numbers) -> Numbers:
        """The share of the energy between each two edges (N, Z + 1) → (N, Z): ∫ f dt = P(a, b t₂) - P(a, b t₁)."""
        slope = (self.shape - 1.0) / self.maximum  # b
        return np.diff(special.gammainc(self.shape[:, None], slope[:, None] * edges_x0), axis=1)

    def of_spots(self, medium: Medium) -> Profiles:
        """Along which the spots lie: T_s = T (0.813 + 0.0019 Z), a_s = a (0.844 + 0.0026 Z)."""
        number = medium.atomic_number
        shape = np.maximum(self.shape * (0.844 + 0.0026 * number), LEAST_SHAPE)
        return Profiles(self.maximum * (0.813 + 0.0019 * number), shape)


def mean_profiles(energies_gev: Numbers, medium: Medium) -> Profiles:
    """exp ⟨ln T⟩ and exp ⟨ln a⟩ of a sampling calorimeter, from those of a homogeneous one (equations for T_hom, a_hom, T_samp, a_samp).

    With ln y = ln(E / Ec):
        T_hom = ln y - 0.812;                      T = T_hom - 0.55 / Fs - 0.69 (1 - ê)
        a_hom = 0.81 + (0.458 + 2.26 / Z) ln y;    a = a_hom - 0.476 / Fs
    """
    log_y = _log_y(energies_gev, medium)
    maximum = log_y - 0.812 - 0.55 / medium.sections_per_x0 - 0.69 * (1.0 - medium.response)
    shape = 0.81 + (0.458 + 2.26 / medium.atomic_number) * log_y - 0.476 / medium.sections_per_x0
    return Profiles(np.maximum(maximum, LEAST_MAXIMUM), np.maximum(shape, LEAST_SHAPE))


def drawn_profiles(energies_gev: Numbers, medium: Medium, random: np.random.Generator) -> Profiles:
    """T and a of single showers: log-normal, correlated by ρ. With g₁, g₂ standard normal and C± = √((1 ± ρ) / 2):

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
