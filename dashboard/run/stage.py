"""The stage: one or two runs for an audience, with large images, losses and a sentence.

It follows the newest epoch, and without runs in the address the newest run. Arrow keys step through
the epochs, the space bar plays them; training continues meanwhile.
"""

from __future__ import annotations

import streamlit as st

from dashboard import run_selection, widgets, words
from dashboard.frame import places
from dashboard.run import overview
from dashboard.samples import players, sample_images
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.journal import ACTIVE
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow
from gan_runtime.store.store import Store

KEY = "stage"
MOST_RUNS, LIVE_SECONDS = 2, 2.0
HEIGHTS = {1: 460, 2: 130}  # pixels of the losses, by the number of runs
NOTHING = "No run is stored yet. The stage shows the newest one as soon as it trains."


def show(runtime: Runtime) -> None:
    """The page."""
    rows = _rows(runtime.store)
    run_ids = [row.run_id for row in rows]
    playing = players.is_playing(_key(run_ids))
    every = players.PLAY_SECONDS if playing else LIVE_SECONDS
    with st.container(key=KEY), st.container(key=f"{KEY}_{len(rows)}"):
        st.fragment(_draw, run_every=every)(runtime.store, run_ids, playing)
    with st.container(key=f"{KEY}_leave"):
        if st.button("Leave", shortcut="Esc", type="tertiary"):
            page, query = places.of_runs(run_ids, "overview") if rows else (places.HOME, {})
            st.switch_page(page, query_params=query)


def _rows(store: Store) -> list[RunRow]:
    """The runs of the address; else the one that trains, or the newest."""
    stored = {row.run_id: row for row in run_selection.runs(store, widgets.address_runs())}
    rows = [stored[run_id] for run_id in widgets.address_runs() if run_id in stored]
    newest = sorted(
        stored.values(), key=lambda row: (row.status not in ACTIVE, row.status == "queued")
    )[:1]
    return rows[:MOST_RUNS] or newest


def _draw(store: Store, run_ids: list[str], timed: bool) -> None:
    """`timed`: whether the fragment's timer is the player's."""
    rows, key = _rows(store), _key(run_ids)
    if [row.run_id for row in rows] != run_ids or players.is_playing(key) != timed:
        st.rerun()  # the page draws another run, or sets another timer
    if not rows:
        st.info(NOTHING)
        return
    epochs = [max(queries.sample_epochs(store, [row.run_id]), default=1) for row in rows]
    columns = st.columns(len(rows), gap="large")
    _keys(rows, key, max(epochs))
    epoch = players.epoch_without_slider(key, max(epochs))
    for column, row in zip(columns, rows, strict=True):
        with column:
            _run(store, row, epoch, len(rows))


def _run(store: Store, row: RunRow, epoch: int, runs: int) -> None:
    """The images next to the losses of one run, or above them for two."""
    images, facts = st.columns([1, 1], gap="large" if runs == 1 else "small")
    with images:
        kind = next(iter(queries.sample_kinds(store, [row.run_id])), "")
        shown = queries.sample(store, row.run_id, epoch, kind)
        sample_images.show(store, row, epoch, kind, caption=False)
    with facts:
        st.title(words.plain(row.name), anchor=False)
        st.subheader(
            f"Epoch {shown.epoch if shown else min(epoch, row.epochs)} of {row.epochs}",
            anchor=False,
        )
        verdict = queries.verdicts(store, (row.run_id,)).get(row.run_id, widgets.NO_VERDICT)
        widgets.state(row.status, "", verdict)
    with facts if runs == 1 else st.container():
        overview.losses(store, row, HEIGHTS[runs], f"{KEY}_losses.{row.run_id}")


def _key(run_ids: list[str]) -> str:
    return f"{KEY}.{'+'.join(run_ids)}"


def _keys(rows: list[RunRow], key: str, newest: int) -> None:
    """The buttons, with the keys of the keyboard that press them."""
    with st.container(horizontal=True, horizontal_alignment="center", key=f"{KEY}_keys"):
        for label, shortcut, by in (("Back", "Left", -1), ("Next", "Right", 1)):
            arguments = key, by, newest
            st.button(
                label, shortcut=shortcut, on_click=players.step, args=arguments, type="tertiary"
            )
        players.play_button(key, newest, shortcut="Space")
        is_live = any(row.is_live for row in rows)
        widgets.follow_button(key, live=is_live and not players.is_playing(key))
