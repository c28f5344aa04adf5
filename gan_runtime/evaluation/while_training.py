"""Quality in the loop: a job of the lowest priority measures a run that trains.

The owner of the home requests the job once for each attempt (evaluation/jobs.py). The job scores
the newest checkpoint whenever it is `quality_every` epochs further, and the last one. Training
never waits for it: where it is slower than training, it skips epochs. It retains the best
checkpoint.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

from gan_runtime.base.errors import CheckpointError
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.engines.contract import Arrays
from gan_runtime.records import journal, processes, run_folder
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint

POLL_SECONDS = 1.0  # between two looks for a new checkpoint
# ---- the job -------------------------------------------------------------------------------------


def new_checkpoints(
    run: RunDir,
    steps: int,
    wait: Callable[[int], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Checkpoint]:
    """Checkpoints of a run in training, each at least so many steps after the one before, and the
    last one once training has ended. `wait(step)`: called before each pause, with the step of the
    next one.
    """
    measured = 0
    while True:
        is_over = not is_training(run)  # before the folder is read, so that none is missed
        newest = checkpoints.newest_step(run.checkpoints)
        if newest is not None and (newest >= measured + steps or (is_over and newest != measured)):
            # A damaged one, or one that was deleted meanwhile, is skipped for the next.
            with contextlib.suppress(CheckpointError):
                if checkpoint := checkpoints.load_newest(run.checkpoints):
                    measured = checkpoint.step
                    yield checkpoint
        if is_over and checkpoints.newest_step(run.checkpoints) in (measured, newest, None):
            return
        if not is_over:
            wait(measured + steps)
            sleep(POLL_SECONDS)


def is_training(run: RunDir) -> bool:
    """Whether the process of a run on this host is alive."""
    process = run.process()
    if process is None:
        return False
    identity = process["pid"], process["started"], process.get("born", "")
    return processes.alive(*identity) is not None


# ---- the best checkpoint -------------------------------------------------------------------------


def keep_if_best(run: RunDir, answer: Answer, arrays: Arrays, wall_s: float) -> bool:
    """Makes measured weights the best checkpoint of their run, and logs an event, if no other epoch
    has as good a quality; returns whether it did. `answer`: in the run's journal already.

    Raises:
        HomeError: the disk has too little space; the best checkpoint stays.
    """
    metric = declarations.of(run.spec().workload).of_role("measured_quality")
    score = _score(answer, metric)
    if metric is None or score is None or checkpoints.first_not_finite(arrays):
        return False
    answers = {each.key: each for each in run_folder.answers_of(run, answer.evaluation)}
    others = [_score(each, metric) for key, each in answers.items() if key != answer.key]
    if any(metric.sign * (other.value - score.value) <= 0.0 for other in others if other):
        return False
    checkpoints.replace_best(run.checkpoints, arrays, answer.step, wall_s)
    message = (
        f"The best checkpoint is now that of epoch {answer.epoch}, by {metric.title}"
        f" ({score.value:.4g}, 95% {score.low:.4g} to {score.high:.4g})."
    )
    event = journal.Event(level="info", topic="checkpoint", message=message)
    journal.append(run.supervisor_journal, run_folder.latest_status(run).attempt, event)
    run.announce()
    return True


def _score(answer: Answer, metric: Metric | None) -> Score | None:
    """The finite score of an answer that is this number of the run."""
    names: dict[Any, Score] = {
        f"{answer.metric_prefix}{score.name}": score
        for score in answer.scores
        if math.isfinite(score.value)
    }
    return names.get(metric.name) if metric else None
