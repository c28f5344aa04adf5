"""The JAX engine against the TensorFlow engine, case by case, and stored TensorFlow results against
current ones.
"""

from __future__ import annotations

import pytest

from tests.support.engines import golden
from tests.support.engines.golden.__main__ import trained
from tests.support.engines.jax_process import JaxProcess
from tests.support.engines.parity import LIVE, SMALL
from tests.support.engines.side_by_side import assert_engines_agree
from tests.support.engines.small_engines import assert_close, assert_moves_alike

pytestmark = pytest.mark.usefixtures(
    "cores", "with_the_guides"
)  # before TensorFlow initializes its devices


@pytest.mark.parametrize("case", list(LIVE))
def test_engines_train_alike_and_load_each_others_checkpoints(
    case: str, monkeypatch: pytest.MonkeyPatch, jax: JaxProcess
) -> None:
    assert_engines_agree(LIVE[case], jax, monkeypatch)


@pytest.mark.parametrize("case", [case for case in SMALL if case not in LIVE])
def test_stored_steps_match_tensorflow(case: str) -> None:
    stored, result = golden.read()[case], trained(SMALL[case])
    assert_close(result.begin, stored.begin, 0.0)
    assert_close(result.numbers, stored.numbers, 1e-4)
    assert_close(result.scores, stored.scores, 1e-4)
    begin = golden.with_begin(result.weights, result.begin)
    assert_moves_alike(begin, result.weights, stored.weights, 1e-3, SMALL[case].unmoved)
