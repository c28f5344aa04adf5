"""What `flow RUN` prints: the scores of a rollout next to simple predictions, and the time of each stage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from gan_runtime.base.errors import JobError
from gan_runtime.domains.flows.evaluation import NAME
from gan_runtime.domains.flows.score_metrics import BY_NAME, RolloutScore
from gan_runtime.engines.tiling.stopwatch import ONCE
from gan_runtime.evaluation.catalog import Grid, Report
from gan_runtime.records.answer import KEPT, Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import answers_of

BASELINES = ("reference", "replay")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """The scores of the first way, then the times of all. Raises JobError when nothing was measured."""
    key = result["iteration"]
    measured = [answer for answer in answers_of(run, NAME) if answer.facts["iteration"] == key]
    if not measured:
        raise JobError(f"job {key} has written no measurement: look into its log.")
    ways = [_document(answer) for answer in measured]
    return Report({"run_id": run.run_id, **result, "ways": ways}, list(_parts(run.run_id, measured)))


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


def _parts(run_id: str, measured: list[Answer]) -> Iterator[str | Grid]:
    first, facts = measured[0], measured[0].facts
    place = f" of {facts['film']}" if facts["film"] else ""
    state = "weights kept then" if first.checkpoint.startswith(KEPT) else first.checkpoint
    what = f"{facts['steps']} steps{place}, {facts['way']}; means over the steps"
    yield f"{run_id} after epoch {first.epoch} ({state}), {what}:"
    known = ((BY_NAME.get(score.name), score) for score in first.scores)
    rows = [_row(score, value) for score, value in known if score is not None]
    yield Grid(("Score", "Predicted", "Replay", "Beside it"), rows)
    yield f"Replay: what followed the nearest frame of the training films, {facts['replay']}."
    yield f"Median milliseconds of a frame; {' and '.join(ONCE)} once a program:"
    yield Grid(
        ("Way", "Cores", *(str(stage["name"]) for stage in _stages(first))), list(map(_times, measured))
    )


def _row(score: RolloutScore, value: Score) -> tuple[str, str, str, str]:
    reference, replayed = (_baseline(value, name) for name in BASELINES)
    replay = "" if math.isnan(replayed) else _number(score, replayed)
    return score.axis, _number(score, value.value), replay, _beside(score, reference)


def _times(answer: Answer) -> tuple[str, ...]:
    medians = (f"{1e3 * float(str(stage['median_s'])):.2f}" for stage in _stages(answer))
    return (answer.facts["way"], str(answer.facts["cores"]), *medians)


def _number(score: RolloutScore, value: float) -> str:
    return "–" if math.isnan(value) else f"{value:{score.format}}"


def _beside(score: RolloutScore, value: float) -> str:
    return "" if math.isnan(value) else f"{_number(score, value)} ({score.reference})"
