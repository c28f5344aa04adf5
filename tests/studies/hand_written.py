"""Trainer journals of a study, written for these tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from gan_runtime.records import journal
from gan_runtime.records.run_folder import RunDir

At = Callable[[float], datetime]


def from_now() -> At:
    """Converts seconds to times after a study that is queued now."""
    begin = journal.now() + timedelta(minutes=1)
    return lambda seconds: begin + timedelta(seconds=seconds)


def train(
    run: RunDir, at: At, begin: float, epoch_s: float, epochs: int = 3, end: str = "finished"
) -> None:
    """Writes the journal of a trainer with 10 equally long steps per epoch; the first epoch takes
    10 s.
    """
    begun = journal.StatusChange(
        at=at(begin), status="starting", reason="starting a trainer on cpu"
    )
    journal.append(run.supervisor_journal, 1, begun)
    records: list[journal.Record] = [
        journal.AttemptStart(at=at(begin), resume_step=0),
        journal.AttemptPlan(at=at(begin), images=640, steps_per_epoch=10, epochs=3),
        journal.StatusChange(at=at(begin), status="running", reason="training"),
    ]
    wall_s = 0.0
    for epoch in range(1, epochs + 1):
        seconds = 10.0 if epoch == 1 else epoch_s
        times = [wall_s + seconds * step / 10 for step in range(1, 11)]
        losses = {"loss_generator": [float(epoch)] * 10, "loss_discriminator": [epoch / 2] * 10}
        first = 10 * epoch - 9
        records += [
            journal.Scalars(
                at=at(begin + times[-1]), epoch=epoch, first_step=first, wall_s=times, values=losses
            ),
            journal.EpochDone(
                epoch=epoch,
                step=10 * epoch,
                seconds=seconds,
                images=640,
                images_per_s=640 / seconds,
            ),
            journal.EpochScores(
                epoch=epoch,
                step=10 * epoch,
                wall_s=times[-1],
                values={"spread_fake": 0.1 * epoch, "spread_real": 0.5},
            ),
        ]
        wall_s = times[-1]
    if end:
        records += [
            journal.PhaseSeconds(phase="trace", seconds=1.5),
            journal.PhaseSeconds(phase="first_call", seconds=2.0),
            journal.PhaseSeconds(phase="steady_step", seconds=epoch_s / 10),
            journal.PhaseSeconds(phase="compile", seconds=1.6),
            journal.MemoryUse(
                epoch=3,
                step=30,
                process_bytes=1,
                process_peak_bytes=2 * 10**9,
                device_bytes=None,
                device_peak_bytes=None,
            ),
            journal.StatusChange(at=at(begin + wall_s + 2), status=end, reason="done"),  # type: ignore[arg-type]
        ]
    journal.append(run.trainer_journal(), 1, *records)
