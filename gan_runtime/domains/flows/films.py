"""Films of flows: simulated for a data set, read back from it, and replayed as a baseline.

A film is consecutive rows of paired images, in which the target of one is the source of the next.
Rows of a flow are in the order of time, with one Reynolds number and evenly rising lattice steps;
held-out flows are last. Other pairs of images are films of a single step.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET, Fields
from gan_runtime.data.contract import Arrays, DataSet, Progress
from gan_runtime.data.prepared import LiveImage, Stored
from gan_runtime.data.sharded import RowWriter, row_bytes
from gan_runtime.data.summary import Summary
from gan_runtime.domains.flows import lattice, pictures
from gan_runtime.domains.flows.fields import (
    DIAMETER,
    LATER,
    LATTICE_STEP,
    OBSTACLE_SHIFT,
    OBSTACLE_WIDTH,
    REYNOLDS,
)
from gan_runtime.domains.flows.lattice import OBSTACLES, Lattice
from gan_runtime.domains.flows.preparation_options import (
    FlowCase,
    FlowOptions,
    cases,
    pairs,
    promised,
    solver_steps,
    title,
)
from gan_runtime.engines.inputs import host_value

AT_ONCE = 60  # steps of the solver between two checks for a cancel
KICK = 0.5  # share of the inflow, so that vortices appear soon
BATCH = 64  # frames that the replay compares at once
# of frames that the replay reads; of larger sets only every second frame, or fewer
MOST_BYTES = 8_000_000_000
Values = NDArray[np.float32]
Frame = NDArray[np.float16]


@dataclass(frozen=True)
class Film:
    """`number`: among the held-out films, or among the training films, from 0.

    `first`: its first row among theirs; `steps`: its rows. `reynolds`, `solver_steps` between two
    frames: None for other pairs of images. `width`, `shift`: of the obstacle, in cells of the
    solver; the defaults for data sets without these fields.
    """

    number: int
    first: int
    steps: int
    reynolds: float | None = None
    solver_steps: int | None = None
    width: float = DIAMETER
    shift: float = 0.0

    @property
    def title(self) -> str:
        """The title, such as "Re 120" or "Re 120, width 14"; "pair 3" for other images."""
        if self.reynolds is None:
            return f"pair {self.number}"
        return title(self.reynolds, self.width, self.shift)


def films(data: DataSet) -> list[Film]:
    """The held-out films in their order. Reads a few numbers a row, no images."""
    rows = data.held_out
    if not rows or not _is_flow(data):
        return _pairs(rows)
    return _cut(_only(data, *_numbers(data)).read_held_out(rows))


def trained(data: DataSet) -> list[Film]:
    """The training films, in order."""
    if not _is_flow(data):
        return _pairs(data.rows)
    return _cut(_only(data, *_numbers(data)).read(np.arange(data.rows)))


def _is_flow(data: DataSet) -> bool:
    return REYNOLDS in data.fields and LATTICE_STEP in data.fields


def _numbers(data: DataSet) -> list[str]:
    names = (REYNOLDS, LATTICE_STEP, OBSTACLE_WIDTH, OBSTACLE_SHIFT)
    return [name for name in names if name in data.fields]


def _pairs(rows: int) -> list[Film]:
    return [Film(row, row, 1) for row in range(rows)]


def _cut(stored: Mapping[str, NDArray[Any]]) -> list[Film]:
    """A film begins where the Reynolds number changes or the lattice step falls."""
    reynolds, steps = stored[REYNOLDS], stored[LATTICE_STEP].astype(np.int64)
    is_cut = (np.diff(reynolds) != 0.0) | (np.diff(steps) <= 0)
    begins = [0, *(1 + np.flatnonzero(is_cut)).tolist()]
    flows = []
    for number, (first, end) in enumerate(pairwise([*begins, len(steps)])):
        obstacle = {
            name: float(stored[field][first])
            for name, field in (("width", OBSTACLE_WIDTH), ("shift", OBSTACLE_SHIFT))
            if field in stored
        }
        between = int(steps[first + 1] - steps[first]) if end - first > 1 else None
        flows.append(Film(number, first, end - first, float(reynolds[first]), between, **obstacle))
    return flows


def frames(data: DataSet, film: Film, start: int, steps: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """As stored: the source (height, width, channels in) of frame `start`, and the targets (steps,
    height, width, channels out) from there on. Reads no other rows.
    """
    begin = film.first + start
    source = _only(data, SOURCE).read_held_out(1, begin)[SOURCE]
    return source[0], _only(data, TARGET).read_held_out(steps, begin)[TARGET]


def selected(held_out: list[Film], number: int, start: int, steps: int) -> Film:
    """The held-out film of this number, with at least `steps` steps from frame `start` on.

    Raises:
        DatasetError: there is no such film, or it is too short.
    """
    if not held_out:
        raise DatasetError(
            "the data set has no held-out films, so the model has seen all of it: prepare one with"
            " held-out flows, or with more pairs or a higher held_out_percent."
        )
    if not 0 <= number < len(held_out):
        raise DatasetError(
            f"trajectory is {number}, but the held-out films are 0 to {len(held_out) - 1}: use one"
            " of them."
        )
    film = held_out[number]
    if start + steps > film.steps:
        raise DatasetError(
            f"{steps} steps from frame {start} on are requested, but {film.title} has {film.steps}"
            " in all: use fewer, or begin earlier."
        )
    return film


def not_fed_back(fields: Fields) -> str:
    """Why a generated image cannot be the next input: it has more channels; "" where it can."""
    (*_, source), (*_, target) = fields[SOURCE].shape, fields[TARGET].shape
    if target <= source:
        return ""
    return (
        f"The targets of the data set have {target} channels and its sources {source}, so outputs"
        " cannot be inputs. Pick a run whose targets have no more channels than its sources."
    )


def _only(data: DataSet, *names: str) -> DataSet:
    """The data set with only these fields."""
    fields = {name: data.fields[name] for name in names}
    return replace(data, fields=fields)  # type: ignore[type-var]


# ---- replay --------------------------------------------------------------------------------------
# The training frame nearest to the start frame, and the frames after it. A model that is no better
# has learned no flow: a lookup in its training data would do.


@dataclass(frozen=True)
class Replay:
    """`title`: "Re 140 from frame 22". `frames`: (K, height, width, channels out), values of the
    steps 1 to K, fewer than the rollout's where the film ends before.
    """

    title: str
    frames: Values


def nearest(data: DataSet, start: Values, steps: int, progress: Progress) -> Replay:
    """The nearest training frame by the root-mean-square error to the `start` frame (height, width,
    channels out). Only frames that are followed by at least `steps` frames of their film, or three
    quarters of `steps`, count.
    """
    starts = [(film, frame) for film in trained(data) for frame in range(_starts(film, steps))]
    starts = starts[:: 1 + len(starts) * row_bytes(data.fields[SOURCE]) // MOST_BYTES]
    errors = np.empty(len(starts))
    for begin in range(0, len(starts), BATCH):
        progress(begin, len(starts), "searching for the nearest training frame")
        places = [film.first + frame for film, frame in starts[begin : begin + BATCH]]
        sources = _training_values(data, SOURCE, np.array(places, np.int64))
        differences = sources[..., : start.shape[-1]] - start
        errors[begin : begin + BATCH] = np.square(differences).mean(axis=(1, 2, 3))
    film, frame = starts[int(errors.argmin())]
    rows = film.first + np.arange(frame, min(frame + steps, film.steps))
    title = film.title if film.reynolds is None else f"{film.title} from frame {frame}"
    return Replay(title, _training_values(data, TARGET, rows))


def _training_values(data: DataSet, field: str, rows: NDArray[np.int64]) -> Values:
    """The values of one field of training rows."""
    return host_value(_only(data, field).read(rows)[field], data.fields[field])


def _starts(film: Film, steps: int) -> int:
    """The number of leading frames of a film that are followed by enough frames."""
    return film.steps + 1 - min(steps, -(-3 * film.steps // 4))


# ---- preparation ---------------------------------------------------------------------------------


class FlowProgress:
    """Advances flows, and reports the overall progress with an image of the current flow."""

    def __init__(self, options: FlowOptions, folder: Path, progress: Progress) -> None:
        self._total = solver_steps(options)
        self._progress, self._picture = progress, LiveImage(folder)
        self._done = 0

    def advance(self, flow: Lattice, steps: int, place: str) -> None:
        """`place`: such as "flow 2 of 8". Raises what `progress` raises, to cancel."""
        for begin in range(0, steps, AT_ONCE):
            sentence = f"Simulating Re {flow.reynolds:g}, {place}: step {flow.steps:,}"
            self._progress(self._done, self._total, sentence)
            part = min(AT_ONCE, steps - begin)
            flow.advance(part)
            self._done += part
            self._picture.renew(
                lambda: pictures.frame_colors(lattice.source(lattice.of(flow), flow.obstacle))
            )


def prepare(_source: None, options: FlowOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the frames of all flows into the existing, empty `folder`.

    Raises:
        HomeError: the disk has too little space. DatasetError: a flow became unstable.
    """
    training, held_out = cases(options.reynolds), cases(options.held_out_reynolds)
    flows = placed([*training, *held_out], options)
    rows, fields = pairs(options) * len(flows), promised(options).fields
    flow_progress = FlowProgress(options, folder, progress)
    with RowWriter(folder, fields, rows, f"a data set of {rows:,} frames") as writer:
        for number, case in enumerate(flows):
            for row in rows_of(case, options, flow_progress, f"flow {number + 1} of {len(flows)}"):
                writer.append(row)
    rows_by_title = [
        Counter({name: count * pairs(options) for name, count in Counter(titles).items()})
        for titles in (
            [title(*case.key) for case in part]
            for part in (flows[: len(training)], flows[len(training) :])
        )
    ]
    summary = Summary(
        held_out=rows_by_title[1].total(),
        counts=dict(rows_by_title[1] + rows_by_title[0]),
        held_out_counts=dict(rows_by_title[1]),
    )
    return Stored(fields, writer.shards, summary)


