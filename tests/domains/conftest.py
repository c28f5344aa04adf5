"""Domain workloads use the fixtures of the core workloads."""

from tests.workloads.conftest import plain_float32

__all__ = ["plain_float32"]
