"""Compiled steps on two replicas."""

from __future__ import annotations

import pytest

from tests.support.engines.small_engines import (
    MakeEngine,
    assert_close,
    trained,
)

pytestmark = pytest.mark.usefixtures("cores")


def test_compiled_steps_on_two_replicas_match_uncompiled_ones(make: MakeEngine) -> None:
    off, jit = make(2, xla="off"), make(2, xla="jit")
    assert_close(trained(jit, 1, 6), trained(off, 1, 6), 1e-4)
    assert_close(jit.state(), off.state(), 1e-4)
