"""The total cost of journal, probes and checkpoints: a whole run against the bare engine, in turns
over whole epochs.

Both train the same spec on a data set as large as MNIST, so epochs end as often as in practice. The
run is timed by wall time, including the time between host calls and the ends of epochs; the bare
engine makes only the same calls. The cost has two parts: within epochs (median over the turns), and
the ends of epochs (seconds beyond the steps of their turn, median over the ends). The target
applies to "Of totals", the ratio of all seconds of whole epochs.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.effort import Effort
from benchmarks.ratios import overhead
from benchmarks.results import Report
from benchmarks.turns import WARM_UP_STEPS, Side, Turn, child_sides

PRECISION = "mixed_bfloat16"


def measure(report: Report, effort: Effort) -> None:
    """Adds the cost as a share of the bare time. `effort.rounds` is the number of EPOCHS here."""
    epoch = effort.images // effort.batch
    commands = {
        "run": effort.trainer_command("trainer_side", PRECISION),
        "engine": effort.trainer_command("engine_side", PRECISION),
    }
    with child_sides(commands) as sides:
        full, bare, ends = turns_of(report, sides["run"], sides["engine"], effort, epoch)
    result = overhead(full, bare, ends, epoch)
    ends_s = [
        round(f.seconds - f.steps * b.step_s, 3)
        for f, b, last in zip(full, bare, ends, strict=True)
        if last
    ]
    report.rates({"run": full, "engine": bare}, effort.batch)
    report.add(
        "figure",
        **{**asdict(result.streaming), "name": "overhead", "value": result.share},
        within_epochs=result.streaming.value,
        ends_of_epochs=result.epoch_end,
        epoch_end_s=result.epoch_end_s,
        ends_s=ends_s,
        steps_per_epoch=epoch,
        of_totals=result.of_totals,
    )


def turns_of(
    report: Report, run: Side, engine: Side, effort: Effort, epoch: int
) -> tuple[list[Turn], list[Turn], list[bool]]:
    """Turns of run and engine until the run has ended `effort.rounds` epochs, and whether each turn
    ended one.
    """
    done = run.turn(WARM_UP_STEPS).steps
    engine.turn(WARM_UP_STEPS)
    full: list[Turn] = []
    bare: list[Turn] = []
    ends: list[bool] = []
    while sum(ends) < effort.rounds:
        full.append(run.turn(min(effort.steps, epoch - done % epoch)))
        bare.append(engine.turn(full[-1].steps))
        ends.append(done // epoch != (done + full[-1].steps) // epoch)
        done += full[-1].steps
        report.turn(len(full), run.name, full[-1])
        report.turn(len(full), engine.name, bare[-1])
    return full, bare, ends
