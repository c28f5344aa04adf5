"""The form for a new data set: source, files and options, a preview before anything is stored,
and the job that prepares it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st
from numpy.typing import NDArray
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dashboard import actions, data_summary, option_words, words
from dashboard.data import sets_view
from dashboard.frame import access
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.base.options import Option
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import preparations, prepared, uploads
from gan_runtime.data.preparations import PREPARATIONS, PreparationRequest
from gan_runtime.data.summary import Summary
from gan_runtime.data.uploads import Upload
from gan_runtime.jobs import core_jobs
from gan_runtime.jobs.core_jobs import GRID_FILE
from gan_runtime.jobs.folder import JobSnapshot

PREFIX = "data."
GENERATION = f"{PREFIX}generation"  # incremented to empty the form: a file widget has no reset
COLUMNS = 3
LONGEST_NAME = 40
STORED_ON_DISK = "Files go straight to the disk of this host."
IMAGE_FORMATS = "JPEG, PNG or WebP of any size."
NO_FILES = (
    "Drop or pick files, then press Preview to see stored images, counts per label, and skipped"
    " files."
)
NO_FILE = "Drop or pick a file to choose how its rows are converted."


@dataclass(frozen=True)
class DataForm:
    """The checked values of the form. `source`: None if the preparation needs none."""

    preparation: str
    source: Path | None
    name: str
    options: dict[str, str]


def show(runtime: Runtime) -> DataForm | None:
    """The values of the form; None while a file is missing or an error is shown."""
    preparation = st.segmented_control(
        "Source",
        [name for name, entry in PREPARATIONS.items() if entry.makes_files],
        format_func=lambda name: PREPARATIONS[name].title,
        default=next(iter(PREPARATIONS)),
        required=True,
        key=f"{PREFIX}preparation",
    )
    entry = PREPARATIONS[preparation]
    st.caption(entry.summary)
    source = _source(runtime, entry) if entry.needs_source else None
    if source is None and entry.needs_source:
        st.caption(NO_FILES if entry.has_preview else NO_FILE)
        return None
    name = st.text_input(
        "Name",
        value=entry.name or _name_from(source),
        key=f"{PREFIX}name.{preparation}.{source}",
        help=f"The name of the data set in runs. Allowed: {prepared.NAME_RULE}.",
    )
    options, below = _options(preparation)
    return _checked(DataForm(preparation, source, name, options), below)


def _options(preparation: str) -> tuple[dict[str, str], dict[str, DeltaGenerator]]:
    """The values of the fields, and a place below each for its error."""
    options = list(preparations.options_of(PREPARATIONS[preparation].options).values())
    values: dict[str, str] = {}
    below: dict[str, DeltaGenerator] = {}
    for begin in range(0, len(options), COLUMNS):
        for column, option in zip(
            st.columns(COLUMNS), options[begin : begin + COLUMNS], strict=False
        ):
            with column:
                values[option.name] = _field(option, preparation)
                below[option.name] = st.empty()
    return values, below


def empty_form() -> None:
    """Empties the form."""
    st.session_state[GENERATION] = st.session_state.get(GENERATION, 0) + 1


def _source(runtime: Runtime, preparation: Preparation) -> Path | None:
    generation = st.session_state.get(GENERATION, 0)
    is_images = preparation.has_preview
    kinds = f" ({', '.join(preparation.suffixes)})" if preparation.suffixes else ""
    refusal = access.actor().refusal
    if refusal:
        st.caption(f"Only operators can add data. {refusal}")
        return None
    files = st.file_uploader(
        "A .zip of images, or several images" if is_images else f"One or several files{kinds}",
        type=None if is_images else preparation.suffixes,  # an image is recognized by its contents
        accept_multiple_files=True,
        key=f"{PREFIX}files.{preparation.maker}.{generation}",
        help=" ".join(
            filter(None, (preparation.summary, IMAGE_FORMATS if is_images else "", STORED_ON_DISK))
        ),
    )
    if files:
        return actions.attempt(lambda: runtime.commands.use_uploads(_on_disk(runtime, files)))
    offered = uploads.offered_files(preparation.suffixes)
    for problem in offered.problems:
        st.warning(words.plain(problem), icon=":material/warning:")
    if not offered.names and not offered.problems:
        st.caption(
            "For larger files or a folder, start the dashboard with GAN_DATA_DIR set to a folder on"
            " this host. Its contents are then offered here."
        )
    if not offered.names:
        return None
    picked = st.selectbox(
        f"Or a folder or {' or '.join(preparation.suffixes)} in GAN_DATA_DIR on this host",
        offered.names,
        index=None,
        key=f"{PREFIX}host.{preparation.maker}.{generation}",
    )
    return actions.attempt(lambda: uploads.path_of(picked)) if picked else None


def _on_disk(runtime: Runtime, files: Sequence[UploadedFile]) -> list[Upload]:
    """The uploaded files by their ids.

    Writes a file to disk first if Streamlit holds its content, as in tests of the page alone.
    """
    for file in files:
        if file.size and not uploads.place(runtime.home, file.file_id).exists():
            runtime.commands.keep_upload(file.file_id, file.getvalue())
    return [Upload(file.file_id, file.name) for file in files]


def _field(option: Option, preparation: str) -> str:
    label = option_words.label(option)
    text = f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}."
    key = f"{PREFIX}option.{preparation}.{option.name}"
    if not option.choices:
        default = option.default if option.kind is str else f"{option.default:g}"
        return st.text_input(label, value=default, key=key, help=text)
    first = option.choices.index(option.default)
    return str(st.selectbox(label, option.choices, index=first, key=key, help=text))


def _checked(form: DataForm, below: Mapping[str, DeltaGenerator]) -> DataForm | None:
    try:
        PreparationRequest(form.preparation, form.name, form.source, form.options).check()
    except SpecError as error:
        for option, message in error.by_field().items():
            below[option].markdown(f":red[{words.plain(message)}]")
        return None
    except DatasetError as error:
        st.markdown(f":red[{words.plain(str(error))}]")
        return None
    return form


def _name_from(source: Path | None) -> str:
    """A valid name made from the file name."""
    stem = source.stem.lower() if source is not None else ""
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:LONGEST_NAME].strip("-") or "pictures"


GRID_WIDTH = 420


def show_preview(runtime: Runtime, form: DataForm) -> None:
    """The button that prepares the set. Images need a preview first: a button, its progress, and
    its result.
    """
    if form.source is None or not PREPARATIONS[form.preparation].has_preview:
        _prepare(runtime, form)
    else:
        _preview_or_prepare(runtime, form, form.source)


def _preview_or_prepare(runtime: Runtime, form: DataForm, source: Path) -> None:
    snapshot = core_jobs.newest_survey(
        runtime.home, core_jobs.preview_of(form.preparation, source, form.options)
    )
    if snapshot is not None and snapshot.is_live:
        sets_view.show_progress(runtime, snapshot)
    elif snapshot is not None and snapshot.state == "finished" and snapshot.end is not None:
        _preview_result(snapshot, snapshot.end.result)
        _prepare(runtime, form)
    else:
        if (
            snapshot is not None
            and snapshot.state in ("failed", "lost")
            and snapshot.end is not None
        ):
            st.error(words.plain(snapshot.end.reason), icon=":material/error:")
        _preview_button(runtime, form, source, "Preview" if snapshot is None else "Preview again")


def _preview_button(runtime: Runtime, form: DataForm, source: Path, label: str) -> None:
    pressed = actions.button(
        label, type="primary", icon=":material/visibility:", key="data.preview"
    )
    st.caption("Reads every image and shows the result. Nothing is stored yet.")
    if (
        pressed
        and actions.attempt(
            lambda: runtime.commands.request_job(
                core_jobs.SURVEY, core_jobs.preview_of(form.preparation, source, form.options)
            )
        )
        is not None
    ):
        st.rerun()


def _preview_result(snapshot: JobSnapshot, result: dict[str, Any]) -> None:
    summary = Summary.model_validate(result)
    noun = data_summary.noun(result.get("fields", ()))
    grid, numbers = st.columns([3, 2], gap="large")
    with grid:
        rows = _by_class(np.load(snapshot.job.results / GRID_FILE), result["grid_labels"])
        st.image(
            prepared.png_of_pairs(rows) if noun == data_summary.PAIR else prepared.png(rows),
            width=GRID_WIDTH,
            alt=(
                f"{formats.quantity(len(rows), noun)} as they would be"
                f" stored{', ordered by class' if summary.counts else ''}."
            ),
        )
        order = (
            "ordered by class"
            if summary.counts
            else "source left, target right"
            if noun == data_summary.PAIR
            else ""
        )
        st.caption(f"{', '.join(filter(None, ('As they would be stored', order)))}.")
    with numbers:
        with st.container(horizontal=True):
            st.metric(
                f"{noun.capitalize()}s",
                formats.count(result["rows"]),
                help="Rows that a run trains on.",
                width=120,
            )
            st.metric("Held out", formats.count(summary.held_out), width=120)
            st.metric("On disk", formats.size(result["bytes_on_disk"]), width=120)
        if noun != data_summary.PAIR and not summary.counts:
            st.caption("No labels: all images are in one folder.")
        if not summary.skipped.in_words():
            st.caption("All files can be used.")
        data_summary.show(summary, "data.preview")


def _prepare(runtime: Runtime, form: DataForm) -> None:
    label = f"Prepare {form.name}"
    if actions.button(label, type="primary", icon=":material/inventory_2:", key="data.prepare"):
        job = actions.attempt(
            lambda: runtime.commands.prepare_data(
                form.preparation, form.name, form.source, form.options
            )
        )
        if job is not None:
            st.session_state[sets_view.REQUESTED] = job.job_id
            empty_form()
            st.rerun()


def _by_class(rows: NDArray[np.uint8], labels: list[str]) -> NDArray[np.uint8]:
    return rows[np.argsort(labels, kind="stable")] if labels else rows
