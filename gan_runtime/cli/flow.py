"""`flow`: asks for the job that feeds a run's model with its own pictures, waits for its end, and prints scores and times."""

from __future__ import annotations

import math
from typing import Annotated, cast

import typer

from gan_runtime.base.errors import JobError
from gan_runtime.cli import output, progress_line, tables
from gan_runtime.cli.arguments import HomeOption, JsonOption, RunArgument, commands
from gan_runtime.domains.flows import iterate_requests
from gan_runtime.domains.flows.rollout_request import MOST_CORES, USUAL_BLEND, USUAL_STEPS, Wanted
from gan_runtime.domains.flows.score_metrics import BY_NAME, FlowScore
from gan_runtime.engines.tiling.ways import ONCE, Blend, Way
from gan_runtime.evaluation.answers import answers_of
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.flow import KEPT
from gan_runtime.records.home import Home
from gan_runtime.training.checkpoints import Which

BASELINES = ("reference", "replay")
HOW = "How: naive (one core, in turn), map_reduce (tiles over all cores), whole; may be given again. Default: map_reduce."


def flow(
    run: RunArgument,
    steps: Annotated[
        int | None,
        typer.Option(metavar="N", help=f"Frames to predict. Default: {USUAL_STEPS}, or all there are."),
    ] = None,
    way: Annotated[list[str] | None, typer.Option(metavar="WAY", help=HOW)] = None,
    cores: Annotated[
        int, typer.Option(metavar="N", help=f"Simulated cores of map_reduce, up to {MOST_CORES}.")
    ] = Wanted.cores,
    overlap: Annotated[
        int | None,
        typer.Option(metavar="N", help="Pixels that neighboring tiles share. Default: three quarters."),
    ] = None,
    blend: Annotated[
        Blend, typer.Option(help="How they are merged there: their mean, or under Hann's window.")
    ] = USUAL_BLEND,
    trajectory: Annotated[int, typer.Option(metavar="N", help="Which of the held-out films, from 0.")] = 0,
    start: Annotated[int, typer.Option(metavar="N", help="The frame of it that is given.")] = 0,
    checkpoint: Annotated[Which, typer.Option(help="Which state of the model.")] = Wanted.checkpoint,
    epoch: Annotated[
        int | None,
        typer.Option(metavar="N", help="The weights kept after this epoch, in place of a checkpoint."),
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Feed a trained model with its own pictures, beside a held-out flow. The Flow page shows what was measured."""
    chosen = Home.choose(home)
    ways = cast(tuple[Way, ...], tuple(way or Wanted.ways))  # the door refuses others
    usual = iterate_requests.usual_steps(chosen, run, trajectory, start) if steps is None else steps
    shared = iterate_requests.usual_overlap(chosen, run) if overlap is None else overlap
    wanted = Wanted(run, checkpoint, usual, ways, cores, shared, blend, trajectory, start, epoch)
    job = iterate_requests.iterate(commands(chosen), wanted)
    result = progress_line.to_its_end(chosen, job)
    measured = _measured(chosen, run, result["iteration"])
    if not measured:
        raise JobError(f"job {job.job_id} has written no measurement: look into {job.log}.")
    if as_json:
        return output.print_json({"run_id": run, **result, "ways": [_document(one) for one in measured]})
    for warning in result["warnings"]:
        output.note(warning)
    return _print(run, measured)


def _measured(home: Home, run: str, iteration: str) -> list[Answer]:
    answers = answers_of(home.run_dir(run), "rollout")
    return [answer for answer in answers if answer.facts["iteration"] == iteration]


def _document(answer: Answer) -> dict[str, object]:
    """Without the numbers of each step, which are in the store."""
    scores = [
        {"name": score.name, "value": score.value, **{name: _baseline(score, name) for name in BASELINES}}
        for score in answer.scores
    ]
    return {
        **{name: getattr(answer, name) for name in ("epoch", "step", "checkpoint")},
        "at": answer.at.isoformat(),
        **answer.facts,
        "scores": scores,
        "stages": _stages(answer),
        "frames": answer.arrays[0].file if answer.arrays else "",
    }


def _stages(answer: Answer) -> list[dict[str, object]]:
    curve = next(curve for curve in answer.curves if curve.name == "stages")
    lines = {line.name: line.values for line in curve.series}
    return [
        {"name": name, **{of: values[place] for of, values in lines.items()}}
        for place, name in enumerate(curve.facts["names"])
    ]


def _baseline(score: Score, name: str) -> float:
    return score.baselines.get(name, math.nan)


def _print(run: str, measured: list[Answer]) -> None:
    """A table of the scores of the first way, then one of the times of all."""
    first = measured[0]
    facts = first.facts
    place = f" of {facts['film']}" if facts["film"] else ""
    state = "weights kept then" if first.checkpoint.startswith(KEPT) else first.checkpoint
    output.say(
        f"{run} after epoch {first.epoch} ({state}), {facts['steps']} steps{place}, {facts['way']}; means over the steps:"
    )
    table = tables.table("Score", "Predicted", "Replay", "Beside it")
    for one in first.scores:
        if score := BY_NAME.get(one.name):
            reference, replayed = (_baseline(one, name) for name in BASELINES)
            replay = "" if math.isnan(replayed) else _number(score, replayed)
            table.add_row(score.axis, _number(score, one.value), replay, _beside(score, reference))
    output.answers().print(table)
    output.say(f"Replay: what followed the nearest frame of the training films, {facts['replay']}.")
    output.say(f"Median milliseconds of a frame; {' and '.join(ONCE)} once a program:")
    times = tables.table("Way", "Cores", *(str(stage["name"]) for stage in _stages(first)))
    for answer in measured:
        medians = (f"{1e3 * float(str(stage['median_s'])):.2f}" for stage in _stages(answer))
        times.add_row(answer.facts["way"], str(answer.facts["cores"]), *medians)
    output.answers().print(times)


def _number(score: FlowScore, value: float) -> str:
    return "–" if math.isnan(value) else f"{value:{score.format}}"


def _beside(score: FlowScore, value: float) -> str:
    return "" if math.isnan(value) else f"{_number(score, value)} ({score.reference})"
