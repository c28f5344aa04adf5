"""What every record of a journal has: its attempt and its moment. Times are UTC."""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field

from gan_runtime.records.columns import Attempt, UtcTime


def now() -> datetime:
    """The present in UTC."""
    return datetime.now(UTC)


class Entry(BaseModel):
    """`attempt`: the one that it belongs to, from 1. `at`: when it was written."""

    # NaN must survive the way to the store: a loss that became NaN is a fact worth keeping.
    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")
    attempt: Attempt = 1
    at: UtcTime = Field(default_factory=lambda: now())


def agree(*lists: list[float] | list[int]) -> None:
    """Raises ValueError when some lists of a record are of different lengths."""
    if len({len(numbers) for numbers in lists}) > 1:
        raise ValueError("its lists must be of one length")
