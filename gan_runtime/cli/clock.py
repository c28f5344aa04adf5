"""Durations on the command line."""

from __future__ import annotations


def clock(seconds: float) -> str:
    """Hours only when there are any: 0:07, 12:30, 3:02:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
