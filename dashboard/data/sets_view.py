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
IMAGE_WIDTH = 240
CHECK_SECONDS = 10  # MNIST's files may appear while the page is open


def show(runtime: Runtime) -> None:
    """A card for each set; sets that a user prepared come first."""
    sets = sorted(
        loading.data_sets(runtime.home).values(), key=lambda data_set: not data_set.is_prepared
    )
    for begin in range(0, len(sets), COLUMNS):
        row = sets[begin : begin + COLUMNS]
        for column, data_set in zip(st.columns(COLUMNS, gap="small"), row, strict=False):
            with column.container(border=True, height="stretch"):
                _card(runtime, data_set)


def _card(runtime: Runtime, data_set: DataSetInfo) -> None:
    st.markdown(f"**{words.plain(data_set.title)}**")
    if data_set.problem:
        st.error(words.plain(data_set.problem), icon=":material/error:")
        _remove(runtime, data_set.name)
        return
    _image(runtime.home, data_set)
    available = _availability(runtime.home.path, data_set.name, data_set.is_prepared)
    rows = available.images if isinstance(available, Availability) else data_set.rows
    st.markdown(
        f"{formats.quantity(rows, data_summary.noun(data_set.fields))} ·"
        f" {data_summary.row(data_set.fields)}"
    )
    st.caption(words.plain(data_set.summary if isinstance(available, Availability) else available))
    if data_set.preparation is not None:
        data_summary.expander(data_set.rows, data_set.preparation, f"data.summary.{data_set.name}")
    with st.container(horizontal=True, gap="small"):
        if isinstance(available, Availability):
            _train(data_set)
        if data_set.is_prepared:
            _remove(runtime, data_set.name)
        elif (
            isinstance(available, Availability)
            and not available.ready
            and data_set.name in PREPARATIONS
        ):
            _fetch(runtime, data_set.name)


def _image(home: Home, data_set: DataSetInfo) -> None:
    """The first rows, if they can be read at once."""
    image: bytes | Path | None = embedded_rows(data_set.name)
    if data_set.is_prepared:
        image = actions.attempt(lambda: _first_rows(home.path, data_set.name, data_set.summary))
    if image is not None:
        st.image(image, width=IMAGE_WIDTH, alt=f"The first rows of {words.plain(data_set.name)}.")


def _train(data_set: DataSetInfo) -> None:
    """Opens Launch with the data set selected, and options that read it."""
    if st.button("Train on it", key=f"data.train.{data_set.name}", icon=":material/rocket_launch:"):
        preset, spec = starting_point(data_set.name, data_set.fields, data_set.rows)
        launch_fields.fill_from_run(spec.flat(), preset)
        st.switch_page(places.LAUNCH)


def starting_point(dataset: str, offered: Fields, rows: int) -> tuple[str, RunSpec]:
    """A preset and options that read these fields, with as many epochs as show about as many rows
    as the preset sees on its own data set.
    """
    preset, spec = _preset_for(dataset, offered)
    values = spec.flat()
    fitted = {"epochs": loading.fitted_epochs(preset, spec.epochs, rows)}
    if values["restart_epochs"] == spec.epochs:  # the rates fall once, until the end
        fitted["restart_epochs"] = fitted["epochs"]
    return preset, RunSpec.parse({**values, **fitted})


def _preset_for(dataset: str, offered: Fields) -> tuple[str, RunSpec]:
    """The first preset that reads the fields unchanged; else the first workload that reads them,
    with its defaults fitted to the data and one of its presets; else the first preset.
    """
    for name in PRESETS:
        spec = RunSpec.parse(nesting.overlaid(machine.preset_values(name), {"dataset": dataset}))
        if loading.reads(spec.entry, spec.of_workload, offered):
            return name, spec
    changes: dict[str, Any] = {"dataset": dataset}
    for workload in loading.workloads_for(offered)[:1]:
        changes |= {"workload": workload, **catalog.WORKLOADS[workload].fitted(offered)}
    presets_of_workload = [
        name
        for name, preset in PRESETS.items()
        if preset.values["workload"] == changes.get("workload")
    ]
    name = next(iter(presets_of_workload or PRESETS))
    own_options = nesting.own_options(changes["workload"]) if presets_of_workload else {}
    values = {
        option: value
        for option, value in machine.preset_values(name).items()
        if option not in own_options
    }
    return name, RunSpec.parse(nesting.overlaid(values, changes))


