"""The answer of a rollout in one way: its scores, curves and facts, and the file of its frames.

The views flow, flow_scores, flow_steps and flow_stages (views.sql) are built on these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gan_runtime.domains.flows.evaluation import NAME
from gan_runtime.domains.flows.score_metrics import MEASURED
from gan_runtime.domains.flows.scoring import Scored
from gan_runtime.engines.tiling.stopwatch import StageTime
from gan_runtime.records import flow_frames
from gan_runtime.records.answer import Answer, ArrayFile, Curve, Series
from gan_runtime.records.flow import KEPT
from gan_runtime.records.flow_frames import Frames
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class State:
    """Weights of the run: after which epoch and step, and what an answer calls them."""

    epoch: int
    step: int
    name: str


def answer_of(facts: dict[str, Any], state: State, found: Scored, stages: Sequence[StageTime]) -> Answer:
    """The answer of one way, but for the file of the frames. Numbers of the run are those of the usual question, of which those
    in tiles come before the whole picture."""
    return Answer(
        evaluation=NAME,
        key=key_of(facts, state),
        epoch=state.epoch,
        step=state.step,
        checkpoint=state.name,
        facts=facts,
        metric_prefix=f"{MEASURED}_" if facts["is_usual"] else "",
        precedence=0 if facts["way"] == "whole" else 1,
        scores=found.scores,
        curves=[*(numbers.curve for numbers in found.by_step), _curve_of(stages)],
    )


def key_of(facts: dict[str, Any], state: State) -> str:
    """Equal for rollouts that begin in the same frame, take as many steps and divide the picture in the same way.

    Weights kept after an epoch are no checkpoint: they never take the place of one.
    """
    weights = "weights" if state.name.startswith(KEPT) else "checkpoint"
    tiles = f"{facts['way']}, {facts['cores']} cores, overlap {facts['overlap']}, {facts['blend']}"
    film = f"film {facts['trajectory']} from {facts['start']}, {facts['steps']} steps"
    return f"{weights} of epoch {state.epoch}, {tiles}, {film}"


def _curve_of(stages: Sequence[StageTime]) -> Curve:
    """Seconds of all calls of a stage, how many there were, and the median of one."""
    lines = {
        "seconds": [stage.seconds for stage in stages],
        "times": [float(stage.times) for stage in stages],
        "median_s": [stage.median_s for stage in stages],
    }
    return Curve(
        name="stages",
        x=[float(number) for number in range(len(stages))],
        series=[Series(name=name, values=values) for name, values in lines.items()],
        facts={"names": [stage.stage for stage in stages]},
    )


def written(run: RunDir, kept: list[tuple[Answer, Frames]]) -> list[Answer]:
    """The answers, each with its file of frames, which is there by then.

    Raises:
        HomeError: the disk is full; no file is left.
    """
    answers: list[Answer] = []
    files: list[str] = []
    try:
        for answer, frames in kept:
            files.append(flow_frames.write(run, f"{answer.facts['iteration']}-{answer.facts['way']}", frames))
            arrays = [ArrayFile(name="frames", file=files[-1])]
            answers.append(answer.model_copy(update={"arrays": arrays}))
    except BaseException:
        for file in files:
            (run.path / file).unlink(missing_ok=True)
        raise
    return answers
