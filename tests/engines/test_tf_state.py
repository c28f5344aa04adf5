"""States: saved from any number of replicas, loaded on any other, refused if they do not fit."""

from __future__ import annotations

import numpy as np
import pytest

from gan_runtime.base.errors import CheckpointError
from gan_runtime.engines.contract import check_fit
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    assert_equal,
    copies,
    trained,
)
from tests.support.engines.tiny_gan import TINY_GAN

pytestmark = pytest.mark.usefixtures("cores")


def test_state_of_two_replicas_gives_the_same_samples_on_one(make: MakeEngine) -> None:
    two, single = make(2, TINY_GAN), make(1, TINY_GAN, seed=2)
    trained(two, 2)
    state = two.state()
    single.load(state)
    assert_equal(single.state(), state)
    assert np.abs(single.sample()["images"] - two.sample()["images"]).max() < 1e-5


@pytest.mark.parametrize("replicas", [1, 2])
def test_state_copy_is_unchanged_by_further_training(replicas: int, make: MakeEngine) -> None:
    """The copy is saved during training."""
    engine = make(replicas, TINY_GAN)
    trained(engine, 1)
    state = engine.state()
    copies = {name: array.copy() for name, array in state.items()}
    trained(engine, 3)
    assert_equal(state, copies)
    later = engine.state()
    assert any(
        not np.array_equal(later[name], array) for name, array in copies.items() if name != "step"
    )


def test_state_of_one_replica_reaches_all_four_replicas(make: MakeEngine) -> None:
    single, four = make(1, TINY_GAN), make(4, TINY_GAN, seed=2)
    trained(single, 1)
    state = single.state()
    four.load(state)
    for name, variable in four.variables().items():
        values = copies(four, variable)
        assert len(values) == 4, name
        assert all(np.array_equal(value, state[name]) for value in values), name


def test_training_continues_unchanged_on_another_replica_count(
    make: MakeEngine,
) -> None:
    whole, first, second = make(1), make(2), make(4)
    expected = trained(whole, 8)
    trained(first, 3)
    second.load(first.state())
    result = trained(second, 5)
    assert_close(result, {metric: values[3:] for metric, values in expected.items()}, 1e-5)
    assert_close(second.state(), whole.state(), 1e-5)


def test_local_batch_norm_statistics_are_averaged_in_a_state(
    make: MakeEngine,
) -> None:
    engine = make(2, TINY_GAN)
    trained(engine, 2)
    name, variable = next(
        (name, value)
        for name, value in engine.variables().items()
        if name.endswith("norm/moving_mean")
    )
    first, second = copies(engine, variable)
    assert not np.array_equal(first, second)
    state = engine.state()
    assert np.allclose(state[name], (first + second) / 2, atol=1e-7)
    assert all(np.array_equal(value, state[name]) for value in copies(engine, variable))


def test_state_has_every_variable(make: MakeEngine) -> None:
    engine = make(2, TINY_GAN, precision="mixed_float16")
    owners = [*engine.networks.values(), *engine.optimizers.values()]
    assert (
        len(engine.state()) == sum(len(owner.variables) for owner in owners) + 2
    )  # the completed steps, the rate factor


def test_state_with_unknown_names_is_refused(make: MakeEngine) -> None:
    engine = make(1)
    state = engine.state()
    before = dict(state)
    state["stranger"] = state.pop("generator/generator/hidden/bias")
    with pytest.raises(CheckpointError) as refused:
        engine.load(state)
    assert (
        str(refused.value) == "the checkpoint does not fit this run's networks and optimizers "
        "(differs in generator/generator/hidden/bias, stranger): start a new run."
    )
    assert_equal(engine.state(), before)


def test_error_lists_at_most_three_unknown_names() -> None:
    foreign = {f"stranger {number}": np.zeros(1) for number in range(5)}
    with pytest.raises(
        CheckpointError, match=r"differs in stranger 0, stranger 1, stranger 2\): start a new run"
    ):
        check_fit(foreign, {})


def test_state_with_another_shape_is_refused(make: MakeEngine) -> None:
    engine = make(1)
    state = engine.state() | {"generator/generator/hidden/bias": np.zeros(7, np.float32)}
    with pytest.raises(
        CheckpointError,
        match=(
            r"generator/generator/hidden/bias has shape \(7,\), the run's \(128,\): start a new run"
        ),
    ):
        engine.load(state)
