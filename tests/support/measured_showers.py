"""Measurements of showers without a network: toy showers compared with faulty ones."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from gan_runtime.domains.showers.entry import shower_fields
from gan_runtime.domains.showers.measurement import answer_of
from gan_runtime.domains.showers.score_metrics import SCORES, Estimate
from gan_runtime.domains.showers.scores import ShowerSample, sample, with_reading
from gan_runtime.records import journal
from gan_runtime.records.answer import Answer, Curve
from gan_runtime.records.earlier_records import Physics, PhysicsCurve, PhysicsScore, PhysicsShower
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training.inference import EpochWeights
from tests.domains.showers.toy_showers import SHAPE, toy_showers

STEPS_PER_EPOCH = 10


@cache
def showers(seed: int, scale: float = 1.0, shift: float = 0.0) -> ShowerSample:
    """150 measured toy showers, with readings as of a judging network: it doubts faulty showers,
    and reads the visible energy.
    """
    cells, energy, angle = toy_showers(150, seed, scale=scale, shift=shift)
    sampled = sample(cells, energy, angle, ())
    belief = np.random.RandomState(seed).beta(5.0 / scale, 5.0, len(sampled))
    return with_reading(sampled, belief, 50.0 * sampled.features.visible_gev)


def measurement(epoch: int, fault: float = 0.3) -> Answer:
    """An answer after an epoch, as a job would write it. Every score is ten times the fault in its
    own unit, and its floor a tenth of that.
    """
    real, generated = showers(0), showers(1, 1.0 + fault, fault)
    scores = {
        score.name: Estimate(10.0 * fault * (place + 1), fault)
        for place, score in enumerate(SCORES)
    }
    floor = {
        name: Estimate(value.value / 10.0, math.nan)
        for name, value in scores.items()
        if not name.startswith("ms_")
    }
    state = EpochWeights(epoch, epoch * STEPS_PER_EPOCH, 0.0, "best", {})
    return answer_of(state, real, generated, scores, floor, shower_fields((*SHAPE, 1)))


def measured(run: RunDir, *epochs: int, fault: float = 0.3) -> None:
    """Writes measurements to the journal of a run, like a job."""
    journal.append(
        run.evaluations_journal, 1, *(measurement(epoch, fault / max(1, epoch)) for epoch in epochs)
    )


def earlier(answer: Answer) -> Physics:
    """The same measurement as its own record kind, as journals had before there were answers."""
    facts = {name: answer.facts[name] for name in ("showers", "grid", "periodic")}
    return Physics(
        epoch=answer.epoch,
        step=answer.step,
        checkpoint=answer.checkpoint,
        at=answer.at,
        **facts,
        scores=[
            PhysicsScore(**score.model_dump(include=set(PhysicsScore.model_fields)))
            for score in answer.scores
        ],
        curves=[_earlier_curve(curve) for curve in answer.curves],
        pictures=[
            PhysicsShower(side=array.name, cells=array.places, mev=array.values, **array.facts)
            for array in answer.arrays
        ],
    )


def _earlier_curve(curve: Curve) -> PhysicsCurve:
    real, generated = curve.series
    return PhysicsCurve(
        name=curve.name,
        x=curve.x,
        y=curve.y,
        real=real.values,
        real_error=real.error,
        generated=generated.values,
        generated_error=generated.error,
        **curve.facts,
    )
