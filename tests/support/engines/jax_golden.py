"""The stored cases on the JAX engine. Only the process with JAX imports this."""

from __future__ import annotations

import numpy as np

from gan_runtime.engines.contract import Arrays
from tests.support.engines import golden, jax_side
from tests.support.engines.jax_side import Numbers
from tests.support.engines.parity import SMALL, rows_of


def trained_as_stored(
    name: str, weights: Arrays, is_probed: bool
) -> tuple[Arrays, Numbers, Arrays, dict[str, np.float32]]:
    """The initial state of a case, the numbers of its steps, the state after them, and the scores
    of a final probe.
    """
    case = SMALL[name]
    engine = jax_side.new_engine(case.workload, rows_of(case), "same", **case.spec_options)
    begin = golden.with_begin(engine.state(), weights)
    engine.load(begin)
    engine.trace()
    numbers = engine.run(case.steps).values
    scores = engine.probe().scores if is_probed else {}
    return (
        begin,
        numbers,
        engine.state(),
        {metric: np.float32(score) for metric, score in scores.items()},
    )
