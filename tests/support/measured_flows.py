"""Rollouts without a network: numbers written for the tests, in the format of a job."""

from __future__ import annotations

import numpy as np

from gan_runtime.engines.tiles import STAGES, Way
from gan_runtime.records.earlier_records import Flow, FlowScore, FlowSeries, FlowStage
from gan_runtime.records.image_files import Frames

STEPS_PER_EPOCH = 10


def iteration(
    epoch: int = 1,
    way: Way = "map_reduce",
    steps: int = 20,
    number: int = 1,
    error: float = 0.1,
    is_usual: bool = True,
    is_replayed: bool = True,
) -> Flow:
    """A rollout of a checkpoint after an epoch. Its error grows by `error` per step; that of
    persistence is 0.3 from the first step, that of the replay 0.15. `is_replayed`: False as written
    by version 0.2.0.
    """
    replay = {"replay": 0.15} if is_replayed else {}
    replays = {"replay": [0.15] * steps} if is_replayed else {}
    horizons = {"horizon": min(steps, int(0.3 / error))}
    horizons |= {"horizon_replay": min(steps, int(0.15 / error))} if is_replayed else {}
    grown = [error * step for step in range(1, steps + 1)]
    truth = [0.25 * step for step in range(steps + 1)]
    return Flow(
        iteration=f"iterate-{number:04d}",
        way=way,
        epoch=epoch,
        step=epoch * STEPS_PER_EPOCH,
        checkpoint="best",
        engine="tensorflow",
        cores=2 if way == "map_reduce" else 1,
        tile=(16, 48) if way == "whole" else (16, 16),
        overlap=0,
        blend="none",
        tiles=1 if way == "whole" else 3,
        grid=(12, 40, 3),
        reynolds=110.0,
        trajectory=0,
        start=4,
        steps=steps,
        is_usual=is_usual,
        solver_steps=24,
        film="Re 110" if is_replayed else "",
        obstacle_width=10.0 if is_replayed else None,
        replay="Re 100 from frame 7" if is_replayed else "",
        scores=[
            FlowScore(name="rmse", value=float(np.mean(grown)), reference=0.3, **replay),
            FlowScore(name="mae", value=float(np.mean(grown)) / 2.0, reference=0.2),
            FlowScore(name="ssim", value=0.9, reference=0.8),
            FlowScore(name="spectrum", value=0.5, reference=0.1, **replay),
            FlowScore(name="divergence", value=0.08, reference=0.01),
            FlowScore(name="rmse_period", value=0.05, reference=0.25, **replay),
            FlowScore(name="ssim_period", value=0.95, reference=0.7),
            *(FlowScore(name=name, value=value) for name, value in horizons.items()),
            FlowScore(name="strouhal", value=0.16, reference=0.17),
            FlowScore(name="strouhal_error", value=0.01 / 0.17),
            FlowScore(name="ms_frame", value=5.0, reference=18.0),
        ],
        by_step=[
            FlowSeries(name="rmse", values=grown, persistence=[0.3] * steps, **replays),
            FlowSeries(
                name="ssim",
                values=[1.0 - 0.01 * step for step in range(steps)],
                persistence=[0.8] * steps,
            ),
            FlowSeries(name="spectrum", values=[0.5] * steps, persistence=[0.1] * steps),
            FlowSeries(name="enstrophy_ratio", values=[0.9] * steps, persistence=[1.1] * steps),
            FlowSeries(name="divergence", values=[0.02] * steps, truth=[0.01] * steps),
            FlowSeries(name="seam_ratio", values=[1.5] * steps, truth=[1.0] * steps),
            FlowSeries(name="probe", first=0, values=[2.0 * value for value in truth], truth=truth),
        ],
        stages=[
            (
                FlowStage(name=name, seconds=0.1 * place, times=1, median_s=0.1 * place)
                if name in ("trace", "compile")
                else FlowStage(
                    name=name, seconds=0.01 * place * steps, times=steps, median_s=0.01 * place
                )
            )
            for place, name in enumerate(STAGES)
        ],
    )


def frames(steps: int = 20, height: int = 12, width: int = 40) -> Frames:
    """A wave that moves to the right, and a prediction that lags behind; an obstacle of 2 × 2
    pixels.
    """
    x, y = np.arange(width), np.arange(height)[:, np.newaxis]
    films = []
    for lag in (0.0, 0.02):
        phase = [2.0 * np.pi * (x / 10.0 - step / (8.0 + 8.0 * lag)) for step in range(steps + 1)]
        picture = [np.sin(wave) * np.cos(np.pi * y / height) for wave in phase]
        films.append(
            np.stack([np.stack([values, -values, 0.5 * values], axis=-1) for values in picture])
        )
    mask = np.zeros((height, width, 1))
    mask[5:7, 8:10] = 1.0
    truth, predicted = (film.astype(np.float16) for film in films)
    return Frames(np.arange(steps + 1), truth, predicted, mask.astype(np.float16))
