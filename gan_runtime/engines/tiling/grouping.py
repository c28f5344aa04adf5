"""Tiles shared out among cores: every core gets equally many, so that one program serves all of them.

Map-reduce of a picture (R. Lehmann, P. Schaarschmidt, W. Karl, PARS-Mitteilungen 2024): divide, group, map over the cores, merge.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def share(tiles: int, cores: int) -> int:
    """Tiles of each core: tiles / cores, rounded up."""
    return -(-tiles // cores)


def grouped(tiles: NDArray[Any], cores: int) -> NDArray[Any]:
    """(tiles, …) → (cores · share, …): core k has those from k · share on. What is missing is filled up with the last tile, whose
    outcome nobody takes."""
    missing = cores * share(len(tiles), cores) - len(tiles)
    return np.concatenate([tiles, np.repeat(tiles[-1:], missing, axis=0)])


def ungrouped(groups: NDArray[Any], tiles: int) -> NDArray[Any]:
    """(cores · share, …) → (tiles, …)."""
    return groups[:tiles]
