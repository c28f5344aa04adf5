"""3DGAN on the JAX engine. Only the process with JAX imports this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime.data.contract import DataSet
from gan_runtime.domains.showers import networks
from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.jax.engine import JaxEngine
from tests.support.engines import jax_side, three_ways
from tests.support.engines.jax_side import Numbers
from tests.support.engines.three_ways import TakenUp

SHOWERS = "shower_3dgan"


def slopes_of_heads(images: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angles and deposits of showers (B, X, Y, Z, 1), and the gradient of their total sum with
    respect to the showers.
    """

    def heads(images: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        cells = networks.energies(images)
        angles, deposits = networks.measured_angle(cells), networks.deposit(cells)
        return angles.sum() + deposits.sum(), (angles, deposits)

    slopes, values = jax.jit(jax.grad(heads, has_aux=True))(jnp.asarray(images))
    return np.asarray(values[0]), np.asarray(values[1]), np.asarray(slopes)


def stepped(
    data: DataSet, options: dict[str, Any], state: Arrays, workload: str = SHOWERS
) -> tuple[Numbers, Arrays]:
    """Numbers of one step from a state, and the state after it, with the tests' noise."""
    engine = _engine(workload, data, options, state)
    return engine.run(1).values, engine.state()


def taken_up(data: DataSet, options: dict[str, Any], state: Arrays, folder: str) -> TakenUp:
    """Like `three_ways.taken_up`, from a state and with the tests' noise."""
    return three_ways.taken_up(
        *(_engine(SHOWERS, data, options, state) for _ in range(2)), Path(folder)
    )


def _engine(workload: str, data: DataSet, options: dict[str, Any], state: Arrays) -> JaxEngine:
    """An engine that is ready to run."""
    engine = jax_side.new_engine(workload, data, "same", **options)
    engine.load(state)
    engine.trace()
    return engine
