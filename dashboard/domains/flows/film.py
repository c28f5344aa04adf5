"""The tab Film: a rollout next to the flow under one slider with a play button, and the film as a
file.

The browser gets all frames at once and plays them without fragments or server requests.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from dashboard import words
from dashboard.domains.flows import movie, rollouts
from dashboard.domains.flows import panels as flow_panels
from dashboard.domains.flows.curves import shedding_period
from dashboard.domains.flows.panels import FRAMES_PER_S, QUANTITIES, FilmPanel, FlowQuantity
from dashboard.domains.flows.rollouts import film_file, rollout
from dashboard.evaluation.answers import Selection
from gan_runtime.base.errors import PictureError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.domains.flows.fields import FLOW_CHANNELS
from gan_runtime.records import image_files
from gan_runtime.records.image_files import Frames
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store.queries import EvaluationRow

MOST_FILMS = 8  # films in memory, some megabytes each
FILES: dict[str, tuple[str, movie.Maker]] = {
    "gif": ("image/gif", movie.gif),
    "mp4": ("video/mp4", movie.mp4),
}
FILES_HELP = (
    "Flow, prediction and difference side by side, with their color scales. Rendered when"
    " you press the button."
)


_FOLDER = Path(__file__).parent
_HTML, _CSS, _JS = (
    (_FOLDER / f"player.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
)
_mount = st.components.v2.component("flow_player", html=_HTML, css=_CSS, js=_JS)


def draw(runtime: Runtime, selection: Selection) -> None:
    """The tab: the film of the first answer, or why there is none."""
    (name, row), period = selection.first, shedding_period(selection)
    facts, file = rollout(row), film_file(runtime.store, row)
    if facts.reynolds is None or facts.grid[-1] < len(FLOW_CHANNELS):
        st.info(rollouts.NOT_A_FLOW)
        return
    if not file:
        st.info(rollouts.NO_FRAMES)
        return
    run = runtime.home.run_dir(row.run_id)
    bar = st.container(horizontal=True, vertical_alignment="bottom")
    with bar:
        quantity = _quantity()
    try:
        film = _film(_key(row), quantity.name, period, run, row, file)
    except PictureError:  # the file is missing, damaged, or of another rollout
        st.info(rollouts.NO_FRAMES)
        return
    with bar:
        _files(run, row, quantity, film["steps"], rollouts.film_title(name, row), file)
    _play(film, key="flow.player")
    st.caption(f"Film of {words.plain(name)} ({words.plain(rollouts.state(row))}). {quantity.text}")


def _quantity() -> FlowQuantity:
    names = {quantity.name: quantity for quantity in QUANTITIES}
    name = st.segmented_control(
        "Quantity",
        list(names),
        default=QUANTITIES[0].name,
        format_func=lambda name: names[name].title,
        key="flow.quantity",
        required=True,
        label_visibility="collapsed",
    )
    return names[str(name)]


@st.cache_data(show_spinner="Drawing the film …", max_entries=MOST_FILMS)
def _film(
    key: str, quantity: str, period: float | None, _run: RunDir, _row: EvaluationRow, _file: str
) -> dict[str, Any]:
    """The data of the player; the film opens after one shedding period.

    `key`: of the rollout, whose frames never change.

    Raises:
        PictureError: the file is missing or damaged, or its frames have another grid.
    """
    frames = _frames(_run, _row, _file)
    steps = [rollouts.step(int(step), period) for step in frames.steps]
    first = len(steps) - 1 if period is None else int((frames.steps <= period).sum()) - 1
    return film_data(
        _panels(frames, flow_panels.quantity_of(quantity)), steps, first, f"{key}.{quantity}"
    )


def _frames(run: RunDir, row: EvaluationRow, file: str) -> Frames:
    """The frames of a rollout, checked against its record, which may come from another source."""
    frames = image_files.read_film(run, file)
    if frames.truth.shape[1:] != tuple(rollout(row).grid):
        raise PictureError("its frames have another grid than the rollout")
    return frames


def _panels(frames: Frames, quantity: FlowQuantity) -> tuple[FilmPanel, ...]:
    """The films of flow, prediction and difference; the mask channels mark the obstacle."""
    obstacle = np.any(frames.mask > 0.5, axis=-1)
    return flow_panels.panels(frames.truth, frames.predicted, obstacle, quantity)


def _files(
    run: RunDir, row: EvaluationRow, quantity: FlowQuantity, steps: list[str], name: str, file: str
) -> None:
    """Download buttons. Each file is made when its button is pressed; a button that cannot work is
    disabled with the reason.
    """
    for kind, (mime, make) in FILES.items():
        problem = movie.missing_encoder() if make is movie.mp4 else ""
        st.download_button(
            kind.upper(),
            data=partial(_file_bytes, run, row, quantity, make, steps, name, file),
            file_name=f"flow-{_key(row).replace('.', '-')}-{quantity.name}.{kind}",
            mime=mime,
            on_click="ignore",
            key=f"flow.{kind}",
            icon=":material/movie:",
            help=problem or FILES_HELP,
            disabled=bool(problem),
        )


def _file_bytes(
    run: RunDir,
    row: EvaluationRow,
    quantity: FlowQuantity,
    make: movie.Maker,
    steps: list[str],
    name: str,
    file: str,
) -> bytes:
    return make(_panels(_frames(run, row, file), quantity), steps, name)


def _key(row: EvaluationRow) -> str:
    """The name of a rollout within a home."""
    facts = rollout(row)
    return f"{row.run_id}.{facts.iteration}.{facts.way}"


def film_data(
    panels: tuple[FilmPanel, ...], steps: list[str], first: int, name: str
) -> dict[str, Any]:
    """The data of the player.

    `steps`: the label of each frame; `first`: the frame it opens with; `name`: equal for equal
    films, so that a film continues when the page is redrawn.
    """
    _, height, width = panels[0].places.shape
    return {
        "film": name,
        "steps": steps,
        "first": first,
        "frames_per_s": FRAMES_PER_S,
        "height": height,
        "width": width,
        "across": flow_panels.across(panels[0]),
        "panels": [
            {
                "title": panel.title,
                "sheet": flow_panels.sheet(panel),
                "gradient": flow_panels.gradient(panel.scale.signed),
                "ticks": ticks(panel),
            }
            for panel in panels
        ],
    }


def ticks(panel: FilmPanel) -> list[str]:
    """The labels below the colors: both ends, and the unit between them."""
    low, high = panel.scale.low, panel.scale.high
    return [f"{low:g}".replace("-", "−"), panel.scale.unit, f"{high:g}"]


def _play(player: dict[str, Any], key: str) -> None:
    """Puts a film on the page."""
    _mount(data=player, key=key)
