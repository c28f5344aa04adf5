"""What the Flow page says in words: iterations, ways, what to do next."""

from __future__ import annotations

from dashboard import words
from gan_runtime.domains.flows.score_metrics import FlowScore
from gan_runtime.store.queries import FlowNumber, FlowRow

WHAT = (
    "A model that makes the next frame of a flow is fed with its own frames, again and again, from one true frame of a flow that it was not "
    "trained on. The flow itself runs beside it."
)
NO_RUN = (
    "No run here makes frames of a flow. Prepare the data set karman on the Data page, then start a run that reads it: workload pix2pix "
    "on Launch."
)
NOTHING_YET = (
    "Nothing is iterated of this choice yet. Press Iterate below: the flow beside its prediction, errors by step, the rate at which the wake "
    "beats, and where the time goes appear here after about a minute, and stay."
)
NO_CHECKPOINT = "There is no checkpoint of these runs here to iterate: a run saves one after each epoch, and bundles hold none."
NO_DATA = (
    "No flow is here that this run was not trained on: its data set is gone, holds none out, or holds pictures that are no flow. Prepare the data set again on the Data page, or pick "
    "another run."
)
NO_FRAMES = (
    "The film of this iteration is not here: its file is gone or damaged, or the run came without films. Where the run was trained, iterate it "
    "again to see one."
)
PICTURES = "This iteration is of pictures, not of a flow: its scores are below, and the Samples page has its pictures."
WAYS = {"naive": "one core, in turn", "map_reduce": "map-reduce", "whole": "whole image"}
WAYS_HELP = (
    "Map-reduce: the frame is cut into tiles, and one program for all cores makes these at once. One core, in turn: the same numbers, a few tiles at "
    "a time. Whole image: the network sees the frame uncut."
)
STATES_HELP = (
    "Checkpoints, or the weights that the run has kept after an epoch. The latter are of half precision, and what is measured of them is no score of "
    "the run."
)
OVERLAP_HELP = "Pixels that neighboring tiles have in common. With more of them seams fade, and there are more tiles to make."
BLEND_HELP = "How the tiles are put together where they overlap: the mean of both, or the more of a tile the nearer its middle (Hann)."
PROBE = (
    "The probe stands in the wake and hears the velocity across the stream: it swings once while a pair of eddies is shed. Its Strouhal number "
    "is f D / U, with D the obstacle and U the inflow."
)
HORIZON = (
    "Dashed: the first frame, copied; after each shedding period it is right again. Dotted: what followed the nearest frame of the training films. "
    "Up to the horizon the prediction is better at every step than the replay, or than the copy where no replay was measured."
)
LOWER_HELP = (
    "The mean error of a baseline over the first shedding period, divided by that of the prediction: above 1 the model is better, below 1 the "
    "baseline is. The replay takes, of all frames of the training films, the one nearest to the given frame, and what followed it there. "
    "Below the figure: the root mean square errors."
)
HORIZON_HELP = (
    "A replay is wrong from its first frame on, by the distance between both flows; a prediction begins without an error, which grows. "
    "A copy of the first frame is nearly right again after each shedding period."
)
PHYSICS = "Enstrophy 1: the eddies are as strong as those of the flow. Seams 1: no border of a tile is seen."
TIMES = (
    "Tracing and compiling happen once, all else at each step. The line is the solver that made the flow, on the same machine: what a network "
    "has to beat."
)
ELSEWHERE, HERE, ESTIMATED = "measured elsewhere", "measured here", "estimated"
NOT_ESTIMATED = "What a TPU would make of these runs is not compiled yet: the TPU check does it, and its answer then stands here."
OTHER_TIMES = (
    "KIT's times are not those of an epoch of this data, and its frames are not counted anywhere: compare how the time falls with the batch, not seconds "
    "with seconds."
)


def label(row: FlowRow, run: str) -> str:
    """An iteration, for a list."""
    return " · ".join([run, *_parts(row).values()])


def series(rows: list[tuple[str, FlowRow]]) -> list[str]:
    """What each of several iterations is called in charts: its run, and where that is not enough all in which they differ. Never twice the
    same name."""
    return _told_apart([(run, _parts(row), row.iteration) for run, row in rows])


def bars(rows: list[tuple[str, FlowRow]]) -> list[str]:
    """The same where ways are compared: of a single run the way comes first, not the run."""
    if len({run for run, _ in rows}) > 1:
        return series(rows)
    known = [(_parts(row), row.iteration) for _, row in rows]
    return _told_apart([(parts.pop("way"), parts, iteration) for parts, iteration in known])


