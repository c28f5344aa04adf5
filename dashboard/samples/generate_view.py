"""More images of a trained run: a short form, the job that makes them, and what it made.

The job's process stays, so that after the first request a page waits for the images itself.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import streamlit as st
from PIL import Image

from dashboard import actions, widgets, words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.engines.inputs import MOST_CLASSES, labels_of
from gan_runtime.jobs import image_job
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.image_job import ARRAYS_FILE, PICTURE_FILE, ImageRequest
from gan_runtime.jobs.job import SECONDS_BETWEEN_LOOKS
from gan_runtime.store.queries import RunRow
from gan_runtime.training.checkpoints import Which

WAITED_S = 3.0  # by the page for a job, before it shows how far the job is
SEEDS, SEEDS_OF_EACH_CLASS = "0-63", "0-7"
MOST_NAMED = 8  # seeds in a sentence
EVERY_CLASS = ""  # in place of the name of one
NARROWEST, WIDEST = 480, 960  # pixels of the image on a wide page
NO_CHECKPOINT = (
    "This run has no checkpoint here. A run saves one after each epoch; bundles contain none."
    " Train the run to generate images with it."
)
SEEDS_HELP = (
    "Each seed is one image, such as 3, 17 or 40-47. The same seed gives the same latent vector, in"
    " each class and for each checkpoint."
)
CHECKPOINT_HELP = (
    "Newest: the networks that made the last images. Best: the epoch whose images D"
    " could tell least from training images."
)


def show(runtime: Runtime, row: RunRow) -> None:
    """Below the samples of a run: more images of it."""
    st.subheader("More images", anchor=False)
    if not image_job.checkpoints_of(runtime.home, row.run_id):
        st.caption(NO_CHECKPOINT)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        look = image_job.newest_images(runtime.home, row.run_id)
        request = _form(runtime, row.run_id)
        pressed = actions.button(
            "Generate",
            key="generate.start",
            type="primary",
            icon=":material/add_photo_alternate:",
            disabled=look is not None and look.is_live,
        )
    if pressed and request is not None:
        _start(runtime, request)
    if look is not None and look.is_live:
        widgets.job_bar(
            runtime, look, _how_far, widgets.EndButton(f"generate.cancel.{look.job.job_id}")
        )
    elif look is not None:
        _ended(look, row.name)


def _start(runtime: Runtime, request: ImageRequest) -> None:
    """Requests the images, and waits a moment: a process that has the networks needs less."""
    with st.spinner("Generating …"):
        job = actions.attempt(lambda: runtime.commands.request_job(image_job.GENERATE, request))
        if job is None:
            return
        until = time.monotonic() + WAITED_S
        while job.end() is None and time.monotonic() < until:
            time.sleep(SECONDS_BETWEEN_LOOKS)
    st.rerun()


def _form(runtime: Runtime, run_id: str) -> ImageRequest | None:
    """None while its text cannot be used; the reason is shown."""
    checkpoint = _checkpoint(image_job.checkpoints_of(runtime.home, run_id), run_id)
    classes = actions.attempt(lambda: image_job.classes_of(runtime.home, run_id)) or ()
    label = _class(classes, run_id)
    each = len(labels_of(MOST_CLASSES, len(classes))) if classes and not label else 1
    text = st.text_input(
        "Seeds",
        SEEDS_OF_EACH_CLASS if each > 1 else SEEDS,
        key=f"generate.seeds.{each > 1}",
        width=180,
        help=SEEDS_HELP,
    )
    seeds = actions.attempt(lambda: image_job.seeds_of(text))
    if seeds is None:
        return None
    return ImageRequest(run_id, len(seeds) * each, seeds[0], label, checkpoint, seeds=seeds)


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


def _class(classes: tuple[str, ...], run_id: str) -> str:
    """Nothing is drawn for networks that know no classes."""
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
    stem = re.sub(
        r"[^A-Za-z0-9]+", "-", f"{request.run_id} {request.label} {_seeds_in_words(request)}"
    )
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
    """64 images of quick-0007, class 3, seeds 0 to 63, by its newest checkpoint (after step
    1,050).
    """
    of_class = f", class {request.label}" if request.label else ""
    return (
        f"{formats.quantity(request.count, 'image')} of {name}{of_class},"
        f" {_seeds_in_words(request)}, "
        f"by its {request.checkpoint} checkpoint (after step {formats.count(step)})."
    )


def _seeds_in_words(request: ImageRequest) -> str:
    """As "seed 3", "seeds 0 to 63" or "seeds 3, 17, 42"."""
    seeds = request.seeds or [request.seed]
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    more = " …" if len(seeds) > MOST_NAMED else ""
    return f"seed{'s' if seeds[1:] else ''} {', '.join(map(str, seeds[:MOST_NAMED]))}{more}"


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
