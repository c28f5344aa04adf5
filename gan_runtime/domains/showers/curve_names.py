"""What curves of showers are called, and how they are read. No library is needed for it. Scores: domains/showers/score_metrics.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["profile", "curve", "spectrum", "shares", "matrix", "map"]


@dataclass(frozen=True)
class CurveWords:
    """`title`: the question. `axis`, `values`: titles of both axes, with units. `kind`: "profile" over cells, "curve" over energies,
    "spectrum" over energies of cells, "shares" of showers over a number, "matrix" row after row, "map" over two numbers. `judged`:
    whether it is what the judging network reads."""

    name: str
    title: str
    axis: str
    values: str
    kind: Kind
    judged: bool = False


_ENERGY, _SHOWERS = "Energy (GeV)", "Share of the showers"
CURVES = (
    CurveWords("along_z", "How deep does the energy go?", "Layer", _ENERGY, "profile"),
    CurveWords("along_y", "How wide is a shower along y?", "Cell along y", _ENERGY, "profile"),
    CurveWords("along_x", "How wide is a shower along x?", "Cell along x", _ENERGY, "profile"),
    CurveWords("layers", "Which layers go together?", "Layer", "Correlation", "matrix"),
    CurveWords("sampling_fraction", "Which share of the energy is seen?", "Incident energy (GeV)", "Visible / incident energy", "curve"),
    CurveWords("spectrum", "How much energy do cells have?", "Energy of a cell (MeV)", "Cells of a shower", "spectrum"),
    CurveWords("hits", "How many cells are hit?", "Cells above 0.2 MeV", _SHOWERS, "shares"),
    CurveWords("visible", "How much energy is visible?", "Visible energy (GeV)", _SHOWERS, "shares"),
    CurveWords("response", "How much does the seen share vary?", "Visible / incident energy", _SHOWERS, "shares"),
    CurveWords("angles", "Which angles are measured?", "Measured angle (rad)", _SHOWERS, "shares"),
    CurveWords("belief", "Can it tell real from generated?", "Output of the judging network (1: real)", _SHOWERS, "shares", judged=True),
    CurveWords("read_energy", "Which energy does it read?", "Incident energy (GeV)", "Read / incident energy", "curve", judged=True),
    CurveWords("read_error", "How far is what it reads off?", "Read / incident energy − 1", _SHOWERS, "shares", judged=True),
    CurveWords("angle_map", "Is the angle as asked?", "Asked angle (°)", "Measured angle (°)", "map"),
    *(CurveWords(f"peak_{axis}", f"Where is the brightest cell along {axis}?", name, _SHOWERS, "shares") for axis, name in (("z", "Layer"), ("y", "Cell along y"), ("x", "Cell along x"))),
    *(CurveWords(f"mean_{axis}", f"Where is the middle along {axis}?", f"Mean along {axis} (cells)", _SHOWERS, "shares") for axis in "zyx"),
    *(CurveWords(f"width_{axis}", f"How wide along {axis}, shower by shower?", f"Width along {axis} (cells)", _SHOWERS, "shares") for axis in "zyx"),
    *(CurveWords(f"skew_{axis}", f"How lopsided along {axis}?", f"Cubic root of the third moment along {axis} (cells)", _SHOWERS, "shares") for axis in "zyx"),
)  # fmt: skip
