"""How wide a shower is at each depth (Grindhammer and Peters 2000, arXiv:hep-ex/0001020, section 3.2): a core and a tail.

f(r) = p 2 r R_c² / (r² + R_c²)² + (1 - p) 2 r R_t² / (r² + R_t²)²,   r in Molière radii
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gan_runtime.domains.showers.detector import Medium, Numbers
from gan_runtime.domains.showers.longitudinal import Profiles

LEAST_RADIUS = 1e-3  # in Molière radii: far from the maximum the fits become negative


@dataclass(frozen=True)
class Widths:
    """At each depth of each shower, all (N, Z): `core` R_c and `tail` R_t in Molière radii, `core_share` p."""

    core: Numbers
    tail: Numbers
    core_share: Numbers


def shower_ages(depths_x0: Numbers, profiles: Profiles, mean: Profiles) -> Numbers:
    """Depths (N, Z) over that of the shower's middle: τ = t / T · (a - 1) / a · ⟨a⟩ / (⟨a⟩ - 1)."""
    factor = (profiles.shape - 1.0) / profiles.shape * mean.shape / (mean.shape - 1.0) / profiles.maximum
    return depths_x0 * factor[:, None]


def widths(energies_gev: Numbers, ages: Numbers, medium: Medium) -> Widths:
    """Energies (N,) and ages τ (N, Z) → widths. Of a homogeneous calorimeter, then the terms of a sampling one.

    R_c = 0.0251 + 0.00319 ln E + (0.1162 - 0.000381 Z) τ
    R_t = (0.659 - 0.00309 Z) (exp(-2.59 (τ - 0.645)) + exp((0.3585 + 0.0412 ln E) (τ - 0.645)))
    p = (2.632 - 0.00094 Z) exp(q - exp q),  q = (0.401 + 0.00187 Z - τ) / (1.313 - 0.0686 ln E)
    """
    number, log_energy = medium.atomic_number, np.log(energies_gev)[:, None]
    core = 0.0251 + 0.00319 * log_energy + (0.1162 - 0.000381 * number) * ages
    late = ages - 0.645
    tail = (0.659 - 0.00309 * number) * (np.exp(-2.59 * late) + np.exp((0.3585 + 0.0412 * log_energy) * late))
    q = (0.401 + 0.00187 * number - ages) / (1.313 - 0.0686 * log_energy)
    return _sampled(core, tail, (2.632 - 0.00094 * number) * np.exp(q - np.exp(q)), ages, medium)


def _sampled(core: Numbers, tail: Numbers, core_share: Numbers, ages: Numbers, medium: Medium) -> Widths:
    """What the layers of a sampling calorimeter add.

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
