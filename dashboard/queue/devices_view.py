"""What occupies each device of this host, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime

import streamlit as st

from dashboard import words
from gan_runtime import device_locks
from gan_runtime.base.errors import DeviceLockError, UnknownRunError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.device_locks import Occupancy
from gan_runtime.store import queries


def show(runtime: Runtime) -> None:
    """A line for all devices."""
    found = _looks()
    if found:
        st.caption(" · ".join(in_words(runtime, look) for look in found))


def taken(runtime: Runtime) -> None:
    """Only what has a device."""
    for look in _looks():
        if look.holder:
            st.caption(f":material/lock: {in_words(runtime, look)}")


def of_other_homes(runtime: Runtime) -> None:
    """Only what has a device and is not seen elsewhere on the page."""
    others = [look for look in _looks() if look.holder and not look.is_of(runtime.home.path.resolve())]
    if others:
        st.caption(" · ".join(in_words(runtime, look) for look in others))


def in_words(runtime: Runtime, look: Occupancy, moment: datetime | None = None) -> str:
    """Such as "CPU: run quick-0007 trains on it for 12 m 04 s", as Markdown."""
    label = words.plain(look.device.label)
    if look.holder is None:
        return f"{label}: free"
    whose = device_locks.whose(look.holder, runtime.home.path.resolve())
    return f"{label}: taken by {words.plain(whose)}{_since(look.holder.since, moment)}{_left(runtime, look)}"


def _since(since: datetime | None, moment: datetime | None) -> str:
    if since is None:
        return ""
    return f" for {words.duration(max(0.0, ((moment or datetime.now(UTC)) - since).total_seconds()))}"


def _left(runtime: Runtime, look: Occupancy) -> str:
    """How long a run of this home goes on, as far as that is known."""
    if look.holder is None or not look.is_of(runtime.home.path.resolve()):
        return ""
    try:
        seconds = queries.progress(runtime.store, look.holder.run_id).seconds_left
    except UnknownRunError:  # deleted while its last process ends, or its journals are still to be read
        return ""
    return "" if seconds is None else f", {words.duration(seconds)} left"


def _looks() -> list[Occupancy]:
    try:
        return device_locks.occupancies()
    except DeviceLockError as error:
        st.warning(words.plain(str(error)), icon=":material/lock:")
        return []
