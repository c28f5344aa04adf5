"""Which data set to make, from which files, and what shall become of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dashboard import actions, option_words, words
from dashboard.frame import access
from gan_runtime.base.errors import DatasetError, SpecError
from gan_runtime.base.options import Option
from gan_runtime.catalog.preparation import Preparation
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import preparations, prepared, uploads
from gan_runtime.data.preparations import PREPARATIONS, Asked
from gan_runtime.data.uploads import Dropped

PREFIX = "data."
GENERATION = f"{PREFIX}generation"  # counts up to empty the form: a file widget cannot be told to
COLUMNS = 3
LONGEST_NAME = 40
DROPPED = "What is dropped goes to the disk of this host while it arrives."
OF_PICTURES = "JPEG, PNG or WebP of any size."
BEFORE_A_PREVIEW = "A preview appears here as soon as there are pictures: what they become, how many of each label, and what is left out."
BEFORE_A_FILE = "How the rows are converted can be chosen as soon as there is a file."


@dataclass(frozen=True)
class Wanted:
    """What stands in the form, right in itself. `source`: None where the preparation needs none."""

    preparation: str
    source: Path | None
    name: str
    options: dict[str, str]


def ask(runtime: Runtime) -> Wanted | None:
    """The form; None while there is no file yet, or something is wrong, of which it then tells."""
    preparation = st.segmented_control(
        "What it is made of",
        [name for name, known in PREPARATIONS.items() if known.makes_files],
        format_func=lambda name: PREPARATIONS[name].title,
        default=next(iter(PREPARATIONS)),
        required=True,
        key=f"{PREFIX}preparation",
    )
    known = PREPARATIONS[preparation]
    st.caption(known.summary)
    source = _source(runtime, known) if known.needs_source else None
    if source is None and known.needs_source:
        st.caption(BEFORE_A_PREVIEW if known.has_preview else BEFORE_A_FILE)
        return None
    name = st.text_input(
        "Name",
        value=known.name or _plain_name(source),
        key=f"{PREFIX}name.{preparation}.{source}",
        help=f"What runs call the data set. Allowed: {prepared.NAME_RULE}.",
    )
    given, below = _options(preparation)
    return _checked(Wanted(preparation, source, name, given), below)


def _options(preparation: str) -> tuple[dict[str, str], dict[str, DeltaGenerator]]:
    """What stands in the fields, and a place for a sentence below each."""
    known = list(preparations.options_of(PREPARATIONS[preparation].options).values())
    given: dict[str, str] = {}
    below: dict[str, DeltaGenerator] = {}
    for begin in range(0, len(known), COLUMNS):
        for column, option in zip(st.columns(COLUMNS), known[begin : begin + COLUMNS], strict=False):
            with column:
                given[option.name] = _field(option, preparation)
                below[option.name] = st.empty()
    return given, below


def start_again() -> None:
    """Empties the form."""
    st.session_state[GENERATION] = st.session_state.get(GENERATION, 0) + 1


def _source(runtime: Runtime, known: Preparation) -> Path | None:
    generation = st.session_state.get(GENERATION, 0)
    pictures = known.has_preview
    why_not = access.asker().why_not
    if why_not:
        st.caption(f"Only operators bring in data. {why_not}")
        return None
    files = st.file_uploader(
        "A .zip of pictures, or several pictures" if pictures else "One or several HDF5 files",
        type=None if pictures else known.suffixes,  # a picture is known by its contents
        accept_multiple_files=True,
        key=f"{PREFIX}files.{known.maker}.{generation}",
        help=" ".join(filter(None, (known.summary, OF_PICTURES if pictures else "", DROPPED))),
    )
    if files:
        return actions.attempt(lambda: runtime.commands.use_uploads(_on_disk(runtime, files)))
    offered = uploads.offered(known.suffixes)
    for problem in offered.problems:
        st.warning(words.plain(problem), icon=":material/warning:")
    if not offered.names and not offered.problems:
        st.caption(
            "More than that, or a folder: set GAN_DATA_DIR to a folder of this host before the dashboard starts, "
            "and what lies below it can be picked here."
        )
    if not offered.names:
        return None
    picked = st.selectbox(
        f"Or a folder or {' or '.join(known.suffixes)} of this host, below GAN_DATA_DIR",
        offered.names,
        index=None,
        key=f"{PREFIX}host.{known.maker}.{generation}",
    )
    return actions.attempt(lambda: uploads.chosen(picked)) if picked else None


def _on_disk(runtime: Runtime, files: Sequence[UploadedFile]) -> list[Dropped]:
    """The files by their ids. A file that Streamlit holds itself, as in tests of the page alone, is written down first."""
    for file in files:
        if file.size and not uploads.place(runtime.home, file.file_id).exists():
            runtime.commands.keep_upload(file.file_id, file.getvalue())
    return [Dropped(file.file_id, file.name) for file in files]


def _field(option: Option, preparation: str) -> str:
    label = option_words.label(option)
    text = f"{option.help} Allowed: {option.allowed}{f' ({option.unit})' if option.unit else ''}."
    key = f"{PREFIX}option.{preparation}.{option.name}"
    if not option.choices:
        usual = option.default if option.kind is str else f"{option.default:g}"
        return st.text_input(label, value=usual, key=key, help=text)
    first = option.choices.index(option.default)
    return str(st.selectbox(label, option.choices, index=first, key=key, help=text))


def _checked(wanted: Wanted, below: Mapping[str, DeltaGenerator]) -> Wanted | None:
    try:
        Asked(wanted.preparation, wanted.name, wanted.source, wanted.options).check()
    except SpecError as error:
        for option, message in error.by_field().items():
            below[option].markdown(f":red[{words.plain(message)}]")
        return None
    except DatasetError as error:
        st.markdown(f":red[{words.plain(str(error))}]")
        return None
    return wanted


def _plain_name(source: Path | None) -> str:
    """A name made of the file's."""
    stem = source.stem.lower() if source is not None else ""
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:LONGEST_NAME].strip("-") or "pictures"
