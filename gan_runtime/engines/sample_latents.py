"""The latents of the sample grids: the same in every run whose latents have the same size, whatever its seed.

So the same place in the grids of two runs shows what two generators make of the same latent.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLES = 64  # an 8 × 8 grid
SHARED = "shared"  # how the record of a grid says that its latents are these
_SEED = 0


def sample_latents(latent_size: int, rows: int = SAMPLES) -> NDArray[np.float32]:
    """float32 (rows, latent_size), standard normal; more rows begin with the same ones.

    From NumPy's first generator, whose numbers never change again (NEP 19), so that grids stay comparable over versions,
    engines and accelerators.
    """
    return np.random.RandomState(_SEED).standard_normal((rows, latent_size)).astype(np.float32)
