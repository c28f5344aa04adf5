"""The clipped step on one, two and four replicas."""

from __future__ import annotations

import pytest

from tests.support.engines.claims import assert_clipped_steps_are_those_of_one_replica
from tests.support.engines.small_engines import MakeEngine

pytestmark = pytest.mark.usefixtures("cores")


def test_clipped_steps_on_two_and_four_replicas_match_one(make: MakeEngine) -> None:
    assert_clipped_steps_are_those_of_one_replica(make, (2, 4))
