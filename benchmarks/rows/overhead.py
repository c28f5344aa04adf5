"""The total cost of journal, probes and checkpoints: a whole run against the bare engine, over
whole epochs, in turns.

Both train the same spec on a set as large as MNIST, so an epoch's end comes as often as in a real
run. The run is timed by the wall, with the time between its host calls and at the ends of epochs;
the bare engine only makes the same calls. The cost has two parts: within epochs (median
over the turns), and the ends of epochs (seconds beyond what their turn's steps take, median over
the ends; all are listed). "Of totals" is all seconds of whole epochs, and decides.
"""

from __future__ import annotations

from dataclasses import asdict

from benchmarks.effort import Effort
from benchmarks.ratios import overhead
from benchmarks.results import Report
from benchmarks.turns import WARM_UP_STEPS, Side, Turn, child_sides

PRECISION = "mixed_bfloat16"


def measure(report: Report, effort: Effort) -> None:
    """The share of the bare time; `effort.rounds` is the number of EPOCHS here,
    `effort.steps` the steps of a turn.
    """
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
    """Pairs of turns until the run has ended `effort.rounds` more epochs; whether each ended
    one.
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
