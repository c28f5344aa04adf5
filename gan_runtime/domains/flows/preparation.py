"""The preparations `karman` and `karman_small`: frames of simulated flows become a data set.

The rows of a flow stand in the order of time, each with its Reynolds number. The flows that are
held out come last.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import SOURCE, TARGET
from gan_runtime.data.contract import Arrays, Progress
from gan_runtime.data.prepared import Stored
from gan_runtime.data.previews import LivePicture
from gan_runtime.data.sharded import RowWriter
from gan_runtime.data.summary import Summary
from gan_runtime.domains.flows import lattice as flow_frames
from gan_runtime.domains.flows import pictures
from gan_runtime.domains.flows.fields import (
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

AT_ONCE = 60  # steps of the solver between two looks at whether somebody has cancelled
KICK = 0.5  # of the inflow, so that the street is there soon
Frame = NDArray[np.float16]


class FlowProgress:
    """Advances flows, and reports how far all of them are together, with a picture of the one
    that is simulated.
    """

    def __init__(self, options: FlowOptions, folder: Path, progress: Progress) -> None:
        self._total = solver_steps(options)
        self._progress, self._picture = progress, LivePicture(folder)
        self._done = 0

    def advance(self, flow: Lattice, steps: int, place: str) -> None:
        """`place`: such as "flow 2 of 8". Raises what `progress` raises, to cancel."""
        for begin in range(0, steps, AT_ONCE):
            sentence = f"Simulating Re {flow.reynolds:g}, {place}: step {flow.steps:,}"
            self._progress(self._done, self._total, sentence)
            part = min(AT_ONCE, steps - begin)
            flow.advance(part)
            self._done += part
            self._picture.renew(lambda: pictures.drawn(_with_obstacle(flow, flow_frames.of(flow))))


def prepare(_source: None, options: FlowOptions, folder: Path, progress: Progress) -> Stored:
    """Writes the frames of all flows into the existing, empty `folder`.

    Raises:
        HomeError: the disk has too little space. DatasetError: a flow became unstable.
    """
    trained, held_out = cases(options.reynolds), cases(options.held_out_reynolds)
    flows = placed([*trained, *held_out], options)
    rows, fields = pairs(options) * len(flows), promised(options).fields
    flow_progress = FlowProgress(options, folder, progress)
    with RowWriter(folder, fields, rows, f"a data set of {rows:,} frames") as writer:
        for number, case in enumerate(flows):
            for row in rows_of(case, options, flow_progress, f"flow {number + 1} of {len(flows)}"):
                writer.append(row)
    return Stored(fields, writer.shards, _summary(flows, len(trained), options))


def _summary(flows: list[FlowCase], trained: int, options: FlowOptions) -> Summary:
    """Rows of each flow, those that are held out first.

    `trained`: so many of the flows, the first ones, are trained on.
    """
    trained_on, held_out = (
        Counter({name: count * pairs(options) for name, count in Counter(names).items()})
        for names in (
            [title(*case.key) for case in part] for part in (flows[:trained], flows[trained:])
        )
    )
    return Summary(
        held_out=held_out.total(),
        counts=dict(held_out + trained_on),
        held_out_counts=dict(held_out),
    )


def placed(flows: list[FlowCase], options: FlowOptions) -> list[FlowCase]:
    """Each with a shift: its own, or by the seed and its place in the list."""
    drawn = (
        np.random.default_rng((options.seed, number)).integers(-options.shift, options.shift + 1)
        for number in range(len(flows))
    )
    return [
        replace(flow, shift=int(shift)) if flow.shift is None else flow
        for flow, shift in zip(flows, drawn, strict=True)
    ]


def begun(options: FlowOptions, case: FlowCase) -> Lattice:
    """The flow at rest but for its inflow and a kick."""
    obstacle = OBSTACLES[options.obstacle](shift=case.shift or 0, diameter=case.width)
    return Lattice(case.reynolds, obstacle, kick=KICK, diameter=case.width)


def rows_of(
    case: FlowCase, options: FlowOptions, progress: FlowProgress, place: str
) -> Iterator[Arrays]:
    """One row after the other, each as the arrays of a single one: (1, …) of each field."""
    flow = begun(options, case)
    progress.advance(flow, options.discarded, place)
    seen: deque[Frame] = deque(maxlen=2 + options.later)
    for number in range(options.frames):
        if number:
            progress.advance(flow, options.steps_per_frame, place)
        seen.append(_frame(flow, options))
        if len(seen) == seen.maxlen:
            yield _row(seen, flow, case, options)


def _frame(flow: Lattice, options: FlowOptions) -> Frame:
    """(height, width, 3) as stored. Raises DatasetError when the flow is none any more."""
    fine = flow_frames.of(flow)
    if not np.isfinite(fine).all():
        raise DatasetError(
            f"the flow at Re {flow.reynolds:g} became unstable at step {flow.steps:,}: leave it"
            " out, or use a lower number."
        )
    return _on_grid(fine, options).astype(np.float16)


def _row(seen: Sequence[Frame], flow: Lattice, case: FlowCase, options: FlowOptions) -> Arrays:
    """`seen`: a frame, the next one, and those after it, the last of which is that of now."""
    obstacle = _on_grid(flow.obstacle[..., None].astype(np.float32), options)[..., 0] >= 0.5
    before = (len(seen) - 1) * options.steps_per_frame
    row = {
        SOURCE: flow_frames.source(seen[0], obstacle),
        TARGET: seen[1],
        REYNOLDS: np.float32(flow.reynolds),
        LATTICE_STEP: np.int32(flow.steps - before),
        OBSTACLE_WIDTH: np.float32(case.width),
        OBSTACLE_SHIFT: np.float32(case.shift or 0),
    }
    if options.later:
        row[LATER] = np.stack(list(seen)[2:])
    return {name: np.asarray(value)[None] for name, value in row.items()}


def _on_grid(fine: NDArray[np.floating], options: FlowOptions) -> NDArray[np.floating]:
    return flow_frames.halved(fine) if options.grid == "half" else fine


def _with_obstacle(flow: Lattice, frame: NDArray[np.floating]) -> NDArray[np.floating]:
    return flow_frames.source(frame, flow.obstacle)
