"""The JAX side of `three_ways`. Only the process with JAX imports this."""

from __future__ import annotations

from pathlib import Path

from gan_runtime.engines.jax.engine import JaxEngine
from tests.support.engines import jax_side
from tests.support.engines.three_ways import CASES, ThreeWays, three_ways


def trained_three_ways(workload: str, folder: str) -> ThreeWays:
    """Trains one of the cases on the JAX engine."""
    case = CASES[workload]

    def new_engine(replicas: int) -> JaxEngine:
        engine = jax_side.new_engine(workload, case.data, "own", replicas=replicas, **case.options)
        engine.trace()
        return engine

    return three_ways(new_engine, Path(folder))
