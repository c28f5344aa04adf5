"""Answers of journals from before there were answers: the kinds `physics`, `flow` and `surface`,
one evaluation each.

An evaluation that writes its answers itself keeps to these names, on which the views of its domain
are built (domains/*/views.sql and store/schema.sql):

| Kind | evaluation | key | facts | curves | arrays |
|---|---|---|---|---|---|
| physics | physics | `epoch 3` | showers, grid, periodic | x, y; series real, generated; facts
energy, angle: [from, to] | real, generated: brightest cells in MeV; facts pair, energy_gev, angle,
share |
| flow | rollout | all that makes two iterations equal (`rollout_key`) | the fields of `Flow` that
are no lists of numbers | by step; series prediction, persistence, truth, replay; `stages`: series
seconds, times, median_s, facts names | frames: the file |
| surface | loss_surface | the network | network, images, share_x, share_y | loss: a map with facts
columns; path: series loss, epoch | |

Scores of a rollout have the baselines reference and replay. Numbers of the run are those of physics
(physics_) and of iterations that ask the usual question (flow_), of which those in tiles come
before the whole picture.
"""

from __future__ import annotations

import math

from gan_runtime.records.answer import KEPT, Answer, ArrayFile, Curve, Score, Series
from gan_runtime.records.earlier_kinds import (
    Earlier,
    Flow,
    FlowScore,
    FlowSeries,
    FlowStage,
    Physics,
    PhysicsCurve,
    PhysicsShower,
    Surface,
)

_FLOW_FACTS = (
    *(
        "iteration",
        "way",
        "engine",
        "cores",
        "tile",
        "overlap",
        "blend",
        "tiles",
        "grid",
        "reynolds",
        "trajectory",
    ),
    *("start", "steps", "is_usual", "solver_steps", "film", "obstacle_width", "replay"),
)


def answer_of(record: Earlier) -> Answer:
    """The same measurement as an answer."""
    match record:
        case Physics():
            return _of_physics(record)
        case Flow():
            return _of_flow(record)
        case Surface():
            return _of_surface(record)


def rollout_key(record: Flow) -> str:
    """Equal for iterations that begin in the same frame, take as many steps and divide the picture
    in the same way.

    Weights kept after an epoch are no checkpoint: they never take the place of one.
    """
    weights = "weights" if record.checkpoint.startswith(KEPT) else "checkpoint"
    tiles = f"{record.way}, {record.cores} cores, overlap {record.overlap}, {record.blend}"
    return (
        f"{weights} of epoch {record.epoch}, {tiles}, film {record.trajectory} from {record.start},"
        f" {record.steps} steps"
    )


def _of_physics(record: Physics) -> Answer:
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="physics",
        key=f"epoch {record.epoch}",
        epoch=record.epoch,
        step=record.step,
        checkpoint=record.checkpoint,
        facts={"showers": record.showers, "grid": list(record.grid), "periodic": record.periodic},
        metric_prefix="physics_",
        scores=[Score(**score.model_dump(), samples=record.showers) for score in record.scores],
        curves=[_physics_curve(curve) for curve in record.curves],
        arrays=[_shower(shower) for shower in record.pictures],
    )


def _physics_curve(curve: PhysicsCurve) -> Curve:
    bins = {
        name: list(limits)
        for name in ("energy", "angle")
        if (limits := getattr(curve, name)) is not None
    }
    real = Series(name="real", values=curve.real, error=curve.real_error)
    generated = Series(name="generated", values=curve.generated, error=curve.generated_error)
    return Curve(name=curve.name, x=curve.x, y=curve.y, series=[real, generated], facts=bins)


def _shower(shower: PhysicsShower) -> ArrayFile:
    facts = {name: getattr(shower, name) for name in ("pair", "energy_gev", "angle", "share")}
    return ArrayFile(name=shower.side, places=shower.cells, values=shower.mev, facts=facts)


def _of_flow(record: Flow) -> Answer:
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="rollout",
        key=rollout_key(record),
        epoch=record.epoch,
        step=record.step,
        checkpoint=record.checkpoint,
        facts=record.model_dump(include=set(_FLOW_FACTS)),
        metric_prefix="flow_" if record.is_usual else "",
        precedence=0 if record.way == "whole" else 1,
        scores=[_flow_score(score) for score in record.scores],
        curves=[*map(_by_step, record.by_step), *_stages(record.stages)],
        arrays=[ArrayFile(name="frames", file=record.frames)] if record.frames else [],
    )


def _flow_score(score: FlowScore) -> Score:
    baselines = {"reference": score.reference, "replay": score.replay}
    given = {name: value for name, value in baselines.items() if not math.isnan(value)}
    return Score(name=score.name, value=score.value, baselines=given)


def _by_step(series: FlowSeries) -> Curve:
    lines = {
        "prediction": series.values,
        "persistence": series.persistence,
        "truth": series.truth,
        "replay": series.replay,
    }
    steps = [float(series.first + place) for place in range(len(series.values))]
    return Curve(
        name=series.name,
        x=steps,
        series=[Series(name=name, values=values) for name, values in lines.items() if values],
    )


def _stages(stages: list[FlowStage]) -> list[Curve]:
    if not stages:
        return []
    lines = {
        name: [float(getattr(stage, name)) for stage in stages]
        for name in ("seconds", "times", "median_s")
    }
    return [
        Curve(
            name="stages",
            x=[float(number) for number in range(len(stages))],
            series=[Series(name=name, values=values) for name, values in lines.items()],
            facts={"names": [stage.name for stage in stages]},
        )
    ]


def _of_surface(record: Surface) -> Answer:
    epochs = [float(epoch) for epoch in record.path_epoch]
    grid = Curve(
        name="loss",
        x=record.x * len(record.y),
        y=[y for y in record.y for _ in record.x],
        series=[Series(name="loss", values=record.loss)],
        facts={"columns": len(record.x)},
    )
    path = Curve(
        name="path",
        x=record.path_x,
        y=record.path_y,
        series=[Series(name="loss", values=record.path_loss), Series(name="epoch", values=epochs)],
    )
    return Answer(
        attempt=record.attempt,
        at=record.at,
        evaluation="loss_surface",
        key=record.network,
        epoch=max(record.path_epoch, default=0),
        step=0,
        checkpoint="snapshots",
        facts=record.model_dump(include={"network", "images", "share_x", "share_y"}),
        scores=[],
        curves=[grid, path],
    )
