"""Moving averages of several networks of a workload, on both engines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gan_runtime import catalog
from gan_runtime.engines.contract import Arrays, Engine
from gan_runtime.spec import RunSpec
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.small_engines import assert_equal, random_images, tf_engine
from tests.support.engines.tiny_gan import TINY_GAN

IMAGES = random_images(40, 8)
OPTIONS = {"ema_decay": 0.5, "optimizer": "sgd", "samples_from": "ema"}
BOTH = ("generator", "discriminator")


def assert_both_follow(states: list[Arrays]) -> None:
    """Compares both averages with `states` before the first step and after each of two."""
    begin, first, second = states
    averages = [name for name in begin if name.startswith(("average/", "average_discriminator/"))]
    assert len(averages) == len([name for name in begin if name.startswith(BOTH)])
    for average in averages:
        live = average.replace("average/", "generator/").replace(
            "average_discriminator/", "discriminator/"
        )
        assert np.array_equal(begin[average], begin[live])
        if "moving_" not in average:
            expected = begin[live] / 4 + first[live] / 4 + second[live] / 2
            assert second[average] == pytest.approx(expected, abs=1e-6), average
    kernel = "discriminator/logit/kernel"
    assert not np.array_equal(
        second[f"average_discriminator/{kernel}"], second[f"discriminator/{kernel}"]
    )


@pytest.mark.usefixtures("cores")
def test_tensorflow_averages_both_networks_and_resumes_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name = RunSpec.parse({}).workload
    entry = catalog.WORKLOADS[name]
    of_one = tf_engine(1, TINY_GAN, IMAGES, **OPTIONS).state()
    monkeypatch.setitem(catalog.WORKLOADS, name, replace(entry, averaged=BOTH))
    engine, fresh = (tf_engine(1, TINY_GAN, IMAGES, **OPTIONS) for _ in range(2))
    states = [engine.state()]
    for _ in range(2):
        engine.run(1)
        states.append(engine.state())
    assert_both_follow(states)
    assert set(of_one) < set(states[0]), "what one average is called stays as it is"
    fresh.load(states[1])
    fresh.run(1)
    assert_equal(fresh.state(), states[2])
    assert_shows_the_average(engine, states[2])


def assert_shows_the_average(engine: Engine, state: Arrays) -> None:
    """Samples use the average of the generator: other live weights do not change them."""
    images = engine.sample()["images"]
    engine.load(
        {
            name: array * 0 if name.startswith("generator/generator/dense") else array
            for name, array in state.items()
        }
    )
    assert np.array_equal(engine.sample()["images"], images)


def test_jax_averages_both_networks(jax: JaxProcess) -> None:
    assert_both_follow(jax("averaged", IMAGES, BOTH, OPTIONS, 2))
