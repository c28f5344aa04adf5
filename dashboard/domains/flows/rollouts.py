"""A stored rollout: its facts, its numbers by step, its time by stage, and what pages say about
it. No Streamlit.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from dashboard import words
from dashboard.domains.flows.charts import COPIED, FLOW, REPLAYED
from gan_runtime.base import formats
from gan_runtime.domains.flows import scores
from gan_runtime.domains.flows.facts import Rollout
from gan_runtime.engines.tiles import ONCE, STAGES
from gan_runtime.records.answer import EPOCH_PREFIX
from gan_runtime.store import queries
from gan_runtime.store.queries import EvaluationRow
from gan_runtime.store.store import Store

MOST_STROUHAL = 0.8  # end of a spectrum: vortices shed at 0.15 to 0.2, and overtones follow
REFERENCES = {"persistence": COPIED, "replay": REPLAYED, "truth": FLOW}
STAGES_CURVE = "stages"  # the curve with time by stage instead of numbers by step


def rollout(row: EvaluationRow) -> Rollout:
    """The facts of an answer."""
    return Rollout.model_validate(row.facts)


def is_stored_epoch(row: EvaluationRow) -> bool:
    """Whether its weights are those stored after an epoch, not a checkpoint's."""
    return row.checkpoint.startswith(EPOCH_PREFIX)


def film_file(store: Store, row: EvaluationRow) -> str:
    """The file of its frames in the run's folder; "" if it has none."""
    arrays = queries.evaluation_arrays(store, row)
    return next((array.file for array in arrays if array.name == "frames"), "")


def steps_of(store: Store, row: EvaluationRow) -> pd.DataFrame:
    """Numbers by step: score, series (prediction, persistence, truth, replay), step, value."""
    numbers = [
        curve.number
        for curve in queries.evaluation_curves(store, row)
        if curve.name != STAGES_CURVE
    ]
    points = queries.curve_points(store, row, numbers)
    return points.rename(columns={"curve": "score", "x": "step"})[
        ["score", "series", "step", "value"]
    ]


def stages_of(store: Store, row: EvaluationRow) -> pd.DataFrame:
    """Time by stage: stage, seconds (of all calls), times (calls), median_s (of one call)."""
    curves = {curve.name: curve for curve in queries.evaluation_curves(store, row)}
    if STAGES_CURVE not in curves:
        return pd.DataFrame(columns=["stage", "seconds", "times", "median_s"])
    curve = curves[STAGES_CURVE]
    points = queries.curve_points(store, row, [curve.number])
    frame = points.pivot(index="x", columns="series", values="value").sort_index()
    return frame.reset_index(drop=True).assign(stage=curve.facts["names"])


def by_step(steps: dict[str, pd.DataFrame], score: str) -> pd.DataFrame:
    """A score by step: series, step, value. The references of the first rollout come first.

    `steps`: name → frame as `steps_of`.
    """
    parts = []
    for place, (name, frame) in enumerate(steps.items()):
        of_score = frame[frame["score"] == score]
        references = REFERENCES if place == 0 else {}
        for series, title in [*references.items(), ("prediction", name)]:
            line = of_score[of_score["series"] == series]
            part = pd.DataFrame(
                {"series": title, "step": line["step"], "value": line["value"].astype(float)}
            )
            parts.append(part[np.isfinite(part["value"])])
    return (
        pd.concat(parts, ignore_index=True)
        if parts
        else pd.DataFrame(columns=["series", "step", "value"])
    )


def spectra(probe: pd.DataFrame, solver_steps: int, diameter: float) -> pd.DataFrame:
    """Spectra: series, frequency (Strouhal number), share (amplitude, of the highest of all).

    `probe`: of `by_step`, a number per frame; `solver_steps`: between two frames; `diameter`: of
    the obstacle, in cells. A series with a gap, as of a model that diverged, has no spectrum.
    """
    parts = []
    for name, signal in probe.groupby("series", sort=False):
        if len(signal) < scores.LEAST_SAMPLES or len(signal) <= signal["step"].max():
            continue
        frequency, power = scores.power_spectrum(
            signal.sort_values("step")["value"].to_numpy(float)
        )
        number = frequency * scores.strouhal(1.0, solver_steps, diameter)
        part = pd.DataFrame({"series": name, "frequency": number, "share": power**0.5})
        parts.append(part[part["frequency"] <= MOST_STROUHAL])
    if not parts:
        return pd.DataFrame(columns=["series", "frequency", "share"])
    rows = pd.concat(parts, ignore_index=True)
    highest = rows["share"].max()
    return rows.assign(share=rows["share"] / highest if highest > 0 else rows["share"])


def whole_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Seconds of all steps by stage: bar, stage, place, amount.

    `stages`: bar → frame as `stages_of`.
    """
    return _bars({name: frame.assign(amount=frame["seconds"]) for name, frame in stages.items()})


def frame_times(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Milliseconds of one frame by stage, without stages that happen once."""
    repeated = {name: frame[~frame["stage"].isin(ONCE)] for name, frame in stages.items()}
    return _bars(
        {name: frame.assign(amount=1e3 * frame["median_s"]) for name, frame in repeated.items()}
    )


