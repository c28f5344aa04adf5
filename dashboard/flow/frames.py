"""What the charts of the Flow page draw, out of stored numbers. Frames in, a frame out."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard.flow.charts import COPIED, FLOW, REPLAYED
from gan_runtime.domains.flows import measures
from gan_runtime.engines.tiling.ways import ONCE, STAGES

MOST_STROUHAL = 0.8  # of the spectra that are drawn: a street beats at 0.15 to 0.2, and its overtones follow
REFERENCES = {"persistence": COPIED, "replay": REPLAYED, "truth": FLOW}


def by_step(steps: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    """series, step, value of a score: first what the first iteration is compared with, then each iteration. `steps`: series → frame as
    `queries.flow_steps` gives it."""
    parts = []
    for place, (name, frame) in enumerate(steps.items()):
        own = frame[frame["score"] == score]
        references = REFERENCES if place == 0 else {}
        for column, called in [*references.items(), ("value", name)]:
            part = pd.DataFrame({"series": called, "step": own["step"], "value": own[column].astype(float)})
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
    """bar, stage, place, amount: seconds that all steps took, by stage. `stages`: bar → frame as `queries.flow_stages` gives it."""
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
