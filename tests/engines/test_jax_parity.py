"""The JAX engine compared with the TensorFlow engine: stored TensorFlow steps, and one live case.

tests/full/engines/test_jax_parity.py runs more of them live.
"""

from __future__ import annotations

import pytest

from gan_runtime.workloads import dcgan_mnist
from tests.support.engines import golden
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.parity import PROBED, SMALL
from tests.support.engines.side_by_side import assert_engines_agree
from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    assert_moves_alike,
    random_images,
)

pytestmark = pytest.mark.usefixtures("cores")  # before TensorFlow starts its devices


@pytest.mark.parametrize("case", list(SMALL))
def test_jax_matches_the_stored_tensorflow_steps(case: str, jax: JaxProcess) -> None:
    stored = golden.read()[case]
    begin, numbers, state, scores = jax("trained_as_stored", case, stored.begin, case in PROBED)
    assert_close(numbers, stored.numbers, 1e-4)
    assert_moves_alike(begin, state, {**state, **stored.weights}, 1e-3, SMALL[case].unmoved)
    if case in PROBED:
        assert_close(scores, stored.scores, 1e-4)


def test_engines_train_alike_and_load_each_others_checkpoints(
    monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    assert_engines_agree(SMALL["rmsprop"], jax, monkeypatch)


def test_checkpoint_of_another_workload_is_refused(make: MakeEngine, jax: JaxProcess) -> None:
    why = jax("refused", random_images(40), make(1, dcgan_mnist.WORKLOAD).state())
    assert why.startswith(
        "CheckpointError: the checkpoint does not fit this run's networks and optimizers"
        " (differs in "
    )


def test_jax_process_does_not_load_tensorflow(jax: JaxProcess) -> None:
    assert jax("loaded") == []
