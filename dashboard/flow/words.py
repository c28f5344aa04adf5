"""What the Flow page says in words: iterations, ways, what to do next."""

from __future__ import annotations

from dashboard import words
from gan_runtime.catalog.flow_scores import FlowScore
from gan_runtime.store.queries import FlowRow

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
    "Dashed: the first frame, copied; after each shedding period it is right again. Up to the horizon the prediction is better than the copy at "
    "every step."
)
LOWER = "Error below a copy's (times)"
LOWER_HELP = (
    "The mean error of a copy of the first frame over the first shedding period, divided by that of the prediction: 1 is no better than the copy. "
    "Below it both, as root mean square errors."
)
HORIZON_HELP = (
    "The flow comes back to where it began after each shedding period, and a copy of the first frame with it: shortly before the period ends the "
    "copy is nearly right again, so the horizon ends there even where the mean error over the period is far lower."
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
        "flow": flow(row.reynolds, row.start),
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


def times_lower(error: float | None, copied: float | None) -> str:
    """How many times lower an error is than that of the copied frame: "5.0"; a dash where there is no such number."""
    return f"{copied / error:.1f}" if error and copied is not None else "–"


def over_a_period(error: float | None, copied: float | None) -> str:
    """Both of these, below the figure; empty where one is not known."""
    return "" if error is None or copied is None else f"a period: {error:.3f}, copy {copied:.3f}"


def flow(reynolds: float | None, start: int) -> str:
    """Where an iteration begins."""
    name = "pictures" if reynolds is None else f"Re {reynolds:g}"
    return f"{name} from frame {start}" if start else name


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