def _fetch(runtime: Runtime, name: str) -> None:
    is_made = PREPARATIONS[name].makes_files
    way = "This host simulates it." if is_made else "Keras downloads it into its cache."
    automatic = "prepares" if is_made else "downloads"
    actions.button(
        "Prepare" if is_made else "Download",
        key=f"data.download.{name}",
        icon=":material/build:" if is_made else ":material/download:",
        help=f"{way} A run that needs it {automatic} it automatically.",
        on_click=_callback(lambda: runtime.commands.prepare_data(name)),
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


def _callback(action: Callable[[], object]) -> Callable[[], None]:
    """A button callback; the next render shows a refusal."""
    return lambda: (actions.attempt(action), None)[1]


@st.cache_data(show_spinner=False, max_entries=50)
def _first_rows(home: Path, name: str, content: str) -> bytes | None:  # noqa: ARG001  (other content is another image)
    data_set = prepared.open_set(Home(home), name, resident_bytes=0)
    return prepared.png_of_rows(
        data_set.read(np.arange(min(prepared.FIRST_ROWS_COUNT, data_set.rows)))
    )


@st.cache_data(show_spinner=False, ttl=CHECK_SECONDS)
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


REQUESTED = "data.making"  # the job that this browser tab requested
MOST_PAST = 20
SECONDS = 1.0  # between two renders of a live image
LIVE_WIDTH = 576


def show_current(runtime: Runtime) -> None:
    """Progress of all current preparations, and the result of the one that this tab requested."""
    for snapshot in job_queue.snapshots(runtime.home, core_jobs.PREPARE):
        if snapshot.is_live:
            show_progress(runtime, snapshot)
        elif snapshot.job.job_id == st.session_state.get(REQUESTED):
            _outcome(runtime, snapshot)
            del st.session_state[REQUESTED]  # reported once


def show_progress(runtime: Runtime, snapshot: JobSnapshot) -> None:
    """The bar of a job, and below it the set so far, if the job draws it."""
    widgets.job_bar(
        runtime, snapshot, _progress_text, widgets.EndButton(f"data.cancel.{snapshot.job.job_id}")
    )
    st.fragment(_live_image, run_every=SECONDS)(snapshot)


def show_past(runtime: Runtime) -> None:
    """The last preparations and how they ended; nothing before the first."""
    snapshots = [
        snapshot
        for snapshot in job_queue.snapshots(runtime.home, core_jobs.PREPARE)
        if snapshot.end is not None
    ][:MOST_PAST]
    if not snapshots:
        return
    with st.expander("How the last preparations ended"):
        rows = [
            (
                snapshot.job.job_id,
                core_jobs.name_of(snapshot.request),
                snapshot.request.asker,
                snapshot.state,
                snapshot.end.reason,
                snapshot.end.at,
            )
            for snapshot in snapshots
            if snapshot.end is not None
        ]
        columns = ["Job", "Data set", "Requested by", "State", "Reason", "Ended"]
        tables.show(pd.DataFrame(rows, columns=columns), hide_index=True, key="data.ended")


def _live_image(snapshot: JobSnapshot) -> None:
    """The newest image of the set in preparation; redraws alone."""
    png = prepared.read_live_image(snapshot.job.work)
    if png is not None:
        # A data URL: the server's own address would expire with the next image, before a slow
        # browser requests it.
        address = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
        st.image(address, width=LIVE_WIDTH, alt="The set being prepared.")


def _progress_text(snapshot: JobSnapshot) -> str:
    what = f"Data set {words.plain(core_jobs.name_of(snapshot.request))}"
    if snapshot.request.kind == core_jobs.SURVEY:
        what = "Preview"
    return f"{what}: {widgets.job_sentence(snapshot)}"


def _outcome(runtime: Runtime, snapshot: JobSnapshot) -> None:
    """How a preparation ended; for a new set also its summary."""
    name = words.plain(core_jobs.name_of(snapshot.request))
    if snapshot.end is None:
        return
    if snapshot.state == "finished":
        result = snapshot.end.result
        rows = formats.quantity(
            int(result.get("rows", 0)), data_summary.noun(result.get("fields", ()))
        )
        st.success(f"Data set {name} is ready: {rows}.", icon=":material/check_circle:")
        made_set = loading.data_sets(runtime.home).get(core_jobs.name_of(snapshot.request))
        if made_set is not None and made_set.preparation is not None:
            data_summary.show(made_set.preparation, "data.made")
    elif snapshot.state == "cancelled":
        st.info(f"Data set {name}: {words.plain(snapshot.end.reason)}", icon=":material/info:")
    else:
        st.error(f"Data set {name}: {words.plain(snapshot.end.reason)}", icon=":material/error:")