def _bars(stages: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """A stage that this version does not know comes last."""
    frames = [frame.assign(bar=name) for name, frame in stages.items() if len(frame)]
    if not frames:
        return pd.DataFrame(columns=["bar", "stage", "place", "amount"])
    rows = pd.concat(frames, ignore_index=True)
    places = (
        rows["stage"].map({name: place for place, name in enumerate(STAGES)}).fillna(len(STAGES))
    )
    titles = rows["stage"].str.replace("_", " ").str.capitalize()
    return rows.assign(stage=titles, place=places.astype(int))[["bar", "stage", "place", "amount"]]


NO_ROLLOUT = (
    "This run has no rollout yet. Press Run rollout. After about a minute, flow and prediction,"
    " errors by step, the wake's frequency and the times appear here."
)
NO_FRAMES = (
    "The film of this rollout is missing or damaged, or the run was imported without films. Run"
    " the rollout again where the run was trained."
)
NOT_A_FLOW = (
    "This rollout is of images, not of a flow. See its scores below, and its images on the tab"
    " Samples."
)
WAYS = {"naive": "one core, in turn", "map_reduce": "map-reduce", "whole": "whole image"}
PROBE = (
    "The probe in the wake measures the velocity across the stream, which swings once per pair"
    " of shed eddies. Its Strouhal number is f D / U, with D the obstacle's size and U the"
    " inflow."
)
HORIZON = (
    "Dashed: the first frame, copied; it is nearly right again after each shedding period. Dotted:"
    " the film that follows the nearest training frame (replay). Horizon: the prediction beats the"
    " replay at every step before it, or the copy if there is no replay. The RMSE hardly sees"
    " short waves; the spectrum does. Copy and replay are frames of the solver."
)
HORIZON_HELP = (
    "A replay starts with the distance between both flows; a prediction starts without an error,"
    " which then grows. A copy of the first frame is nearly right after each shedding period."
)
PHYSICS = "Enstrophy 1: eddies as strong as in the flow. Seams 1: no visible tile borders."
TIMES = (
    "Tracing and compiling happen once, all other stages at each step. The line is the solver that"
    " simulated the flow, on the same machine: the network has to be faster."
)
ELSEWHERE, HERE, ESTIMATED = "measured elsewhere", "measured here", "estimated"
NOT_ESTIMATED = (
    "These runs are not compiled for a TPU yet. Open the TPU check to compile them; the result"
    " then appears here."
)
OTHER_TIMES = (
    "KIT's epochs have other data and an unknown number of frames. Compare how the time falls with"
    " the batch, not the seconds."
)


def parts(row: EvaluationRow) -> dict[str, str]:
    """What distinguishes a rollout from others of its run, in addition to the epoch, in words."""
    facts = rollout(row)
    tiles = f"{facts.tile[0]} px tiles" if facts.way != "whole" else ""
    blend = " (Hann)" if facts.blend == "hann" else ""
    overlap = f", {facts.overlap} px overlap{blend}" if tiles and facts.overlap else ""
    shared = f" on {formats.quantity(facts.cores, 'core')}" if facts.cores > 1 else ""
    return {
        **({"weights": "stored weights"} if is_stored_epoch(row) else {}),
        "flow": flow(facts),
        "steps": formats.quantity(facts.steps, "step"),
        "way": f"{WAYS.get(facts.way, facts.way)}{shared}",
        "tiles": f"{tiles}{overlap}" or "no tiles",
    }


def film_title(name: str, row: EvaluationRow) -> str:
    """The text over each frame of a film's file.

    `name`: of the rollout, which can contain the epoch.
    """
    epoch = f"{'weights of ' if is_stored_epoch(row) else ''}epoch {row.epoch}"
    return name if epoch in name else f"{name} · {epoch}"


def state(row: EvaluationRow) -> str:
    """The weights of a rollout: "newest checkpoint, epoch 50", "weights stored after epoch 3"."""
    return (
        f"weights stored after epoch {row.epoch}"
        if is_stored_epoch(row)
        else f"{row.checkpoint} checkpoint, epoch {row.epoch}"
    )


def replay(source: str) -> str:
    """The source of the replay, in a sentence; "" if none was measured."""
    if not source:
        return ""
    film = words.plain(source)
    return f"Replay: {film} of the training films, the most similar to the given frame."


def subject(row: EvaluationRow) -> str:
    """The weights of a rollout, and what distinguishes it."""
    checkpoint = "stored weights" if is_stored_epoch(row) else f"{row.checkpoint} checkpoint"
    about = ", ".join(part for name, part in parts(row).items() if name != "weights")
    return f"epoch {row.epoch} ({checkpoint}): {about}"


def flow(facts: Rollout) -> str:
    """The film of a rollout and its first frame. Records of version 0.2.0 have no film name."""
    name = facts.film or ("images" if facts.reynolds is None else f"Re {facts.reynolds:g}")
    return f"{name} from frame {facts.start}" if facts.start else name


def step(number: int, period: float | None) -> str:
    """The label of a frame: "step 12 · 0.5 periods"."""
    beats = "" if period is None else f" · {number / period:.1f} periods"
    return f"step {number}{beats}" if number else "given frame"
