"""Shower evaluations in the format of a job, for the pages that show them. The "generated" showers
are simulated, with another seed.
"""

from __future__ import annotations

import numpy as np

from gan_runtime.domains.showers import simulation
from gan_runtime.domains.showers.entry import shower_fields
from gan_runtime.domains.showers.features import measured_angle
from gan_runtime.domains.showers.measurement import answer_of
from gan_runtime.domains.showers.score_metrics import SCORES, Estimate
from gan_runtime.domains.showers.scores import ShowerSample, sample, with_reading
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training.inference import EpochWeights

SHOWERS, CHUNK = 300, 50
EPOCHS = 12  # checkpoints that a job measures


def write(home: Home, run_ids: list[str], steps_per_epoch: int = 1, epochs: int = EPOCHS) -> None:
    """Gives each run `epochs` measurements on the tiny grid, which differ only in their scores."""
    real, generated = _sample(1), _sample(2)
    fields = shower_fields((*simulation.TINY.shape, 1))
    scores = {score.name: Estimate(1.0, 0.1) for score in SCORES}
    record = answer_of(
        EpochWeights(1, steps_per_epoch, 0.0, "newest", {}), real, generated, scores, scores, fields
    )
    for run_id in run_ids:
        records = [
            record.model_copy(
                update={
                    "key": f"epoch {epoch}",
                    "epoch": epoch,
                    "step": epoch * steps_per_epoch,
                    "scores": _scores_of_epoch(record, epoch),
                }
            )
            for epoch in range(1, epochs + 1)
        ]
        journal.append(RunDir(home.runs / run_id).evaluations_journal, 1, *records)


def _scores_of_epoch(answer: Answer, epoch: int) -> list[Score]:
    return [score.model_copy(update={"value": score.value / epoch}) for score in answer.scores]


def _sample(seed: int) -> ShowerSample:
    random = np.random.default_rng(seed)
    energy = random.uniform(100.0, 200.0, SHOWERS)
    angle = random.uniform(np.radians(60.0), np.radians(120.0), SHOWERS)
    cells = np.concatenate(
        [
            simulation.simulate(energy[rows], angle[rows], random, simulation.TINY)
            for rows in np.split(np.arange(SHOWERS), SHOWERS // CHUNK)
        ]
    )
    measured = sample(cells, energy, measured_angle(cells).astype(np.float64), ())
    return with_reading(
        measured, random.beta(5.0, 5.0, SHOWERS), energy * random.normal(1.0, 0.1, SHOWERS)
    )
