"""More images of a trained run: a form, its job, and the result.

The job's process stays alive, so that after the first request the page can wait for the images.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st
from PIL import Image

from dashboard import actions, missing_checkpoint, plots, widgets, words
from dashboard.samples import generate_form, seed_sheet
from dashboard.samples.seed_sheet import NARROWEST, PICKED, WIDEST, SheetImages
from gan_runtime.base import formats
from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.bundles import generator_export
from gan_runtime.bundles.generator_export import EXPORT_FILE, ExportRequest
from gan_runtime.commands.runtime import Runtime
from gan_runtime.jobs import image_job
from gan_runtime.jobs.folder import JobSnapshot
from gan_runtime.jobs.image_job import ARRAYS_FILE, FILM_FILE, PICTURE_FILE, ImageRequest
from gan_runtime.jobs.process import POLL_SECONDS
from gan_runtime.records.home import Home
from gan_runtime.store.queries import RunRow

WAITED_S = 3.0  # for a job, before the page shows its progress
MOST_NAMED = 8  # seeds in a sentence
ARRAYS_HELP = (
    "A NumPy .npz file: each image as the network made it, and its conditions. Values of images are"
    " from -1 to 1."
)

EXPORT_HELP = (
    "A zip with a Keras file, a SavedModel and an ONNX file, which open without this program. It"
    " also has a README that loads them, and a model card with data, quality and hardware."
)


def show(runtime: Runtime, row: RunRow) -> None:
    """More images of a run, below its samples."""
    st.header("Generate images", anchor=False)
    if not image_job.checkpoints_of(runtime.home, row.run_id):
        missing_checkpoint.show(runtime, row)
        return
    snapshot = image_job.newest_images(runtime.home, row.run_id)
    request = generate_form.form(runtime, row.run_id, snapshot is not None and snapshot.is_live)
    if request is not None:
        _start(runtime, request)
    if snapshot is not None and snapshot.is_live:
        widgets.job_bar(
            runtime,
            snapshot,
            _progress_text,
            widgets.EndButton(f"generate.cancel.{snapshot.job.job_id}"),
        )
    elif snapshot is not None:
        _show_end(runtime, snapshot, row.name)


def show_export(runtime: Runtime, row: RunRow) -> None:
    """The trained model as files for other programs."""
    if not image_job.checkpoints_of(runtime.home, row.run_id):
        return
    st.header("Export the model", anchor=False)
    st.caption(EXPORT_HELP)
    snapshot = generator_export.newest_export(runtime.home, row.run_id)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        which, epoch = generate_form.checkpoint(runtime, row.run_id, "export")
        pressed = actions.button(
            "Export",
            key="export.start",
            icon=":material/deployed_code:",
            disabled=snapshot is not None and snapshot.is_live,
        )
    request = ExportRequest(row.run_id, which, epoch)
    if pressed and actions.succeeded(
        lambda: runtime.commands.request_job(generator_export.EXPORT, request)
    ):
        st.rerun()
    if snapshot is not None and snapshot.is_live:
        end_button = widgets.EndButton(f"export.cancel.{snapshot.job.job_id}")
        widgets.job_bar(runtime, snapshot, _export_text, end_button)
    elif snapshot is not None:
        _show_export(snapshot)


def _export_text(snapshot: JobSnapshot) -> str:
    return f"Exporting: {widgets.job_sentence(snapshot)}"


def _show_export(snapshot: JobSnapshot) -> None:
    """The file of the newest export, or why there is none."""
    if snapshot.end is None:
        return
    if snapshot.state != "finished":
        st.error(words.plain(snapshot.end.reason), icon=":material/error:")
        return
    file, result = snapshot.job.results / EXPORT_FILE, snapshot.end.result
    if not file.exists():
        st.caption("The last export was deleted. Press Export again.")
        return
    request = ExportRequest(**snapshot.request.options)
    st.caption(
        words.plain(
            f"{request.weights.capitalize()}, after step {formats.count(int(result['step']))}:"
            f" {formats.size(result['bytes'])}."
        )
    )
    name = f"{request.run_id}-model.zip"
    _download("Download model", file.read_bytes, name, "application/zip", "A zip with a README.")


def _start(runtime: Runtime, request: ImageRequest) -> None:
    """Requests the images and waits a moment, which is enough if the networks are loaded."""
    with st.spinner("Generating …"):
        job = actions.attempt(lambda: runtime.commands.request_job(image_job.GENERATE, request))
        if job is None:
            return
        until = time.monotonic() + WAITED_S
        while job.end() is None and time.monotonic() < until:
            time.sleep(POLL_SECONDS)
    st.rerun()


def _progress_text(snapshot: JobSnapshot) -> str:
    return f"Generating images: {widgets.job_sentence(snapshot)}"


def _show_end(runtime: Runtime, snapshot: JobSnapshot, name: str) -> None:
    if snapshot.end is None:
        return
    if snapshot.state == "finished":
        _result(runtime, snapshot, snapshot.end.result, name)
    else:
        st.error(words.plain(snapshot.end.reason), icon=":material/error:")


def _result(runtime: Runtime, snapshot: JobSnapshot, result: dict[str, Any], name: str) -> None:
    """The image, its description, and the files to download."""
    image, arrays = snapshot.job.results / PICTURE_FILE, snapshot.job.results / ARRAYS_FILE
    if not image.exists() or not arrays.exists():
        st.caption("The last images were deleted. Press Generate again.")
        return
    request = ImageRequest(**snapshot.request.options)
    count = int(result.get("count", request.count))  # not in older results
    description = _in_words(request, count, int(result["step"]), name)
    film = snapshot.job.results / FILM_FILE
    images = _images_to_pick(arrays, request)
    if images is not None:
        _sheet_to_pick_from(runtime, images, request, snapshot.job.job_id)
    else:
        with Image.open(image) as opened:
            width = min(max(opened.width, NARROWEST), WIDEST)
        with st.container(horizontal=True):
            st.image(image.read_bytes(), width=width, alt=description)
            if film.exists():
                st.image(film.read_bytes(), alt=f"The same images one after another. {description}")
    st.caption(words.plain(description))
    for warning in result["warnings"]:
        st.caption(words.plain(warning))
    _downloads(request, image, film, arrays)


def _images_to_pick(file: Path, request: ImageRequest) -> SheetImages | None:
    if request.layout != "grid" or not request.seeds:
        return None
    return seed_sheet.images_of(str(file), len(request.seeds))


def _sheet_to_pick_from(
    runtime: Runtime, images: SheetImages, request: ImageRequest, job_id: str
) -> None:
    """The images of a grid. A click picks a seed; a button shows the images between the picks."""
    names: tuple[str, ...] = ()
    with contextlib.suppress(GanRuntimeError):  # then classes are shown as numbers
        names = image_job.classes_of(runtime.home, request.run_id)
    chart, width = seed_sheet.chart(images, request.seeds, names)
    key = f"generate.sheet.{job_id}"
    with st.container(width=width):
        plots.chart(chart, key, on_select="rerun", selection_mode=[PICKED])
    clicked = st.session_state.get(key, {}).get("selection", {}).get(PICKED, [])
    if not clicked:
        return
    seeds = [int(click["seed"]) for click in clicked]
    strip = replace(
        request, layout="strip", seeds=seeds, seed=seeds[0], frames=generate_form.frames_of_strip()
    )
    obstacle = obstacle_of(runtime.home, strip)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Picked: {_seeds_in_words(seeds)}.", width="content")
        pressed = actions.button(
            "Show what lies between",
            key="generate.between",
            icon=":material/animation:",
            disabled=bool(obstacle),
            on_click=generate_form.select_strip,
            args=(request.run_id, seeds),
            help=obstacle or None,
        )
    if pressed:
        _start(runtime, strip)


def obstacle_of(home: Home, strip: ImageRequest) -> str:
    """The reason why the strip cannot be requested; else ""."""
    if len(strip.seeds) < 2:
        return "Pick one more image."
    try:
        image_job.check(home, strip)
    except GanRuntimeError as error:
        return words.plain(str(error))
    return ""


def _downloads(request: ImageRequest, image: Path, film: Path, arrays: Path) -> None:
    stem = re.sub(
        r"[^A-Za-z0-9]+",
        "-",
        f"{request.run_id} {request.label} {_seeds_in_words(request.seeds or [request.seed])}",
    ).strip("-")
    with st.container(horizontal=True):
        _download("Image", image.read_bytes, f"{stem}.png", "image/png", "A PNG file.")
        if film.exists():
            _download("Film", film.read_bytes, f"{stem}.gif", "image/gif", "A GIF file that loops.")
        _download(
            "Arrays", arrays.read_bytes, f"{stem}.npz", "application/octet-stream", ARRAYS_HELP
        )


def _in_words(request: ImageRequest, count: int, step: int, name: str) -> str:
    """64 images of quick-0007, class 3, seeds 0 to 63, by its newest checkpoint (after step
    1,050).
    """
    details = filter(
        None,
        [
            f"class {request.label}" if request.label else "",
            _seeds_in_words(request.seeds or [request.seed]),
            *(f"{name} {value:g}" for name, value in request.values.items()),
            f"truncation ±{request.truncation:g}" if request.truncation else "",
        ],
    )
    weights = f"its {request.checkpoint} checkpoint"
    if request.epoch is not None:
        weights = f"the weights of epoch {request.epoch}"
    return (
        f"{_content(request, count)} {name}, {', '.join(details)}, by {weights} (after step"
        f" {formats.count(step)})."
    )


def _content(request: ImageRequest, count: int) -> str:
    if request.upload:
        return "Your image, and the output of"
    if request.layout == "strip":
        return f"{request.frames} images from each seed to the next, of"
    if request.layout == "plane":
        side = request.frames
        return f"A plane of {side} × {side} images, {request.reach_deg:g}° to each side, of"
    return f"{formats.quantity(count, 'image')} of"


def _seeds_in_words(seeds: Sequence[int]) -> str:
    """As "seed 3", "seeds 0 to 63" or "seeds 3, 17, 42"."""
    if len(seeds) > 2 and seeds == list(range(seeds[0], seeds[-1] + 1)):
        return f"seeds {seeds[0]} to {seeds[-1]}"
    more = " …" if len(seeds) > MOST_NAMED else ""
    return f"seed{'s' if seeds[1:] else ''} {', '.join(map(str, seeds[:MOST_NAMED]))}{more}"


def _download(label: str, read: Callable[[], bytes], name: str, kind: str, text: str) -> None:
    """A download button; the file is read when it is pressed."""
    st.download_button(
        label,
        read,
        name,
        kind,
        on_click="ignore",
        key=f"generate.download.{label}",
        icon=":material/download:",
        help=text,
    )
