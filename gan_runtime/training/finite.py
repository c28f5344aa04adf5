"""Whether what a training holds are still numbers. A NaN or infinite value gets into no checkpoint, and ends or turns back a run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gan_runtime.base.errors import NonFiniteError
from gan_runtime.engines.contract import Arrays


def first_not_finite(arrays: Arrays) -> str | None:
    """The name of the first array that holds a NaN or infinite number; None when all are finite."""
    return next((name for name in sorted(arrays) if not np.isfinite(arrays[name]).all()), None)


def check_state(arrays: Arrays, step: int, epoch: int) -> Arrays:
    """The same arrays. A step's losses are computed before its update, so only a look at the weights tells what the last
    update has made of them.

    Raises:
        NonFiniteError: a weight, slot or average is NaN or infinite; the message names it.
    """
    name = first_not_finite(arrays)
    if name is not None:
        raise NonFiniteError(f"{name} holds NaN or infinite numbers after step {step} (epoch {epoch}).")
    return arrays


def check_scores(scores: Mapping[str, float], epoch: int) -> None:
    """Raises NonFiniteError when a score of an epoch is NaN or infinite: every comparison with it would be false."""
    name = next((name for name in sorted(scores) if not np.isfinite(scores[name])), None)
    if name is not None:
        value = "NaN" if np.isnan(scores[name]) else "infinite"
        raise NonFiniteError(f"{name} became {value} at the end of epoch {epoch}.")
