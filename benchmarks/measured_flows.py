"""Rollouts in the format of the evaluation, for the page that shows them. The prediction is the
simulated flow, delayed by LAG frames.
"""

from __future__ import annotations

import math
from typing import get_args

import numpy as np

from gan_runtime.domains.flows import lattice, rollout
from gan_runtime.domains.flows.films import Film
from gan_runtime.domains.flows.rollout import RolloutState
from gan_runtime.domains.flows.scores import FrameTimes, scored
from gan_runtime.engines.tile_grid import TileGrid
from gan_runtime.engines.tiles import STAGES, StageTime, Way
from gan_runtime.evaluation import jobs
from gan_runtime.evaluation.catalog import EvaluationResult
from gan_runtime.records.answer import Answer
from gan_runtime.records.home import Home
from gan_runtime.records.image_files import Frames
from gan_runtime.records.run_folder import RunDir

REYNOLDS, STEPS, LAG = 100.0, 50, 2  # STEPS: predicted frames
SPIN_UP_STEPS, SOLVER_STEPS = 3_000, 24  # solver steps before the first frame, and between two
TILE = (64, 64)


def write(
    home: Home, run_ids: list[str], steps_per_epoch: int = 1, spin_up_steps: int = SPIN_UP_STEPS
) -> None:
    """Gives each run a rollout over STEPS frames in every way, with equal frames."""
    flow = lattice.Lattice(REYNOLDS, lattice.square())
    flow.advance(spin_up_steps)
    snapshots = []
    for _ in range(1 + STEPS + LAG):
        snapshots.append(lattice.of(flow))
        flow.advance(SOLVER_STEPS)
    flow_frames = np.stack(snapshots)  # (1 + STEPS + LAG, 80, 192, 3)
    frames = Frames(
        np.arange(1 + STEPS),
        flow_frames[LAG:].astype(np.float16),
        flow_frames[: 1 + STEPS].astype(np.float16),
        lattice.square()[..., np.newaxis].astype(np.float16),
    )
    answers = [_answer(frames, way, steps_per_epoch) for way in get_args(Way)]
    for run_id in run_ids:
        run = RunDir(home.runs / run_id)
        written = rollout.written(run, [(answer, frames) for answer in answers])
        jobs.store(run, EvaluationResult(written))


def _answer(frames: Frames, way: Way, step: int) -> Answer:
    """The answer for the first epoch."""
    truth, predicted = (film.astype(np.float32) for film in (frames.truth, frames.predicted))
    height, width = truth.shape[1:3]
    division = TileGrid((height, width), (height, width) if way == "whole" else TILE)
    film = Film(0, 0, STEPS, REYNOLDS, SOLVER_STEPS)
    outcome = scored(
        truth,
        predicted,
        frames.mask.astype(np.float32),
        division,
        film,
        FrameTimes(0.01, 0.004),
        math.nan,
    )
    facts = {
        "iteration": "iterate-0001",
        "way": way,
        "engine": "tensorflow",
        "cores": 1 if way == "naive" else 2,
        "tile": list(division.tile),
        "overlap": 0,
        "blend": "none",
        "tiles": len(division),
        "grid": [height, width, truth.shape[-1]],
        "reynolds": REYNOLDS,
        "trajectory": 0,
        "start": 0,
        "steps": STEPS,
        "is_usual": False,
        "solver_steps": SOLVER_STEPS,
        "film": film.title,
        "obstacle_width": film.width,
        "replay": "",
    }
    stages = [StageTime(stage, 0.1, 1, 0.1) for stage in STAGES]
    return rollout.answer_of(facts, RolloutState(1, step, "best"), outcome, stages)
