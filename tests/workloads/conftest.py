"""Fixtures for the networks of all workloads."""

from __future__ import annotations

import pytest


@pytest.fixture
def plain_float32() -> None:
    """New layers compute in float32 and start from the same weights in every test."""
    import keras

    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy("float32")
