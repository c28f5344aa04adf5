"""The form for a run's generator: seeds, a strip between seeds, a plane, or an image to change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import actions, words
from dashboard.frame import access
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.data import uploads
from gan_runtime.jobs import image_job
from gan_runtime.jobs.image_job import MOST_SEED, USUAL_FRAMES, ImageRequest
from gan_runtime.training import inference
from gan_runtime.training.checkpoints import Which
from gan_runtime.training.latents import Layout

COUNTS = (16, 64, 256)
LAYOUTS: dict[Layout, str] = {"grid": "Seeds", "strip": "Between seeds", "plane": "Plane"}
USUAL_SEEDS: dict[Layout, str] = {"grid": "0-63", "strip": "0, 1, 2", "plane": "0, 1, 2"}
SEEDS_OF_EACH_CLASS = "0-7"
SEEDS_HELP: dict[Layout, str] = {
    "grid": (
        "Each seed is one image, such as 3, 17 or 40-47. A seed gives the same latent vector in"
        " each class and with each checkpoint."
    ),
    "strip": (
        "The seeds to pass, in order. Latents in between lie on an arc (spherical interpolation)."
    ),
    "plane": (
        "Three seeds: the center, the direction to the right, and the direction down. Latents lie"
        " on the sphere through the center."
    ),
}
FRAMES: dict[Layout, tuple[str, tuple[int, ...]]] = {
    "strip": ("Images per pair", (4, 8, 12, 16)),
    "plane": ("Images per side", (5, 7, 9, 11, 15)),
}
REACHES = (15, 30, 45, 60, 90)
TRUNCATIONS = (0.0, 2.0, 1.5, 1.0, 0.7, 0.5)
EVERY_CLASS = ""  # instead of a class name
CHECKPOINT_HELP = (
    "Newest: the networks that made the last images. Best: the epoch with the best quality. With"
    " Weight snapshots on, each epoch is listed too."
)
TRUNCATION_HELP = (
    "The largest absolute value in a latent vector. Lower values give typical images with less"
    " variety; the lowest ones can give empty images."
)
OF_HELD_OUT = "As held out"


def form(runtime: Runtime, run_id: str, is_busy: bool) -> ImageRequest | None:
    """The request after a press; None before it, and while it is not possible, with the reason.

    `is_busy`: whether a job works on the last request of this run.
    """
    spec = actions.attempt(lambda: runtime.home.run_dir(run_id).spec())
    if spec is None:
        return None
    if not spec.entry.has_latents:
        return _image_to_image_form(runtime, run_id, is_busy)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        layout: Layout = st.segmented_control(
            "Show",
            list(LAYOUTS),
            default="grid",
            format_func=lambda layout: LAYOUTS[layout],
            key=_layout_key(run_id),
            required=True,
        )
        which, epoch = checkpoint(runtime, run_id)
        classes = actions.attempt(lambda: image_job.classes_of(runtime.home, run_id)) or ()
        label = _class(classes, run_id, can_be_all=layout != "plane")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        each = inference.shown_classes(classes, label)
        seeds = _seeds(layout, each)
        more = _layout_options(layout) | _latent_options(runtime, run_id)
        pressed = _button(is_busy or seeds is None)
    if not pressed or seeds is None:
        return None
    return ImageRequest(
        run_id,
        len(seeds) * each if layout == "grid" else ImageRequest.count,
        seeds[0],
        label,
        which,
        epoch,
        seeds,
        layout,
        **more,
    )


def select_strip(run_id: str, seeds: Sequence[int]) -> None:
    """Fills in the form for the images between these seeds. To be called before it is drawn."""
    st.session_state[_layout_key(run_id)] = "strip"
    text = ", ".join(map(str, seeds))
    for has_classes in (False, True):
        st.session_state[_seeds_key("strip", has_classes)] = text


def frames_of_strip() -> int:
    """The images per pair that the form has, or would have."""
    return int(st.session_state.get(_frames_key("strip"), USUAL_FRAMES["strip"]))


def _frames_key(layout: Layout) -> str:
    return f"generate.frames.{layout}"


def _layout_key(run_id: str) -> str:
    return f"generate.layout.{run_id}"


def _seeds_key(layout: Layout, has_classes: bool) -> str:
    return f"generate.seeds.{layout}.{has_classes}"


def _seeds(layout: Layout, classes: int) -> list[int] | None:
    usual = SEEDS_OF_EACH_CLASS if layout == "grid" and classes > 1 else USUAL_SEEDS[layout]
    text = st.text_input(
        "Seeds",
        usual,
        key=_seeds_key(layout, classes > 1),
        width=180,
        help=SEEDS_HELP[layout],
    )
    return actions.attempt(lambda: image_job.seeds_of(text))


def _layout_options(layout: Layout) -> dict[str, Any]:
    if layout == "grid":
        return {}
    label, counts = FRAMES[layout]
    usual = USUAL_FRAMES[layout]
    frames = st.selectbox(label, counts, counts.index(usual), key=_frames_key(layout), width=140)
    if layout == "strip":
        return {"frames": frames}
    reach = st.selectbox(
        "Reach",
        REACHES,
        len(REACHES) - 1,
        format_func=lambda degrees: f"{degrees}°",
        key="generate.reach",
        width=110,
        help="From the center to the edges. At 90° the edges show the images of the directions.",
    )
    return {"frames": frames, "reach_deg": float(reach)}


def _latent_options(runtime: Runtime, run_id: str) -> dict[str, Any]:
    """The truncation, and the numbers that the networks are conditioned on."""
    values = {}
    for condition in actions.attempt(lambda: image_job.conditions_of(runtime.home, run_id)) or ():
        value = st.number_input(
            f"{condition.title} ({condition.unit})",
            condition.low,
            condition.high,
            None,
            placeholder=OF_HELD_OUT,
            key=f"generate.{condition.field}",
            width=160,
            help=f"Empty: as in held-out data. Example: {condition.usual:.12g} {condition.unit}.",
        )
        if value is not None:
            values[condition.field] = float(value)
    truncation = st.selectbox(
        "Truncation",
        TRUNCATIONS,
        format_func=lambda most: f"±{most}" if most else "None",
        key="generate.truncation",
        width=120,
        help=TRUNCATION_HELP,
    )
    return {"truncation": truncation, "values": values}


def _button(disabled: bool) -> bool:
    return actions.button(
        "Generate",
        key="generate.start",
        type="primary",
        icon=":material/add_photo_alternate:",
        disabled=disabled,
    )


def _image_to_image_form(runtime: Runtime, run_id: str, is_busy: bool) -> ImageRequest | None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which, epoch = checkpoint(runtime, run_id)
        count = st.selectbox("Images", COUNTS, key="generate.count", width=110)
        seed = st.number_input(
            "Seed", 0, MOST_SEED, key="generate.seed", width=130, help="Selects the tiles."
        )
        pressed = _button(is_busy)
    upload = ""
    if actions.attempt(lambda: image_job.changes_images(runtime.home, run_id)):
        upload = _upload(runtime, run_id)
    if not pressed:
        return None
    return ImageRequest(run_id, count, int(seed), "", which, epoch, upload=upload)


def _upload(runtime: Runtime, run_id: str) -> str:
    """The id of the user's uploaded image; "" for held-out images."""
    if refusal := access.actor().refusal:
        st.caption(refusal)
        return ""
    file = st.file_uploader(
        "Your image (default: held-out images)",
        key=f"generate.upload.{run_id}",
        help="A PNG, JPEG or WebP. Its middle is scaled to one tile.",
    )
    if file is None:
        return ""
    if file.size and not uploads.place(runtime.home, file.file_id).exists():
        runtime.commands.keep_upload(file.file_id, file.getvalue())
    return file.file_id


