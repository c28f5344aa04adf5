"""Texts of the evaluation of showers: titles of curves, bins, sides, and what to do next."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dashboard import words
from gan_runtime.base import formats
from gan_runtime.domains.showers.domain import CHALLENGE
from gan_runtime.domains.showers.evaluation import SingleEnergyResult

Bounds = tuple[float, float]

SIMULATED = "simulated showers (held out)"
NOT_EVALUATED = (
    "This run is not evaluated yet. Press Measure showers. After about a minute, profiles, spectra,"
    " scores and showers side by side appear here."
)
NO_PAIR = "This evaluation has no stored showers. Measure again to store some."
OTHER_DATA = (
    f"Measured by others on other data, with far more showers: {CHALLENGE}. Their FPD and KPD use"
    " the same features and draws as the scores of that name above. Do not compare digits: both"
    " depend on the grid, and fewer showers make them larger."
)
SCALE_HELP = "A logarithmic scale shows faint tails; a linear one shows the core."
BEST_EPOCH = "By the rule of the 3DGAN authors, the smallest error of the sampling fraction"
ANY_ENERGY = (
    "The networks generate 100 showers of one energy and angle, and as many are simulated. This"
    " takes some seconds, and the result is stored. The pairs above are stored showers."
)
MAPS = {
    "layers": (
        "Correlation of the energies in two layers, each divided by the incident energy, over"
        " showers of all energies and angles. A shower that begins early has more energy in the"
        " first layers and less in the last."
    ),
    "angle_map": (
        "Share of the showers by requested angle and measured angle, over all energies. Dashed:"
        " both are equal."
    ),
}
JUDGED = (
    "D, the judging network, classifies showers that it has not seen, after training. It does not"
    " measure physics: it shows what training could still distinguish."
)
COLORS_OF_CELLS = (
    "Color: energy of a column of cells, logarithmic from 0.1 MeV to 10 GeV, the same in all"
    " panels."
)

CurveKind = Literal["profile", "curve", "spectrum", "shares", "matrix", "map"]


@dataclass(frozen=True)
class CurveWords:
    """Texts of a curve. `title`: its question; `axis`, `values`: titles of both axes.

    `kind`: "profile" over cells, "curve" over energies, "spectrum" over energies of cells, "shares"
    of showers over a number, "matrix" row by row, "map" over two numbers. `judged`: whether the
    judging network produces it.
    """

    name: str
    title: str
    axis: str
    values: str
    kind: CurveKind
    judged: bool = False


_GEV, _SHARE, _INCIDENT = "Energy (GeV)", "Share of the showers", "Incident energy (GeV)"
_VISIBLE, _READ = "Visible / incident energy", "Read / incident energy"
_AXES = ("z", "y", "x")
CURVES = (
    CurveWords("along_z", "How deep does the energy go?", "Layer", _GEV, "profile"),
    CurveWords("along_y", "How wide is a shower along y?", "Cell along y", _GEV, "profile"),
    CurveWords("along_x", "How wide is a shower along x?", "Cell along x", _GEV, "profile"),
    CurveWords("layers", "Which layers are correlated?", "Layer", "Correlation", "matrix"),
    CurveWords(
        "sampling_fraction", "What share of the energy is visible?", _INCIDENT, _VISIBLE, "curve"
    ),
    CurveWords(
        "spectrum",
        "How much energy do cells have?",
        "Energy of a cell (MeV)",
        "Cells of a shower",
        "spectrum",
    ),
    CurveWords("hits", "How many cells are hit?", "Cells above 0.2 MeV", _SHARE, "shares"),
    CurveWords("visible", "How much energy is visible?", "Visible energy (GeV)", _SHARE, "shares"),
    CurveWords("response", "How much does the visible share vary?", _VISIBLE, _SHARE, "shares"),
    CurveWords("angles", "Which angles are measured?", "Measured angle (rad)", _SHARE, "shares"),
    CurveWords(
        "belief",
        "Can D tell simulated from generated?",
        "Output of D (1: simulated)",
        _SHARE,
        "shares",
        judged=True,
    ),
    CurveWords("read_energy", "What energy does D read?", _INCIDENT, _READ, "curve", judged=True),
    CurveWords(
        "read_error", "How far off is that energy?", f"{_READ} − 1", _SHARE, "shares", judged=True
    ),
    CurveWords(
        "angle_map",
        "Is the angle as requested?",
        "Requested angle (°)",
        "Measured angle (°)",
        "map",
    ),
    *(
        CurveWords(
            f"peak_{axis}", f"Where is the brightest cell along {axis}?", cell, _SHARE, "shares"
        )
        for axis, cell in zip(_AXES, ("Layer", "Cell along y", "Cell along x"), strict=True)
    ),
    *(
        CurveWords(f"{name}_{axis}", title.format(axis), values.format(axis), _SHARE, "shares")
        for name, title, values in (
            ("mean", "Where is the middle along {}?", "Mean along {} (cells)"),
            ("width", "How wide is each shower along {}?", "Width along {} (cells)"),
            (
                "skew",
                "How lopsided is each shower along {}?",
                "Cube root of the third moment along {} (cells)",
            ),
        )
        for axis in _AXES
    ),
)


def source_of_simulated(name: str) -> str:
    """A sentence for charts of several runs: whose evaluation the held-out showers come from."""
    return f"The simulated showers are from the evaluation of {words.plain(name)}."


def energy(bounds: Bounds | None) -> str:
    """A bin in words: "20–95 GeV"."""
    return "All energies" if bounds is None else f"{bounds[0]:.3g}–{bounds[1]:.3g} GeV"


def angle(bounds: Bounds | None) -> str:
    """A bin in words: "63°–78°"."""
    return "All angles" if bounds is None else f"{degrees(bounds[0])}–{degrees(bounds[1])}"


def degrees(angle_rad: float | None) -> str:
    """An angle in words: "78°"."""
    return "–" if angle_rad is None else f"{math.degrees(angle_rad):.0f}°"


def shower(energy_gev: float, angle_rad: float | None) -> str:
    """The energy and the angle of a shower."""
    angle = "" if angle_rad is None else f", measured angle {degrees(angle_rad)}"
    return f"{energy_gev:.3g} GeV{angle}"


def energy_share(share: float) -> str:
    """How much of a shower is drawn, if not all."""
    return "" if share > 0.995 else f"Its brightest cells, {formats.percent(share)} of its energy."


def single_energy(showers: SingleEnergyResult, name: str, truth: str) -> str:
    """The result of a job for one energy and angle, and how it compares."""
    at = "" if showers.angle is None else f", measured angle {math.degrees(showers.angle):.4g}°"
    sentence = (
        f"**{showers.energy_gev:.4g} GeV{at}**: {showers.showers} showers by {words.plain(name)}"
        f" (step {formats.count(showers.step)}) and {showers.showers} {truth} showers."
        f" Visible share of the energy: {showers.response['generated']:.2%},"
        f" against {showers.response['real']:.2%}."
    )
    if showers.measured is not None:
        generated, real = (math.degrees(showers.measured[side]) for side in ("generated", "real"))
        sentence += f" Mean measured angle: {generated:.1f}°, against {real:.1f}°."
    return sentence
