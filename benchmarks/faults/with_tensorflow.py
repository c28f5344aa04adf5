"""The same with the real trainer: TensorFlow, digits, a perceptron of a GAN. A start costs 8 s of
processor time, so these scenarios are few.
"""

from __future__ import annotations

from benchmarks.faults.harm import FINISHED, LOST, STOPPED, Harm, running_run
from benchmarks.faults.stage import Stage, kill


def kill_real_trainer(stage: Stage) -> Harm:
    """SIGKILL of the trainer, and of its owner half of the time."""
    run = running_run(stage)
    kill(stage.trainers(run))
    if stage.random.random() < 0.5:
        stage.kill_owner()
        stage.end_trainers(run)
    return Harm(run, (LOST, FINISHED))


def stop_real_trainer(stage: Stage) -> Harm:
    """A stop, on which the trainer saves; a resume loses nothing."""
    run = running_run(stage)
    stage.stop(run)
    return Harm(run, (STOPPED, FINISHED))
