"""Asking for a rollout, and how far it is."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import streamlit as st

from dashboard import actions, change_buttons, job_bar, widgets, words
from dashboard.domains.flows import words as flow_words
from dashboard.job_bar import EndButton
from gan_runtime.commands import commands
from gan_runtime.domains.flows import iterate_requests
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.rollout_request import USUAL_BLEND, Wanted, usual_overlap, usual_steps
from gan_runtime.engines.tiling.ways import BLENDS, WAYS
from gan_runtime.jobs.folder import JobLook
from gan_runtime.store.queries import RunRow
from gan_runtime.supervision.runtime import Runtime
from gan_runtime.training.checkpoints import Which

STOP = EndButton("flow.stop", "Stop", "stopping …")
CORES = (1, 2, 4, 8)
MOST_OVERLAP = 256
STATES: dict[str, str] = {"newest": "Newest checkpoint", "best": "Best checkpoint"}
BLENDING = {"none": "Mean", "hann": "Hann"}


def measure(runtime: Runtime, rows: list[RunRow], is_first: bool) -> None:
    """A short form, the job under way, or why the last one failed. `is_first`: nothing is shown yet, so its button is the page's."""
    there = {row.run_id: iterate_requests.iterable(runtime.home, row.run_id) for row in rows}
    names = {row.run_id: widgets.title(row) for row in rows if there[row.run_id]}
    if not names:
        st.caption(flow_words.NO_CHECKPOINT)
        return
    looks = {run_id: iterate_requests.newest_iteration(runtime.home, run_id) for run_id in names}
    under_way = ((run_id, look) for run_id, look in looks.items() if look is not None and look.is_live)
    busy, busy_look = next(under_way, ("", None))
    if busy_look is not None:
        job_bar.show(runtime, busy_look, partial(_told, names[busy]), STOP)
        return
    wanted, pressed = _form(runtime, names, there, is_first)
    if wanted is None:
        st.caption(flow_words.NO_DATA)
        return
    look = looks[wanted.run_id]
    if look is not None and look.end is not None and look.state not in ("finished", "cancelled"):
        st.warning(f"Not iterated: {words.plain(look.end.reason)}", icon=":material/warning:")
    if (
        pressed
        and actions.attempt(lambda: commands.iterate(runtime.home, wanted, asker=runtime.asker)) is not None
    ):
        st.rerun()


def _form(
    runtime: Runtime, names: dict[str, str], there: dict[str, tuple[Which, ...]], is_first: bool
) -> tuple[Wanted | None, bool]:
    """What stands in it, and whether its button was pressed; None where there is no flow to begin with."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run_id = next(iter(names))
        if len(names) > 1:
            run_id = st.selectbox(
                "Run", list(names), format_func=names.__getitem__, key="flow.iterated", width=200
            )
        films = iterate_requests.trajectories(runtime.home, runtime.home.run_dir(run_id))
        flows = [film for film in films if film.reynolds is not None]
        if not flows:
            return None, False
        kept = iterate_requests.epochs(runtime.home, run_id)
        begun = _begin(_state(run_id, there[run_id], kept), flows)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        wanted = _division(begun, iterate_requests.tile_of(runtime.home.run_dir(run_id)))
        pressed = change_buttons.button(
            "Run rollout",
            key="flow.start",
            type="primary" if is_first else "secondary",
            icon=":material/repeat:",
        )
    return wanted, pressed


def _state(run_id: str, there: tuple[Which, ...], kept: list[int]) -> Wanted:
    """Of which weights: a checkpoint's, or those that were kept after an epoch, the last one first."""
    wanted = [Wanted(run_id, checkpoint) for checkpoint in sorted(there, key=list(STATES).index)]
    known = {each.state: each for each in (*wanted, *(Wanted(run_id, epoch=epoch) for epoch in kept[::-1]))}
    picked = st.selectbox(
        "Of",
        list(known),
        format_func=lambda state: STATES.get(state) or flow_words.after(known[state].epoch),
        key=f"flow.state.{run_id}",
        width=190,
        help=flow_words.STATES_HELP if kept else None,
    )
    return known[picked]


def _begin(wanted: Wanted, flows: list[Film]) -> Wanted:
    """Which of the held-out flows, how many steps, on how many cores."""
    place = st.selectbox(
        "Flow",
        range(len(flows)),
        format_func=lambda place: flows[place].title,
        key=f"flow.trajectory.{wanted.run_id}.{len(flows)}",
        width=190,
        help="Flows that the model was not trained on.",
    )
    most = flows[place].steps
    steps = st.number_input(
        "Steps", 1, most, usual_steps(most), 1, key=f"flow.steps.{wanted.run_id}.{most}", width=120,
        help=f"How often the model is fed with its own frame: 1 to {most}, as many frames follow the given one.",
    )  # fmt: skip
    cores = st.selectbox(
        "Cores", CORES, key="flow.cores", width=90, help="That share the tiles; simulated ones on this host."
    )
    return replace(wanted, trajectory=flows[place].number, steps=int(steps), cores=cores)


def _division(wanted: Wanted, tile: int | None) -> Wanted:
    """In which ways, and how the frame is cut. `tile`: side of the network's tiles, where it has some."""
    ways = st.pills(
        "Ways",
        WAYS,
        selection_mode="multi",
        default=wanted.ways,
        format_func=lambda way: words.capitalized(flow_words.WAYS[way]),
        key="flow.ways",
        help=flow_words.WAYS_HELP,
    )
    most = MOST_OVERLAP if tile is None else tile - 1
    overlap = st.number_input(
        "Overlap (px)",
        0,
        most,
        usual_overlap(tile),
        1,
        key=f"flow.overlap.{most}",
        width=120,
        help=flow_words.OVERLAP_HELP,
    )
    blend = st.segmented_control(
        "Blending",
        BLENDS,
        default=USUAL_BLEND,
        format_func=BLENDING.__getitem__,
        key="flow.blend",
        required=True,
        help=flow_words.BLEND_HELP,
    )
    return replace(wanted, ways=tuple(ways), overlap=int(overlap), blend=blend)


def _told(name: str, look: JobLook) -> str:
    return f"Iterating {words.plain(name)}: {job_bar.now(look)}"
