"""Engines of toy networks, and a process with JAX, for tests of engines and workloads."""
