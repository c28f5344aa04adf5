"""The images of a run at an epoch, with descriptions, and the kinds of images that runs make."""

from __future__ import annotations

import io
from functools import cache

import streamlit as st
from PIL import Image

from dashboard import words
from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import PictureError
from gan_runtime.records import image_files
from gan_runtime.store import queries
from gan_runtime.store.queries import RunRow, SampleGrid
from gan_runtime.store.store import Store


def title(kind: str, rows: list[RunRow]) -> str:
    """The title of a kind, from the first run whose workload has it; else its name."""
    entries = [catalog.WORKLOADS[row.workload] for row in rows if row.workload in catalog.WORKLOADS]
    titles = (
        picture.title for entry in entries for picture in entry.pictures if picture.name == kind
    )
    return next(titles, kind.replace("_", " ").capitalize())


def choice(kinds: list[str], rows: list[RunRow], key: str) -> str:
    """The selected kind.

    Draws nothing if there is no choice; "" if there is no kind.
    """
    if len(kinds) < 2:
        return kinds[0] if kinds else ""
    return str(
        st.segmented_control(
            "Images",
            kinds,
            default=kinds[0],
            format_func=lambda kind: words.plain(title(kind, rows)),
            key=f"{key}.kind",
            required=True,
            label_visibility="collapsed",
            wrap=True,  # in a column Streamlit would let the last ones scroll out of sight
        )
    )


WIDTH = 480  # pixels at most: a grid fits into a window 800 pixels high
BLANK_SIDE = 240
AWAITED = "The first generated images appear here after epoch 1."
BLANK_COLOR = (128, 136, 148, 48)  # a veil on a light or dark background


def show(store: Store, row: RunRow, epoch: int, kind: str = "", caption: bool = True) -> None:
    """The newest images of a kind up to `epoch`, by default of the first kind; before the first
    image of a live run, an empty place and a sentence.
    """
    grid = queries.sample(store, row.run_id, epoch, kind)
    if grid is None:
        _absent(store, row, kind)
        return
    if not is_image(grid.png):
        st.caption(f"The images of epoch {grid.epoch} are damaged.")
        return
    st.image(grid.png, width=WIDTH, alt=_in_words(row, grid))
    if caption:
        late = "" if grid.epoch == epoch else " (its newest)" if row.is_live else " (its last)"
        st.caption(f"After epoch {grid.epoch}, step {formats.count(grid.step)}{late}")


def _absent(store: Store, row: RunRow, kind: str) -> None:
    """A run without images of the selected kind, or without any yet."""
    kinds = queries.sample_kinds(store, [row.run_id])
    if kinds and kind not in kinds:
        st.caption(
            f"This run makes no images called “{title(kind, [row])}”. Pick another kind above."
        )
        return
    if row.is_live:
        st.image(_blank(), width=WIDTH, alt="")
    st.caption(AWAITED if row.is_live else "This run has stored no images.")


@st.cache_data(show_spinner=False, max_entries=200)
def is_image(png: bytes) -> bool:
    """Whether the bytes are an image; an older database can contain some that were not checked."""
    try:
        image_files.check_grid(png)
    except PictureError:
        return False
    return True


def _in_words(row: RunRow, grid: SampleGrid) -> str:
    return f"{title(grid.kind, [row])} of {row.name} after epoch {grid.epoch}."


@cache
def _blank() -> bytes:
    file = io.BytesIO()
    Image.new("RGBA", (BLANK_SIDE, BLANK_SIDE), BLANK_COLOR).save(file, format="PNG")
    return file.getvalue()
