"""Who of several workers is slow: each call's times of this worker, and once an epoch a warning
that names a straggler.

All workers end a step together, so the step time shows nobody. Their own work does: the slowest
computes while the others wait for its gradients.
"""

from __future__ import annotations

from statistics import median

from gan_runtime.engines.contract import WorkerSeconds
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter

# times the median of the others: well above the scatter of equal workers on one busy host (1.2)
STRAGGLER_FACTOR = 1.5


class WorkerLog:
    """Writes the times of worker `rank`; that of rank 0 also tells of stragglers, since every
    worker hears of all.
    """

    def __init__(self, writer: JournalWriter, rank: int) -> None:
        self._writer, self._rank = writer, rank
        self._compute_s: list[tuple[float, ...]] = []  # by rank, of each call of the epoch

    def call(self, epoch: int, first_step: int, steps: int, seconds: WorkerSeconds) -> None:
        """Writes one host call of this worker."""
        self._writer.write(
            journal.WorkerTimes(
                rank=self._rank,
                epoch=epoch,
                first_step=first_step,
                steps=steps,
                step_s=seconds.compute_s + seconds.wait_s,
                compute_s=seconds.compute_s,
                wait_s=seconds.wait_s,
            )
        )
        if all(seconds.all_compute_s):  # they are 0 for the call that held the compiling
            self._compute_s.append(seconds.all_compute_s)

    def epoch_done(self, epoch: int) -> None:
        """Writes at most one warning about the epoch's slowest worker."""
        calls, self._compute_s = self._compute_s, []
        by_rank = [median(of_rank) for of_rank in zip(*calls, strict=True)]
        slowest = straggler(by_rank)
        if slowest is not None:
            self._writer.write(
                journal.Event(
                    level="warning", topic="straggler", message=_in_words(epoch, slowest, by_rank)
                )
            )


def straggler(compute_s: list[float]) -> int | None:
    """The rank whose own work takes more than STRAGGLER_FACTOR times the median of the
    others; None when all are alike.
    """
    if len(compute_s) < 2:
        return None
    slowest = compute_s.index(max(compute_s))
    others = [seconds for rank, seconds in enumerate(compute_s) if rank != slowest]
    return slowest if compute_s[slowest] > STRAGGLER_FACTOR * median(others) else None


def _in_words(epoch: int, slowest: int, compute_s: list[float]) -> str:
    others = median(seconds for rank, seconds in enumerate(compute_s) if rank != slowest)
    return (
        f"Worker {slowest} is the slowest in epoch {epoch}: its own part of a step takes"
        f" {compute_s[slowest] * 1000:.1f} ms, that of the others {others * 1000:.1f} ms, and they"
        " wait for it."
    )
