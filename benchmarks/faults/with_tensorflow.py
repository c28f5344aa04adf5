"""Faults of the TensorFlow trainer, with a GAN of perceptrons on digits. A start takes 8 s of
processor time, so these scenarios are few.
"""

from __future__ import annotations

from benchmarks.faults.fault import FINISHED, LOST, STOPPED, Expectation, running_run
from benchmarks.faults.stage import Stage, kill


def kill_real_trainer(stage: Stage) -> Expectation:
    """SIGKILL of the trainer, and of its owner half of the time."""
    run = running_run(stage)
    kill(stage.trainers(run))
    if stage.random.random() < 0.5:
        stage.kill_owner()
        stage.end_trainers(run)
    return Expectation(run, (LOST, FINISHED))


def stop_real_trainer(stage: Stage) -> Expectation:
    """A stop, on which the trainer saves; a resume loses nothing."""
    run = running_run(stage)
    stage.stop(run)
    return Expectation(run, (STOPPED, FINISHED))
