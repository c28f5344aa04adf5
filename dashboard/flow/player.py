"""Flow, prediction and difference as films under one slider with a play button. The browser gets all frames at once and plays them alone:
neither a fragment nor the server takes part in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from dashboard.flow import colors
from dashboard.flow.panels import FRAMES_PER_S, Panel, across, sheet

_FOLDER = Path(__file__).parent
_HTML, _CSS, _JS = (
    (_FOLDER / f"player.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js")
)
_mount = st.components.v2.component("flow_player", html=_HTML, css=_CSS, js=_JS)


def film(panels: tuple[Panel, ...], steps: list[str], first: int, name: str) -> dict[str, Any]:
    """What the browser needs. `steps`: what is said of each frame; `first`: the frame it opens with; `name`: the same for the same film,
    so that it goes on when the page is drawn anew."""
    _, height, width = panels[0].places.shape
    return {
        "film": name,
        "steps": steps,
        "first": first,
        "frames_per_s": FRAMES_PER_S,
        "height": height,
        "width": width,
        "across": across(panels[0]),
        "panels": [
            {
                "title": panel.title,
                "sheet": sheet(panel),
                "gradient": colors.gradient(panel.scale.signed),
                "ticks": ticks(panel),
            }
            for panel in panels
        ],
    }


def ticks(panel: Panel) -> list[str]:
    """Below the colors: both ends, and between them the unit."""
    low, high = panel.scale.low, panel.scale.high
    return [f"{low:g}".replace("-", "−"), panel.scale.unit, f"{high:g}"]


def show(made: dict[str, Any], key: str) -> None:
    """Puts a film on the page."""
    _mount(data=made, key=key)
