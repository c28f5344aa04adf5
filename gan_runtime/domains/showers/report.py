"""What `physics RUN` prints: the scores of generated showers next to those of real ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gan_runtime.base.errors import JobError
from gan_runtime.domains.showers.evaluation import NAME
from gan_runtime.domains.showers.score_metrics import SCORES, ShowerScore, value_words
from gan_runtime.evaluation.catalog import Grid, Report
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.run_state import answers_of

COLUMNS = ("Score", "Generated", "Real ones among themselves")


def report(_home: Home, run: RunDir, result: Mapping[str, Any]) -> Report:
    """Of the last checkpoint, where several were measured. Raises JobError when nothing was measured."""
    measured = answers_of(run, NAME)
    if not measured:
        raise JobError(f"the job has written no measurement of run {run.run_id}: look into its log.")
    last = measured[-1]
    known = {score.name: score for score in SCORES}
    rows = [_row(known[score.name], score, last) for score in last.scores if score.name in known]
    sentence = (
        f"{run.run_id} after epoch {last.epoch} ({last.checkpoint}), {last.facts['showers']:,} showers:"
    )
    fields = {"name", "value", "error", "floor", "floor_error"}
    scores = [score.model_dump(include=fields) for score in last.scores]
    return Report({"run_id": run.run_id, **result, "scores": scores}, [sentence, Grid(COLUMNS, rows)])


def _row(score: ShowerScore, value: Score, measured: Answer) -> tuple[str, str, str]:
    sides = ((value.value, value.error), (value.floor, value.floor_error))
    showers, layers = measured.facts["showers"], measured.facts["grid"][2]
    generated, real = (value_words(score, *side, showers, layers) for side in sides)
    return score.title, generated, real
