"""What is stored of a rollout: its question, its numbers by step, where its time went. Frames of numbers, without Streamlit."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from dashboard.domains.flows.charts import COPIED, FLOW, REPLAYED
from gan_runtime.domains.flows import measures
from gan_runtime.engines.tiling.ways import ONCE, STAGES
from gan_runtime.records.flow import KEPT
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow
from gan_runtime.store.store import Store

MOST_STROUHAL = 0.8  # of the spectra that are drawn: a street beats at 0.15 to 0.2, and its overtones follow
REFERENCES = {"persistence": COPIED, "replay": REPLAYED, "truth": FLOW}
TIMES = "stages"  # the curve that holds no numbers by step


@dataclass(frozen=True)
class Rollout:
    """The facts of an answer, as they are in its record."""

    iteration: str
    way: str
    cores: int
    tile: list[int]
    overlap: int
    blend: str
    grid: list[int]
    reynolds: float | None
    trajectory: int
    start: int
    steps: int
    solver_steps: int | None
    film: str
    obstacle_width: float | None
    replay: str


def rollout(row: EvaluationRow) -> Rollout:
    """What an answer says of itself."""
    return Rollout(**{field.name: row.facts.get(field.name) for field in fields(Rollout)})  # type: ignore[arg-type]


def is_kept(row: EvaluationRow) -> bool:
    """Whether its weights are those that the run has kept after an epoch, and no checkpoint's."""
    return row.checkpoint.startswith(KEPT)


def film_file(store: Store, row: EvaluationRow) -> str:
    """The file of its frames in the run's folder; "" where it has none."""
    arrays = queries.evaluation_arrays(store, row)
    return next((array.file for array in arrays if array.name == "frames"), "")


def steps_of(store: Store, row: EvaluationRow) -> pd.DataFrame:
    """Numbers by step: score, series (prediction, persistence, truth, replay), step, value."""
    numbers = [curve.number for curve in queries.evaluation_curves(store, row) if curve.name != TIMES]
    points = queries.curve_points(store, row, numbers)
    return points.rename(columns={"curve": "score", "x": "step"})[["score", "series", "step", "value"]]


def stages_of(store: Store, row: EvaluationRow) -> pd.DataFrame:
    """Where the time went: stage, seconds (of all calls), times (calls), median_s (of one call)."""
    known = {curve.name: curve for curve in queries.evaluation_curves(store, row)}
    if TIMES not in known:
        return pd.DataFrame(columns=["stage", "seconds", "times", "median_s"])
    curve = known[TIMES]
    points = queries.curve_points(store, row, [curve.number])
    frame = points.pivot(index="x", columns="series", values="value").sort_index()
    return frame.reset_index(drop=True).assign(stage=curve.facts["names"])


def by_step(steps: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    """series, step, value of a score: first what the first rollout is compared with, then each rollout. `steps`: name → frame as
    `steps_of` gives it."""
    parts = []
    for place, (name, frame) in enumerate(steps.items()):
        own = frame[frame["score"] == score]
        references = REFERENCES if place == 0 else {}
        for series, title in [*references.items(), ("prediction", name)]:
            line = own[own["series"] == series]
            part = pd.DataFrame({"series": title, "step": line["step"], "value": line["value"].astype(float)})
            parts.append(part[np.isfinite(part["value"])])
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["series", "step", "value"])


def spectra(probe: pd.DataFrame, solver_steps: int, diameter: float) -> pd.DataFrame:
    """series, frequency (Strouhal number), share (amplitude, of the highest of all). `probe`: of `by_step`, a number a frame; `solver_steps`:
    between two of them; `diameter`: of the obstacle, in cells. A series with a gap, as of a model that ran away, has no spectrum."""
    parts = []
    for name, own in probe.groupby("series", sort=False):
        if len(own) < measures.LEAST_SAMPLES or len(own) <= own["step"].max():
            continue
        frequency, power = measures.spectrum(own.sort_values("step")["value"].to_numpy(float))
        number = frequency * measures.strouhal_of(1.0, solver_steps, diameter)
        part = pd.DataFrame({"series": name, "frequency": number, "share": power**0.5})
        parts.append(part[part["frequency"] <= MOST_STROUHAL])
    if not parts:
        return pd.DataFrame(columns=["series", "frequency", "share"])
    rows = pd.concat(parts, ignore_index=True)
    highest = rows["share"].max()
    return rows.assign(share=rows["share"] / highest if highest > 0 else rows["share"])


def whole_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """bar, stage, place, amount: seconds that all steps took, by stage. `stages`: bar → frame as `stages_of` gives it."""
    return _bars({name: frame.assign(amount=frame["seconds"]) for name, frame in stages.items()})


def frame_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """The same, milliseconds of one frame: what happens once is left out."""
    repeated = {name: frame[~frame["stage"].isin(ONCE)] for name, frame in stages.items()}
    return _bars({name: frame.assign(amount=1e3 * frame["median_s"]) for name, frame in repeated.items()})


def _bars(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A stage of another version of this program comes last."""
    named = [frame.assign(bar=name) for name, frame in stages.items() if len(frame)]
    if not named:
        return pd.DataFrame(columns=["bar", "stage", "place", "amount"])
    rows = pd.concat(named, ignore_index=True)
    places = rows["stage"].map({name: place for place, name in enumerate(STAGES)}).fillna(len(STAGES))
    titles = rows["stage"].str.replace("_", " ").str.capitalize()
    return rows.assign(stage=titles, place=places.astype(int))[["bar", "stage", "place", "amount"]]
