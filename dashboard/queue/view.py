"""The queue in its order, which people change by hand."""

from __future__ import annotations

from functools import partial

import streamlit as st

from dashboard import actions, run_selection, widgets, words
from dashboard.frame import places
from dashboard.queue import after_view, devices_view
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.queue import Way
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.reasons import WAITS_FOR_A_RUN
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, StudyRow

HELP = "A device has one training at a time, whichever dashboard of this host started it; the others wait here in this order."
WAYS: tuple[tuple[Way, str, str, str], ...] = (
    ("up", "Up", ":material/arrow_upward:", "Before the one above it."),
    ("down", "Down", ":material/arrow_downward:", "Behind the one below it."),
    ("next", "Next", ":material/vertical_align_top:", "To the front: it is the next one."),
)


def show(runtime: Runtime) -> None:
    """What waits, with the buttons that change it; nothing while nothing waits and no other home has a device."""
    items = queries.queue_items(runtime.store)
    if not items:
        devices_view.of_other_homes(runtime)
        return
    st.header(f"Queue ({len(items)})", help=HELP)
    devices_view.show(runtime)
    titles = {study.study_id: study for study in queries.studies(runtime.store)}
    for place, item in enumerate(items):
        _item(runtime, place, item, len(items), titles.get(item[0].study_id or ""))


def _item(runtime: Runtime, place: int, item: list[RunRow], count: int, study: StudyRow | None) -> None:
    first = item[0]
    with st.container(horizontal=True, vertical_alignment="center"):
        told = _study_line(study, item) if study else f"{first.name} · {run_selection.settings(first)}"
        widgets.state("queued", f"{place + 1}. {told}")
        for way, label, icon, told_of in WAYS:
            at_the_end = place == count - 1 if way == "down" else place == 0
            actions.button(
                label,
                key=f"{way}.{first.run_id}",
                icon=icon,
                type="tertiary",
                help=told_of,
                disabled=at_the_end,
                on_click=_move,
                args=(runtime, first.run_id, way),
            )
        after_view.change(runtime, item)
        if actions.button("Remove", key=f"remove.{first.run_id}", icon=":material/close:", type="tertiary"):
            actions.succeeded(partial(runtime.commands.stop_all, [row.run_id for row in item]))
        if first.reason_code in WAITS_FOR_A_RUN:
            st.caption(words.plain(words.capitalized(first.note)))
        if study:
            st.page_link(places.STUDIES, label="Open study", query_params={"study": study.study_id})


def _move(runtime: Runtime, run_id: str, way: Way) -> None:
    """Before the page is drawn again, so that it shows the new order at once."""
    try:
        items = queries.queue_items(runtime.store)
        runtime.commands.move_in_queue(run_id, way, [[row.run_id for row in item] for item in items])
    except GanRuntimeError as error:  # it has started meanwhile
        st.toast(words.plain(str(error)), icon=":material/error:")


def _study_line(study: StudyRow, waiting: list[RunRow]) -> str:
    return f"Study: {study.title} · {len(waiting)} of its {study.runs} runs wait · next {waiting[0].name}"
