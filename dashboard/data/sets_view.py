"""The data sets as cards, the progress of those in preparation, and how the last preparations
ended.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard import actions, data_summary, tables, widgets, words
from dashboard.frame import places
from dashboard.launch import fields as launch_fields
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import loading, prepared
from gan_runtime.data.contract import Availability
from gan_runtime.data.loading import DataSetInfo
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.hardware import machine
from gan_runtime.jobs import core_jobs, job_queue
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec, nesting
from gan_runtime.spec.presets import PRESETS

COLUMNS = 3
PICTURE_WIDTH = 240
LOOK_AGAIN_SECONDS = 10  # MNIST's files may appear while the page is open


def show(runtime: Runtime) -> None:
    """A card for each set; sets that a user prepared come first."""
    sets = sorted(
        loading.data_sets(runtime.home).values(), key=lambda known_set: not known_set.is_prepared
    )
    for begin in range(0, len(sets), COLUMNS):
        row = sets[begin : begin + COLUMNS]
        for column, known_set in zip(st.columns(COLUMNS, gap="small"), row, strict=False):
            with column.container(border=True, height="stretch"):
                _card(runtime, known_set)


def _card(runtime: Runtime, known_set: DataSetInfo) -> None:
    st.markdown(f"**{words.plain(known_set.title)}**")
    if known_set.problem:
        st.error(words.plain(known_set.problem), icon=":material/error:")
        _remove(runtime, known_set.name)
        return
    _picture(runtime.home, known_set)
    at_hand = _availability(runtime.home.path, known_set.name, known_set.is_prepared)
    rows = at_hand.images if isinstance(at_hand, Availability) else known_set.rows
    st.markdown(
        f"{formats.quantity(rows, data_summary.noun(known_set.fields))} ·"
        f" {data_summary.row(known_set.fields)}"
    )
    st.caption(words.plain(known_set.summary if isinstance(at_hand, Availability) else at_hand))
    if known_set.preparation is not None:
        data_summary.folded(known_set.rows, known_set.preparation, f"data.summary.{known_set.name}")
    with st.container(horizontal=True, gap="small"):
        if isinstance(at_hand, Availability):
            _train(known_set)
        if known_set.is_prepared:
            _remove(runtime, known_set.name)
        elif (
            isinstance(at_hand, Availability)
            and not at_hand.ready
            and known_set.name in PREPARATIONS
        ):
            _fetch(runtime, known_set.name)


def _picture(home: Home, known_set: DataSetInfo) -> None:
    """The first rows, if they can be read at once."""
    image: bytes | Path | None = embedded_rows(known_set.name)
    if known_set.is_prepared:
        image = actions.attempt(lambda: _first_rows(home.path, known_set.name, known_set.summary))
    if image is not None:
        st.image(
            image, width=PICTURE_WIDTH, alt=f"The first rows of {words.plain(known_set.name)}."
        )


def _train(known_set: DataSetInfo) -> None:
    """Opens Launch with the data set selected, and options that read it."""
    if st.button(
        "Train on it", key=f"data.train.{known_set.name}", icon=":material/rocket_launch:"
    ):
        preset, spec = starting_point(known_set.name, known_set.fields)
        launch_fields.fill_again(spec.flat(), preset)
        st.switch_page(places.LAUNCH)


def starting_point(dataset: str, offered: Fields) -> tuple[str, RunSpec]:
    """A preset and options that read these fields.

    The first preset that reads them unchanged; else the first workload that reads them, with its
    defaults fitted to the data and one of its presets; else the first preset.
    """
    for name in PRESETS:
        spec = RunSpec.parse(nesting.overlaid(machine.preset_values(name), {"dataset": dataset}))
        if loading.reads(spec.entry, spec.of_workload, offered):
            return name, spec
    changes: dict[str, Any] = {"dataset": dataset}
    for workload in loading.workloads_for(offered)[:1]:
        changes |= {"workload": workload, **catalog.WORKLOADS[workload].fitted(offered)}
    of_it = [
        name
        for name, preset in PRESETS.items()
        if preset.values["workload"] == changes.get("workload")
    ]
    name = next(iter(of_it or PRESETS))
    lost = nesting.own_options(changes["workload"]) if of_it else {}
    values = {
        option: value for option, value in machine.preset_values(name).items() if option not in lost
    }
    return name, RunSpec.parse(nesting.overlaid(values, changes))


def _fetch(runtime: Runtime, name: str) -> None:
    is_made = PREPARATIONS[name].makes_files
    way = "This host makes it." if is_made else "Keras downloads it into its cache."
    automatic = "makes" if is_made else "downloads"
    actions.button(
        "Make" if is_made else "Download",
        key=f"data.download.{name}",
        icon=":material/build:" if is_made else ":material/download:",
        help=f"{way} A run that needs it {automatic} it automatically.",
        on_click=_after_a_click(lambda: runtime.commands.prepare_data(name)),
    )


def _remove(runtime: Runtime, name: str) -> None:
    if actions.button(
        "Remove", key=f"data.remove.{name}", icon=":material/delete:", type="tertiary"
    ):
        _confirm(runtime, name)


@st.dialog("Remove this data set?")
def _confirm(runtime: Runtime, name: str) -> None:
    st.markdown(
        f"Deletes the files of **{words.plain(name)}**. Runs trained on it remain, but cannot"
        " resume without it."
    )
    if actions.button(
        "Remove for good", type="primary", icon=":material/delete:"
    ) and actions.succeeded(lambda: runtime.commands.remove_data(name)):
        st.rerun()


def _after_a_click(action: Callable[[], object]) -> Callable[[], None]:
    """A button callback; the next render shows a refusal."""
    return lambda: (actions.attempt(action), None)[1]


@st.cache_data(show_spinner=False, max_entries=50)
def _first_rows(home: Path, name: str, content: str) -> bytes | None:  # noqa: ARG001  (other content is another image)
    data_set = prepared.open_set(Home(home), name, resident_bytes=0)
    return prepared.png_of_rows(
        data_set.read(np.arange(min(prepared.FIRST_ROWS_COUNT, data_set.rows)))
    )


@st.cache_data(show_spinner=False, ttl=LOOK_AGAIN_SECONDS)
def _availability(home: Path, name: str, is_prepared: bool) -> Availability | str:  # noqa: ARG001  (a set prepared meanwhile is another one)
    """As `loading.availability`, or why the set cannot be used. Cached, because it reads MNIST's
    files.
    """
    try:
        return loading.availability(name, Home(home))
    except DatasetError as error:
        return str(error)


def embedded_rows(name: str) -> Path | None:
    """The image of a set inside scikit-learn, which is not loaded here; None for other sets."""
    path = Path(__file__).parent / f"{name}.png"
    return path if path.is_file() else None


MAKING = "data.making"  # the job that this browser tab requested
MOST_ENDED = 20
SECONDS = 1.0  # between two renders of a live image
MAKING_WIDTH = 576


def show_making(runtime: Runtime) -> None:
    """Progress of all current preparations, and the result of the one that this tab requested."""
    for look in job_queue.snapshots(runtime.home, core_jobs.PREPARE):
        if look.is_live:
            show_progress(runtime, look)
        elif look.job.job_id == st.session_state.get(MAKING):
            _outcome(runtime, look)
            del st.session_state[MAKING]  # reported once


def show_progress(runtime: Runtime, look: JobSnapshot) -> None:
    """The bar of a job, and below it the set so far, if the job draws it."""
    widgets.job_bar(runtime, look, _how_far, widgets.EndButton(f"data.cancel.{look.job.job_id}"))
    st.fragment(_picture_of_now, run_every=SECONDS)(look)


def show_ended(runtime: Runtime) -> None:
    """The last preparations and how they ended; nothing before the first."""
    looks = [
        look
        for look in job_queue.snapshots(runtime.home, core_jobs.PREPARE)
        if look.end is not None
    ][:MOST_ENDED]
    if not looks:
        return
    with st.expander("How the last preparations ended"):
        rows = [
            (
                look.job.job_id,
                core_jobs.name_of(look.request),
                look.request.asker,
                look.state,
                look.end.reason,
                look.end.at,
            )
            for look in looks
            if look.end is not None
        ]
        columns = ["Job", "Data set", "Requested by", "State", "Reason", "Ended"]
        tables.show(pd.DataFrame(rows, columns=columns), hide_index=True, key="data.ended")


def _picture_of_now(look: JobSnapshot) -> None:
    """The newest image of the set in preparation; redraws alone."""
    png = prepared.read_live_image(look.job.work)
    if png is not None:
        # A data URL: the server's own address would expire with the next image, before a slow
        # browser requests it.
        address = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
        st.image(address, width=MAKING_WIDTH, alt="The set being prepared.")


def _how_far(look: JobSnapshot) -> str:
    what = f"Data set {words.plain(core_jobs.name_of(look.request))}"
    if look.request.kind == core_jobs.SURVEY:
        what = "Preview"
    return f"{what}: {widgets.job_sentence(look)}"


def _outcome(runtime: Runtime, look: JobSnapshot) -> None:
    """How a preparation ended; for a new set also its summary."""
    name = words.plain(core_jobs.name_of(look.request))
    if look.end is None:
        return
    if look.state == "finished":
        result = look.end.result
        rows = formats.quantity(
            int(result.get("rows", 0)), data_summary.noun(result.get("fields", ()))
        )
        st.success(f"Data set {name} is ready: {rows}.", icon=":material/check_circle:")
        made_set = loading.data_sets(runtime.home).get(core_jobs.name_of(look.request))
        if made_set is not None and made_set.preparation is not None:
            data_summary.show(made_set.preparation, "data.made")
    elif look.state == "cancelled":
        st.info(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/info:")
    else:
        st.error(f"Data set {name}: {words.plain(look.end.reason)}", icon=":material/error:")
