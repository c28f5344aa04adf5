"""Which pictures, and what shall become of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dashboard import actions, option_words, words
from gan_runtime.data import host_files, prepared, preparing
from gan_runtime.data.picture_files import SUFFIXES
from gan_runtime.data.picture_options import PictureOptions
from gan_runtime.data.preparing import Asked
from gan_runtime.errors import DatasetError, SpecError
from gan_runtime.jobs import uploads
from gan_runtime.jobs.uploads import Dropped
from gan_runtime.options import Option
from gan_runtime.runtime.runtime import Runtime

PREFIX = "data."
GENERATION = f"{PREFIX}generation"  # counts up to empty the form: a file widget cannot be told to
COLUMNS = 3
LONGEST_NAME = 40


@dataclass(frozen=True)
class Wanted:
    """What stands in the form, right in itself."""

    source: Path
    name: str
    options: dict[str, str]


def ask(runtime: Runtime) -> Wanted | None:
    """The form; None while there is no picture yet, or something is wrong, of which it then tells."""
    source = _source(runtime)
    if source is None:
        return None
    name = st.text_input(
        "Name",
        value=_plain_name(source),
        key=f"{PREFIX}name.{source}",
        help=f"What runs call the data set. Allowed: {prepared.NAME_RULE}.",
    )
    known = preparing.options_of(PictureOptions)
    given: dict[str, str] = {}
    below: dict[str, DeltaGenerator] = {}
    for begin in range(0, len(known), COLUMNS):
        options = list(known.values())[begin : begin + COLUMNS]
        for column, option in zip(st.columns(COLUMNS), options, strict=False):
            with column:
                given[option.name] = _field(option)
                below[option.name] = st.empty()
    return _checked(source, name, given, below)


def start_again() -> None:
    """Empties the form."""
    st.session_state[GENERATION] = st.session_state.get(GENERATION, 0) + 1


def _source(runtime: Runtime) -> Path | None:
    generation = st.session_state.get(GENERATION, 0)
    files = st.file_uploader(
        "A .zip of pictures, or several pictures",
        type=[".zip", *SUFFIXES],
        accept_multiple_files=True,
        key=f"{PREFIX}files.{generation}",
        help="JPEG, PNG or WebP of any size. In a .zip, sub-folders are the labels. What is dropped goes to the disk of this host while it arrives.",
    )
    if files:
        return actions.attempt(lambda: runtime.use_uploads(_on_disk(runtime, files)))
    offered = host_files.offered()
    if not offered:
        st.caption(
            "More than that, or a folder: set GAN_DATA_DIR to a folder of this host before the dashboard starts, "
            "and what lies below it can be picked here."
        )
        return None
    picked = st.selectbox(
        "Or a folder or .zip of this host, below GAN_DATA_DIR",
        offered,
        index=None,
        key=f"{PREFIX}host.{generation}",
    )
    return actions.attempt(lambda: host_files.chosen(picked)) if picked else None


def _on_disk(runtime: Runtime, files: Sequence[UploadedFile]) -> list[Dropped]:
    """The files by their ids. A file that Streamlit holds itself, as in tests of the page alone, is written down first."""
    for file in files:
        if file.size and not uploads.place(runtime.home, file.file_id).exists():
            runtime.keep_upload(file.file_id, file.getvalue())
    return [Dropped(file.file_id, file.name) for file in files]


def _field(option: Option) -> str:
    label = option_words.label(option)
    text = f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}."
    key = f"{PREFIX}option.{option.name}"
    if not option.choices:
        return st.text_input(label, value=f"{option.default:g}", key=key, help=text)
    first = option.choices.index(option.default)
    return str(st.selectbox(label, option.choices, index=first, key=key, help=text))


def _checked(
    source: Path, name: str, given: dict[str, str], below: Mapping[str, DeltaGenerator]
) -> Wanted | None:
    try:
        Asked("pictures", name, source, given).check()
    except SpecError as error:
        for option, message in error.by_field().items():
            below[option].markdown(f":red[{words.plain(message)}]")
        return None
    except DatasetError as error:
        st.markdown(f":red[{words.plain(str(error))}]")
        return None
    return Wanted(source, name, given)


def _plain_name(source: Path) -> str:
    """A name made of the file's."""
    return re.sub(r"[^a-z0-9]+", "-", source.stem.lower()).strip("-")[:LONGEST_NAME].strip("-") or "pictures"