def placed(flows: list[FlowCase], options: FlowOptions) -> list[FlowCase]:
    """Each with a shift: its own, or by the seed and its place in the list."""
    shifts = (
        np.random.default_rng((options.seed, number)).integers(-options.shift, options.shift + 1)
        for number in range(len(flows))
    )
    return [
        replace(flow, shift=int(shift)) if flow.shift is None else flow
        for flow, shift in zip(flows, shifts, strict=True)
    ]


def rows_of(
    case: FlowCase, options: FlowOptions, progress: FlowProgress, place: str
) -> Iterator[Arrays]:
    """Yields the rows of a flow, each as arrays (1, …) by field."""
    obstacle = OBSTACLES[options.obstacle](shift=case.shift or 0, diameter=case.width)
    flow = Lattice(case.reynolds, obstacle, kick=KICK, diameter=case.width)
    progress.advance(flow, options.discarded, place)
    recent: deque[Frame] = deque(maxlen=2 + options.later)
    for number in range(options.frames):
        if number:
            progress.advance(flow, options.steps_per_frame, place)
        recent.append(_frame(flow, options))
        if len(recent) == recent.maxlen:
            yield _row(recent, flow, case, options)


def _frame(flow: Lattice, options: FlowOptions) -> Frame:
    """The current frame, (height, width, 3) as stored. Raises DatasetError for an unstable flow."""
    fine = lattice.of(flow)
    if not np.isfinite(fine).all():
        raise DatasetError(
            f"the flow at Re {flow.reynolds:g} became unstable at step {flow.steps:,}: leave it"
            " out, or use a lower number."
        )
    return _on_grid(fine, options).astype(np.float16)


def _row(recent: Sequence[Frame], flow: Lattice, case: FlowCase, options: FlowOptions) -> Arrays:
    """A row of the data set. `recent`: source, target and later frames, the last of which is the
    current frame.
    """
    obstacle = _on_grid(flow.obstacle[..., None].astype(np.float32), options)[..., 0] >= 0.5
    before = (len(recent) - 1) * options.steps_per_frame
    row = {
        SOURCE: lattice.source(recent[0], obstacle),
        TARGET: recent[1],
        REYNOLDS: np.float32(flow.reynolds),
        LATTICE_STEP: np.int32(flow.steps - before),
        OBSTACLE_WIDTH: np.float32(case.width),
        OBSTACLE_SHIFT: np.float32(case.shift or 0),
    }
    if options.later:
        row[LATER] = np.stack(list(recent)[2:])
    return {name: np.asarray(value)[None] for name, value in row.items()}


def _on_grid(fine: NDArray[np.floating], options: FlowOptions) -> NDArray[np.floating]:
    return lattice.halved(fine) if options.grid == "half" else fine
