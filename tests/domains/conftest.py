"""Workloads of domains are tested as those of the core."""

from tests.workloads.conftest import plain_float32

__all__ = ["plain_float32"]
