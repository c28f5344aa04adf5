"""The clipped step on one, two and four replicas."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.engines.small_engines import MakeEngine, assert_close, trained

pytestmark = pytest.mark.usefixtures("cores")


def test_the_clipped_step_of_both_networks_is_that_of_one_replica(make: MakeEngine) -> None:
    rates = {"learning_rate_generator": 1.0, "learning_rate_discriminator": 1.0}
    steps = []
    for replicas in (1, 2, 4):
        engine = make(replicas, optimizer="sgd", clip_norm=0.05, **rates)
        before = engine.state()
        trained(engine, 1)
        steps.append({name: values - before[name] for name, values in engine.state().items()})
        for network in ("generator", "discriminator"):
            own = [values for name, values in steps[-1].items() if name.startswith(f"{network}/")]
            assert np.sqrt(sum(np.sum(np.square(values)) for values in own)) == pytest.approx(0.05, rel=1e-4)
    assert_close(steps[1], steps[0], 1e-6)
    assert_close(steps[2], steps[0], 1e-6)
