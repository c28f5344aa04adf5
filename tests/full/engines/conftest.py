"""Fixtures of the engine tests."""

from tests.support.engines.engine_fixtures import (
    as_on_gpus,
    exchange,
    make,
    new_group,
    with_the_guides,
)

__all__ = ["as_on_gpus", "exchange", "make", "new_group", "with_the_guides"]
