"""Measuring while training: a low-priority job measures a run as it trains.

The owner of the home requests the job once for each attempt (training_requests.py). The job scores
the newest checkpoint whenever it is so many epochs further as the run's options say, and the last
one. Training never waits: while the run trains, the job uses at most MOST_SHARE of the host's
processor time, the loading of its framework included. So it is requested late, and skips epochs.
Ended runs are measured one at a time. The job retains the best checkpoint.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

from filelock import FileLock, Timeout

from gan_runtime.base.errors import CheckpointError, RunStateError
from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declarations
from gan_runtime.catalog.evaluations import defining_facts
from gan_runtime.data.contract import Progress
from gan_runtime.engines.contract import Arrays
from gan_runtime.records import journal, processes, run_folder
from gan_runtime.records.answer import Answer, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from gan_runtime.training.checkpoints import Checkpoint

POLL_SECONDS = 1.0  # between two checks for a new checkpoint
MOST_SHARE = 0.03  # share of the host's processor time for the job while its run trains
START_S = 7.4  # processor time to load a framework and measure once; docs/metrics.md


# ---- the job -------------------------------------------------------------------------------------


class Pace:
    """Limits this process to MOST_SHARE of the host's processor time.

    `age_s`: seconds since training started; the limit counts from there. `cores`: those of the host
    that this process may use, by default. `cpu_s`: the processor seconds of this process. The work
    planned first is the start of the job.
    """

    def __init__(
        self,
        age_s: float = 0.0,
        cores: int = 0,
        clock: Callable[[], float] = time.monotonic,
        cpu_s: Callable[[], float] = time.process_time,
    ) -> None:
        self._cores = cores or processes.usable_cores()
        self._clock, self._cpu_s = clock, cpu_s
        self._first_s, self._begin_cpu_s = clock() - age_s, 0.0
        self._planned_s = START_S

    def begin(self) -> None:
        """Marks the start of the planned work."""
        self._begin_cpu_s, self._planned_s = self._cpu_s(), 0.0

    def end(self) -> None:
        """Marks the end of a measurement: the next one is planned to take as long."""
        self._planned_s = self._cpu_s() - self._begin_cpu_s

    @property
    def allows(self) -> bool:
        """Whether the planned work fits into the limit."""
        budget_s = MOST_SHARE * self._cores * (self._clock() - self._first_s)
        return self._cpu_s() + self._planned_s <= budget_s


def may_start(run: RunDir) -> bool:
    """Whether the start of a job for this run fits into the limit."""
    return Pace(age_s(run), cpu_s=lambda: 0.0).allows


def age_s(run: RunDir) -> float:
    """Seconds since the newest trainer of a run started; 0 before the first."""
    process = run.process()
    return max(0.0, time.time() - process.began) if process is not None else 0.0


def paced(
    progress: Progress, run: RunDir, pace: Pace, sleep: Callable[[float], None] = time.sleep
) -> Progress:
    """`progress`, but while the run trains, a call returns only when the pace allows it."""

    def report(done: int, total: int, sentence: str) -> None:
        progress(done, total, sentence)
        if pace.allows:
            return
        while not pace.allows and is_training(run):
            progress(done, total, "waiting, so that training stays fast")
            sleep(POLL_SECONDS)
        progress(done, total, sentence)

    return report


def new_checkpoints(
    run: RunDir,
    steps: int,
    wait: Callable[[int], None],
    pace: Pace,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[Checkpoint]:
    """Yields checkpoints of a run in training, each at least `steps` after the previous one, and
    the last one once training has ended. `wait(step)`: called before each pause, with the step of
    the next checkpoint.
    """
    measured = 0
    while True:
        is_over = not is_training(run)  # before the folder is read, so that no checkpoint is missed
        newest = checkpoints.newest_step(run.checkpoints)
        is_due = newest is not None and (
            (is_over and newest != measured) or (newest >= measured + steps and pace.allows)
        )
        checkpoint = _readable(run) if is_due else None
        if checkpoint is not None and checkpoint.step != measured:  # the newest file can be damaged
            measured = checkpoint.step
            pace.begin()
            yield checkpoint
            pace.end()
        elif is_over:
            return
        else:
            wait(measured + steps)
            sleep(POLL_SECONDS)


def _readable(run: RunDir) -> Checkpoint | None:
    """The newest usable checkpoint; None if all are damaged, or were just deleted."""
    with contextlib.suppress(CheckpointError):
        return checkpoints.load_newest(run.checkpoints)
    return None


def is_training(run: RunDir) -> bool:
    """Whether the process of a run is alive; on a cluster and another host, whether the run is
    active by its journals.
    """
    process = run.process()
    if process is None:
        return False
    is_alive = run.is_trainer_alive(process)
    if is_alive is None:
        with contextlib.suppress(RunStateError):
            return run_folder.latest_status(run).status in journal.ACTIVE
    return bool(is_alive)


@contextlib.contextmanager
def alone(
    home: Home, progress: Progress, sleep: Callable[[float], None] = time.sleep
) -> Iterator[None]:
    """Lets one process of a home at a time measure an ended run, as each needs 0.9 GB of memory
    (docs/metrics.md). The others wait until it ends, however it ends.
    """
    lock = FileLock(home.jobs / ".quality.lock")
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            progress(0, 1, "waiting until the quality of another run is measured")
            sleep(POLL_SECONDS)
    try:
        yield
    finally:
        lock.release()


# ---- the best checkpoint -------------------------------------------------------------------------


def keep_if_best(run: RunDir, answer: Answer, arrays: Arrays, wall_s: float) -> bool:
    """Makes the measured weights the best checkpoint of their run and logs an event, if their
    quality is the best of all epochs; returns whether it did. Where training chooses the best
    checkpoint by a separate number, it never does. `answer`: already in the run's journal.

    Raises:
        HomeError: the disk has too little space; the best checkpoint stays.
    """
    if declarations.of(run.spec().workload).of_role("quality"):
        return False
    answers = {each.key: each for each in run_folder.answers_of(run, answer.evaluation)}
    metric = _quality_of(run, answers.values())
    score = _score(answer, metric)
    if metric is None or score is None or checkpoints.first_not_finite(arrays):
        return False
    others = [
        _score(each, metric)
        for key, each in answers.items()
        if key != answer.key and _is_comparable(each, answer)
    ]
    if any(metric.sign * (other.value - score.value) <= 0.0 for other in others if other):
        return False
    if checkpoints.steps(run.checkpoints).get("best") == answer.step:
        return False  # it is these weights already, maybe in a higher precision
    checkpoints.replace_best(run.checkpoints, arrays, answer.step, wall_s)
    message = (
        f"The best checkpoint is now that of epoch {answer.epoch}, by {metric.title}"
        f" ({score.value:.4g}, 95% {score.low:.4g} to {score.high:.4g})."
    )
    event = journal.Event(level="info", topic="checkpoint", message=message)
    journal.append(run.supervisor_journal, run_folder.latest_status(run).attempt, event)
    run.announce()
    return True


def _is_comparable(first: Answer, second: Answer) -> bool:
    """Whether both are scores of the same definition, from the same feature network."""
    return all(first.facts.get(name) == second.facts.get(name) for name in defining_facts())


def _quality_of(run: RunDir, answers: Collection[Answer]) -> Metric | None:
    """The first declared metric of quality that the run has, as on pages."""
    declared = declarations.of(run.spec().workload).metrics
    qualities = (metric for metric in declared if metric.role == "measured_quality")
    measured = (metric for metric in qualities if any(_score(each, metric) for each in answers))
    return next(measured, None)


def _score(answer: Answer, metric: Metric | None) -> Score | None:
    """The finite score of an answer that `metric` names; None without one."""
    names: dict[Any, Score] = {
        f"{answer.metric_prefix}{score.name}": score
        for score in answer.scores
        if math.isfinite(score.value)
    }
    return names.get(metric.name) if metric else None
