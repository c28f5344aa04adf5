"""Tests of `make test` that may take longer than the others, each with the reason; at most MOST."""

from __future__ import annotations

MOST = 25
REASONS: dict[str, str] = {}