def _told_apart(known: list[tuple[str, dict[str, str], str]]) -> list[str]:
    """`known`: of each what comes first, its parts in words, and what no other has."""
    firsts = [first for first, _, _ in known]
    if len(set(firsts)) == len(firsts):
        return firsts
    telling = [part for part in known[0][1] if len({parts[part] for _, parts, _ in known}) > 1]
    names = [" · ".join([first, *(parts[part] for part in telling)]) for first, parts, _ in known]
    return [
        f"{name} · {own}" if names.count(name) > 1 else name
        for name, (_, _, own) in zip(names, known, strict=True)
    ]


def _parts(row: FlowRow) -> dict[str, str]:
    tiles = f"{row.tile[0]} px tiles" if row.way != "whole" else ""
    overlap = (
        f", {row.overlap} px overlap{' (Hann)' if row.blend == 'hann' else ''}"
        if tiles and row.overlap
        else ""
    )
    shared = f" on {words.things(row.cores, 'core')}" if row.cores > 1 else ""
    return {
        "epoch": _epoch(row),
        "flow": flow(row),
        "steps": words.things(row.steps, "step"),
        "way": f"{WAYS.get(row.way, row.way)}{shared}",
        "tiles": f"{tiles}{overlap}" or "uncut",
    }


def _epoch(row: FlowRow) -> str:
    return f"{'weights of ' if row.is_kept else ''}epoch {row.epoch}"


def film_title(name: str, row: FlowRow) -> str:
    """Written over each frame of a film's file. `name`: of the iteration, which may say the epoch itself."""
    return name if _epoch(row) in name else f"{name} · {_epoch(row)}"


def number(score: FlowScore, value: float | None) -> str:
    """A score as it is read, without its unit: "0.912" or "2.1 %"; a dash where there is none."""
    return (
        "–"
        if value is None
        else f"{value:,{score.format}}".replace(",", words.THIN).replace("%", f"{words.THIN}%")
    )


def after(epoch: int | None) -> str:
    """Weights to choose: "Epoch 3"; those before training are of epoch 0."""
    return f"Epoch {epoch}" if epoch else "Untrained (epoch 0)"


def state(row: FlowRow) -> str:
    """Which weights an iteration is of: "newest checkpoint, epoch 50", "weights kept after epoch 3"."""
    return (
        f"weights kept after epoch {row.epoch}"
        if row.is_kept
        else f"{row.checkpoint} checkpoint, epoch {row.epoch}"
    )


def lower(row: FlowRow) -> str:
    """What an error is compared with: the replay, or the copied frame where no replay was measured."""
    return f"{'Replay' if row.replay else 'Copy'}'s error ÷ model's"


def times_lower(number: FlowNumber) -> str:
    """How many times lower an error is than that of the replay, or of the copied frame: "5.0"; a dash where there is no such number."""
    baseline = number.reference if number.replay is None else number.replay
    return f"{baseline / number.value:.1f}" if number.value and baseline is not None else "–"


def over_a_period(number: FlowNumber) -> str:
    """All of these, below the figure; empty where one is not known."""
    if number.value is None or number.reference is None:
        return ""
    replay = "" if number.replay is None else f"replay {number.replay:.3f}, "
    return f"{number.value:.3f}; {replay}copy {number.reference:.3f}"


def baselines(score: FlowScore, one: FlowNumber) -> str:
    """What a figure is compared with: "replay: 0.71, copied frame: 0.51"; empty where nothing is."""
    reference = {"persistence": "copy", "solver": "solver"}.get(score.reference, "flow")
    known = {"replay": one.replay, reference: one.reference}
    told = [f"{name} {number(score, value)}" for name, value in known.items() if value is not None]
    return ", ".join(told)


def replay(period: FlowNumber, source: str) -> str:
    """Whether the model beats the replay over the first period, in a sentence; empty where that is not known."""
    if period.value is None or period.replay is None:
        return ""
    better = "the model beats it" if period.value < period.replay else "it beats the model"
    return f"Replay: {words.plain(source)} of the training films, which looks most like the given frame. Over the first shedding period {better}."


def flow(row: FlowRow) -> str:
    """Which film, and where an iteration begins. Records of version 0.2.0 have no name of the film."""
    name = row.film or ("pictures" if row.reynolds is None else f"Re {row.reynolds:g}")
    return f"{name} from frame {row.start}" if row.start else name


def step(number: int, period: float | None) -> str:
    """Of a frame: "step 12 · 0.5 periods"."""
    beats = "" if period is None else f" · {number / period:.1f} periods"
    return f"step {number}{beats}" if number else "given frame"


def horizon(steps: float | None, of: int) -> str:
    """Of a figure: "42"; "≥ 50" where the iteration ended before it."""
    return "–" if steps is None else f"{'≥ ' if steps >= of else ''}{steps:.0f}"


def periods(steps: float | None, period: float | None) -> str:
    """The same in shedding periods; empty where there are none."""
    return "" if steps is None or period is None else f"{steps / period:.1f} shedding periods"
