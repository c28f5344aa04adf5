"""When this ends, start that: chosen before a run is started, and changed while it waits."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

from dashboard import actions, words
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.dependencies import After

IN_ITS_TURN = ""
LAUNCH = "launch"  # the key of the choice there
HELP = (
    "The run keeps its place in the queue and starts in its turn, but not before that other run has ended: finished, stopped, failed, lost or "
    "deleted. A lost run that is resumed by itself has not ended."
)
ONLY_HELP = "If that other run is stopped, failed, lost or deleted, this one keeps waiting until somebody resumes that one or lets this one go."


def choice(runtime: Runtime, key: str, without: Collection[str] = ()) -> After | None:
    """What a run is to wait for; nothing is asked while no other run waits or trains. `without`: runs that cannot be waited for."""
    live = {
        row.run_id: row for row in queries.runs(runtime.store) if row.is_live and row.run_id not in without
    }
    if not live:
        return None
    chosen = st.selectbox(
        "Start after",
        [IN_ITS_TURN, *live],
        format_func=lambda run_id: _option(live.get(run_id)),
        key=f"after.{key}",
        help=HELP,
    )
    if chosen == IN_ITS_TURN:
        return None
    only = st.checkbox("Only if it finishes", key=f"after.only.{key}", help=ONLY_HELP)
    return After(str(chosen), "finished" if only else "ended")


def fill(runtime: Runtime, key: str, after: After | None) -> None:
    """Lets `choice` begin with that, unless the run before has ended by now: then there is nothing to wait for."""
    is_open = after is not None and any(
        row.is_live and row.run_id == after.run_id for row in queries.runs(runtime.store)
    )
    st.session_state[f"after.{key}"] = after.run_id if after and is_open else IN_ITS_TURN
    st.session_state[f"after.only.{key}"] = bool(after and is_open and after.condition == "finished")


def change(runtime: Runtime, item: list[RunRow]) -> None:
    """For what waits: behind a button, so that the queue stays short."""
    first, run_ids = item[0], [row.run_id for row in item]
    with st.popover("After", icon=":material/hourglass_top:", type="tertiary"):
        after = choice(runtime, first.run_id, run_ids)
        if actions.button("Set", key=f"set_after.{first.run_id}"):
            actions.succeeded(lambda: runtime.commands.start_after(run_ids, after))
        st.caption(words.plain(words.capitalized(first.note)))


def _option(row: RunRow | None) -> str:
    if row is None:
        return "no other run: in its turn"
    return (
        f"{row.name} ({row.run_id}), {row.status}" if row.name != row.run_id else f"{row.name}, {row.status}"
    )
