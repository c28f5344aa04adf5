"""The sizes of all measurements: full, and small for a test."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import measured_flows, measured_showers


@dataclass(frozen=True)
class Scale:
    """`rows`: step numbers of all runs; `epochs`: images of each run; `sessions`: open windows;
    `measurements`: of showers, of each run that has any; `spin_up_steps`: of the flow.
    """

    runs: int
    rows: int
    epochs: int
    sessions: int
    starts: int  # starts of the process
    visits: int  # visits per page, each in a separate window
    seconds: float  # for watching a live run
    rounds: int  # rounds of turns during a training
    replayed_s: float  # simulated time of a live run, for memory
    faster: float  # simulated time over real time
    measurements: int = measured_showers.EPOCHS
    spin_up_steps: int = measured_flows.SPIN_UP_STEPS


FULL = Scale(1_000, 10_000_000, 20, 30, 5, 20, 30.0, 5, 3_600.0, 20.0)
SMALL = Scale(6, 3_000, 2, 2, 1, 1, 4.0, 1, 40.0, 20.0, 2, 100)
