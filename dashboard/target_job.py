"""The job of a run on a target, in words: nodes, expected start, end of its time limit."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from dashboard import words
from gan_runtime.commands.runtime import Runtime
from gan_runtime.spec.run_options import HERE
from gan_runtime.store.queries import RunRow


def show(runtime: Runtime, row: RunRow) -> None:
    """A line, if there is something to say."""
    if line := _line(runtime, row):
        st.caption(words.plain(words.capitalized(line)))


def _line(runtime: Runtime, row: RunRow) -> str:
    if row.target == HERE or runtime.targets is None:
        return ""
    known = runtime.targets.job_of(runtime.home.run_dir(row.run_id))
    parts: list[str] = []
    if known is not None and known.submission.is_over:
        parts += [_job(known.submission.job, known.submission.nodes)]
    elif known is not None and (seen := known.seen) is not None:
        if seen.stage == "waiting":
            parts += [f"expected start {_at(seen.starts_at)}" if seen.starts_at else ""]
        else:
            parts += [_job(seen.job, seen.nodes)]
        if seen.stage == "running" and seen.state != "RUNNING":
            parts += [seen.state.lower()]  # such as suspended, or completing
        if seen.stage == "running" and seen.ends_at:
            parts += [f"time limit at {_at(seen.ends_at)}"]
    parts += [runtime.targets.trouble(row.target)]
    return " · ".join(filter(None, parts))


def _job(job: str, nodes: str) -> str:
    return f"job {job} · nodes {nodes}" if nodes else f"job {job}"


def _at(time: datetime) -> str:
    zone = words.known_zone(st.context.timezone)
    return f"{time.astimezone(zone):%Y-%m-%d %H:%M} ({zone.key})"
