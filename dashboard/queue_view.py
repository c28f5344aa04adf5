"""The queue and its host: which runs wait in which order, what starts after what, and what occupies
each device for how long.

Users can change the order. Pages do not wait for the hardware check: they are drawn without it, and
again when it is done.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from functools import partial

import streamlit as st

from dashboard import actions, run_selection, target_job, widgets, words
from dashboard.frame import places
from gan_runtime import device_locks
from gan_runtime.base import formats
from gan_runtime.base.errors import DeviceLockError, GanRuntimeError, UnknownRunError
from gan_runtime.commands.queue import Direction
from gan_runtime.commands.runtime import Runtime
from gan_runtime.device_locks import Occupancy
from gan_runtime.hardware.hosts import Host
from gan_runtime.records.states import WAITS_FOR_A_RUN
from gan_runtime.spec.run_options import HERE
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow
from gan_runtime.supervision.admission import Dependency

HELP = (
    "Each device trains one run at a time, across all dashboards of this host. The others wait"
    " here, in this order."
)
MOVES: tuple[tuple[Direction, str, str, str], ...] = (
    ("up", "Up", ":material/arrow_upward:", "Move up."),
    ("down", "Down", ":material/arrow_downward:", "Move down."),
    ("next", "Next", ":material/vertical_align_top:", "Move to the front of the queue."),
)


def show(runtime: Runtime) -> None:
    """The waiting runs with buttons to change their order; without any, devices used by other
    homes.
    """
    items = queries.queue_items(runtime.store)
    if not items:
        show_other_homes(runtime)
        return
    st.header(f"Queue ({len(items)})", help=HELP)
    show_devices(runtime)
    titles = {study.study_id: study for study in queries.studies(runtime.store)}
    for place, group in enumerate(items):
        _group(runtime, place, group, len(items), titles.get(group[0].study_id or ""))


def _group(
    runtime: Runtime, place: int, group: list[RunRow], count: int, study: StudyRow | None
) -> None:
    first = group[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        sentence = (
            _study_line(study, group)
            if study
            else f"{first.name} · {run_selection.settings(first)}"
        )
        widgets.state("queued", f"{place + 1}. {sentence}")
        for direction, label, icon, help_text in MOVES:
            at_the_end = place == count - 1 if direction == "down" else place == 0
            actions.button(
                label,
                key=f"{direction}.{first.run_id}",
                icon=icon,
                type="tertiary",
                help=help_text,
                disabled=at_the_end,
                on_click=_move,
                args=(runtime, first.run_id, direction),
            )
        change_after(runtime, group)
        if actions.button(
            "Remove", key=f"remove.{first.run_id}", icon=":material/close:", type="tertiary"
        ):
            actions.succeeded(partial(runtime.commands.stop_all, [row.run_id for row in group]))
        if first.reason_code in WAITS_FOR_A_RUN or first.target != HERE:
            st.caption(words.plain(words.capitalized(first.note)))
            target_job.show(runtime, first)
        if study:
            st.page_link(places.STUDIES, label="Open study", query_params={"study": study.study_id})


def _move(runtime: Runtime, run_id: str, direction: Direction) -> None:
    """Moves a run before the page is redrawn, so that the new order shows at once."""
    try:
        items = queries.queue_items(runtime.store)
        runtime.commands.move_in_queue(
            run_id, direction, [[row.run_id for row in group] for group in items]
        )
    except GanRuntimeError as error:  # it has started meanwhile
        st.toast(words.plain(str(error)), icon=":material/error:")


def _study_line(study: StudyRow, waiting: list[RunRow]) -> str:
    return (
        f"Study: {study.title} · {len(waiting)} of its {study.runs} runs wait · next"
        f" {waiting[0].name}"
    )


IN_ITS_TURN = ""
AFTER_AT_LAUNCH = "launch"  # the key of the choice on Launch
AFTER_HELP = (
    "The run keeps its place in the queue and starts once the other run has ended in any way. A"
    " lost run that resumes automatically has not ended."
)
ONLY_HELP = (
    "If the other run is stopped, failed, lost or deleted, this one keeps waiting. Resume that run,"
    " or remove the condition."
)


def after_choice(runtime: Runtime, key: str, without: Collection[str] = ()) -> Dependency | None:
    """The run to wait for; no choice is drawn while no other run waits or trains.

    `without`: runs that cannot be waited for.
    """
    live = {
        row.run_id: row
        for row in queries.runs(runtime.store)
        if row.is_live and row.run_id not in without
    }
    if not live:
        return None
    filled: Dependency | None = st.session_state.get(f"after.filled.{key}")
    options = [IN_ITS_TURN, *live]
    selection = st.selectbox(
        "Start after",
        options,
        options.index(filled.run_id) if filled and filled.run_id in live else 0,
        format_func=lambda run_id: _option(live.get(run_id)),
        key=f"after.{key}",
        help=AFTER_HELP,
    )
    if selection == IN_ITS_TURN:
        return None
    only = st.checkbox(
        "Only if it finishes",
        filled is not None and filled.condition == "finished",
        key=f"after.only.{key}",
        help=ONLY_HELP,
    )
    return Dependency(str(selection), "finished" if only else "ended")


def fill_after(key: str, after: Dependency | None) -> None:
    """Sets what `after_choice` shows first, if that run still waits or trains. To be called on
    another page.
    """
    st.session_state[f"after.filled.{key}"] = after


def change_after(runtime: Runtime, group: list[RunRow]) -> None:
    """The choice for waiting runs, behind a button, so that the queue stays short."""
    first, run_ids = group[0], [row.run_id for row in group]
    with st.popover("After", icon=":material/hourglass_top:", type="tertiary"):
        after = after_choice(runtime, first.run_id, run_ids)
        if actions.button("Set", key=f"set_after.{first.run_id}"):
            actions.succeeded(lambda: runtime.commands.start_after(run_ids, after))
        st.caption(words.plain(words.capitalized(first.note)))


def _option(row: RunRow | None) -> str:
    if row is None:
        return "no other run"
    return (
        f"{row.name} ({row.run_id}), {row.status}"
        if row.name != row.run_id
        else f"{row.name}, {row.status}"
    )


def show_devices(runtime: Runtime) -> None:
    """All devices in a line."""
    occupancies = _occupancies()
    if occupancies:
        st.caption(" · ".join(occupancy_text(runtime, occupancy) for occupancy in occupancies))


def show_occupied(runtime: Runtime) -> None:
    """Only occupied devices."""
    for occupancy in _occupancies():
        if occupancy.holder:
            st.caption(f":material/lock: {occupancy_text(runtime, occupancy)}")


def show_other_homes(runtime: Runtime) -> None:
    """Only devices occupied by other homes."""
    occupancies = [
        occupancy
        for occupancy in _occupancies()
        if occupancy.holder and not occupancy.is_of(runtime.home.path.resolve())
    ]
    if occupancies:
        st.caption(" · ".join(occupancy_text(runtime, occupancy) for occupancy in occupancies))


def occupancy_text(runtime: Runtime, occupancy: Occupancy, moment: datetime | None = None) -> str:
    """For example "CPU: taken by run quick-0007 for 12 m 04 s", as Markdown."""
    label = words.plain(occupancy.device.label)
    if occupancy.holder is None:
        return f"{label}: free"
    whose = device_locks.holder_text(occupancy.holder, runtime.home.path.resolve())
    since, time_left = _since(occupancy.holder.since, moment), _time_left(runtime, occupancy)
    return f"{label}: taken by {words.plain(whose)}{since}{time_left}"


def _since(since: datetime | None, moment: datetime | None) -> str:
    if since is None:
        return ""
    seconds = ((moment or datetime.now(UTC)) - since).total_seconds()
    return f" for {formats.duration(max(0.0, seconds))}"


def _time_left(runtime: Runtime, occupancy: Occupancy) -> str:
    """The time left of a run of this home, if known."""
    if occupancy.holder is None or not occupancy.is_of(runtime.home.path.resolve()):
        return ""
    try:
        seconds = queries.progress(runtime.store, occupancy.holder.run_id).seconds_left
    # Deleted while its last process ends, or its journals are not read yet.
    except UnknownRunError:
        return ""
    return "" if seconds is None else f", {formats.duration(seconds)} left"


def _occupancies() -> list[Occupancy]:
    try:
        return device_locks.occupancies()
    except DeviceLockError as error:
        st.warning(words.plain(str(error)), icon=":material/lock:")
        return []


PATIENCE_S = 0.1  # so that a page is drawn once if the answer is about to come
CHECK_S = 0.5


def known_host(runtime: Runtime) -> Host | None:
    """The host.

    None while the check runs, or if it failed; the page then says so.
    """
    if runtime.host_probe.has_ended(PATIENCE_S):
        return actions.attempt(runtime.host)
    _redraw_when_known(runtime)
    return None


@st.fragment(run_every=CHECK_S)
def _redraw_when_known(runtime: Runtime) -> None:
    if runtime.host_probe.has_ended(0.0):
        st.rerun()
    st.caption(":material/hourglass: Detecting hardware …")
