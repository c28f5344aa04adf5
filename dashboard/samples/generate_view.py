"""More images of a trained run: a short form, the job that makes them, and what it made."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import streamlit as st
from PIL import Image

from dashboard import actions, widgets, words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.jobs import core_jobs
from gan_runtime.jobs.core_jobs import ARRAYS_FILE, MOST_SEED, PICTURE_FILE, ImageRequest
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.store.queries import RunRow
from gan_runtime.training.checkpoints import Which

COUNTS = (16, 64, 256)
EVERY_CLASS = ""  # in place of the name of one
NARROWEST, WIDEST = 480, 960  # pixels of the image on a wide page
NO_CHECKPOINT = (
    "This run has no checkpoint here. A run saves one after each epoch; bundles contain none."
    " Train the run to generate images with it."
)
CHECKPOINT_HELP = (
    "Newest: the networks that made the last images. Best: the epoch whose images D"
    " could tell least from training images."
)


def show(runtime: Runtime, row: RunRow) -> None:
    """Below the samples of a run: more images of it."""
    st.subheader("More images", anchor=False)
    if not core_jobs.checkpoints_of(runtime.home, row.run_id):
        st.caption(NO_CHECKPOINT)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = core_jobs.newest_images(runtime.home, row.run_id)
        request = _form(runtime, row.run_id)
        pressed = actions.button(
            "Generate",
            key="generate.start",
            type="primary",
            icon=":material/add_photo_alternate:",
            disabled=look is not None and look.is_live,
        )
    if (
        pressed
        and actions.attempt(lambda: runtime.commands.request_job(core_jobs.GENERATE, request))
        is not None
    ):
        st.rerun()
    if look is not None and look.is_live:
        widgets.job_bar(
            runtime, look, _how_far, widgets.EndButton(f"generate.cancel.{look.job.job_id}")
        )
    elif look is not None:
        _ended(look, row.name)


def _form(runtime: Runtime, run_id: str) -> ImageRequest:
    checkpoint = _checkpoint(core_jobs.checkpoints_of(runtime.home, run_id), run_id)
    label = _class(runtime, run_id)
    count = st.selectbox(
        "Images", COUNTS, COUNTS.index(ImageRequest.count), key="generate.count", width=110
    )
    seed = st.number_input(
        "Seed",
        0,
        MOST_SEED,
        key="generate.seed",
        width=130,
        help="The same seed gives the same images.",
    )
    return ImageRequest(run_id, count, int(seed), label, checkpoint)


def _checkpoint(steps: dict[Which, int], run_id: str) -> Which:
    """Nothing is drawn where there is no choice."""
    if len(set(steps.values())) < 2:
        return next(iter(steps))
    which_checkpoint: Which = st.selectbox(
        "Checkpoint",
        list(steps),
        format_func=lambda which: f"{which.capitalize()}, step {formats.count(steps[which])}",
        key=f"generate.checkpoint.{run_id}",
        width=200,
        help=CHECKPOINT_HELP,
    )
    return which_checkpoint


def _class(runtime: Runtime, run_id: str) -> str:
    """Nothing is drawn for networks that know no classes."""
    classes = actions.attempt(lambda: core_jobs.classes_of(runtime.home, run_id))
    if not classes:
        return EVERY_CLASS
    return str(
        st.selectbox(
            "Class",
            [EVERY_CLASS, *classes],
            format_func=lambda name: name or "All classes",
            key=f"generate.class.{run_id}",
            width=160,
        )
    )


def _how_far(look: JobSnapshot) -> str:
    images = formats.quantity(int(look.request.options["count"]), "image")
    return f"{images}: {widgets.job_sentence(look)}"


def _ended(look: JobSnapshot, name: str) -> None:
    if look.end is None:
        return
    if look.state == "finished":
        _result(look, look.end.result, name)
    else:
        st.error(words.plain(look.end.reason), icon=":material/error:")


def _result(look: JobSnapshot, result: dict[str, Any], name: str) -> None:
    """The image, its description, and both files."""
    picture, arrays = look.job.results / PICTURE_FILE, look.job.results / ARRAYS_FILE
    if not picture.exists() or not arrays.exists():
        st.caption("The last images were deleted. Press Generate again.")
        return
    request = ImageRequest(**look.request.options)
    description = _in_words(request, int(result["step"]), name)
    with Image.open(picture) as opened:
        width = min(max(opened.width, NARROWEST), WIDEST)
    st.image(picture.read_bytes(), width=width, alt=description)
    st.caption(words.plain(description))
    for warning in result["warnings"]:
        st.caption(words.plain(warning))
    stem = re.sub(r"[^A-Za-z0-9]+", "-", f"{request.run_id} {request.label} seed {request.seed}")
    with st.container(horizontal=True):
        _download("Image", picture.read_bytes, f"{stem}.png", "image/png")
        _download(
            "Arrays",
            arrays.read_bytes,
            f"{stem}.npz",
            "application/octet-stream",
            "A NumPy .npz file: each image as the network made it, values from -1 to 1, and its"
            " class number.",
        )


def _in_words(request: ImageRequest, step: int, name: str) -> str:
    """64 images of quick-0007, class 3, seed 1, by its newest checkpoint (after step 1 050)."""
    of_class = f", class {request.label}" if request.label else ""
    return (
        f"{formats.quantity(request.count, 'image')} of {name}{of_class}, seed {request.seed}, "
        f"by its {request.checkpoint} checkpoint (after step {formats.count(step)})."
    )


def _download(label: str, read: Callable[[], bytes], name: str, kind: str, text: str = "") -> None:
    """The file is read when the button is pressed, not before."""
    st.download_button(
        label,
        read,
        name,
        kind,
        on_click="ignore",
        key=f"generate.download.{label}",
        icon=":material/download:",
        help=text or None,
    )
