"""What a trainer tells of itself in process.json, and how such a file is read that may be torn, old or written by hand."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from gan_runtime.records.columns import Attempt, Rank

Pid = Annotated[int, Field(ge=1, le=2**31 - 1)]  # 0 and negative numbers would name groups of processes


# Seconds since 1970, within what a date can hold: no NaN and no 1e300.
Started = Annotated[float, Field(ge=0, le=1e10)]


class _Process(BaseModel):
    pid: Pid
    started: Started
    born: str = ""  # see processes.identity; missing in files from before it


class _Worker(_Process):
    rank: Rank


class _Introduction(_Process):
    attempt: Attempt
    workers: list[_Worker] = []
    cluster_host: str | None = None


def read(content: bytes) -> dict[str, Any] | None:
    """The keys that RunDir.process describes; None when the file holds anything else."""
    try:
        return _Introduction.model_validate_json(content, strict=True).model_dump(exclude_unset=True)
    except ValidationError:
        return None