def checkpoint(runtime: Runtime, run_id: str, place: str = "generate") -> tuple[Which, int | None]:
    """A checkpoint, or the newest one with the weights of an epoch. Draws nothing if there is no
    choice.
    """
    steps = image_job.checkpoints_of(runtime.home, run_id)
    stored = actions.attempt(lambda: inference.stored_epochs(runtime.home.run_dir(run_id))) or []
    named: list[tuple[Which, int | None]] = [(which, None) for which in steps]
    choices = [*named, *(("newest", epoch) for epoch in reversed(stored))]
    if len(set(steps.values())) < 2 and not stored:
        return choices[0]

    def title(choice: tuple[Which, int | None]) -> str:
        which, epoch = choice
        if epoch is not None:
            return f"Epoch {epoch}"
        return f"{which.capitalize()}, step {formats.count(steps[which])}"

    chosen: tuple[Which, int | None] = st.selectbox(
        "Checkpoint",
        choices,
        format_func=title,
        key=f"{place}.checkpoint.{run_id}",
        width=200,
        help=CHECKPOINT_HELP,
    )
    return chosen


def _class(classes: tuple[str, ...], run_id: str, can_be_all: bool) -> str:
    """The selected class; draws nothing for networks without classes."""
    if not classes:
        return EVERY_CLASS
    return str(
        st.selectbox(
            "Class",
            [*([EVERY_CLASS] if can_be_all else []), *classes],
            format_func=lambda name: words.plain(name) if name else "All classes",
            key=f"generate.class.{can_be_all}.{run_id}",
            width=160,
        )
    )
