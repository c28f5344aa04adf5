"""What the compiler's cycles say of a published GAN at full size, next to what its authors
measured.

Read from the newest results of `make bench ONLY=cycles` (benchmarks/rows/cycles.py); nothing of it
is typed here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime.catalog.domains import DOMAINS
from gan_runtime.catalog.entries import Speed
from gan_runtime.records.home import SHARE

RESULTS = SHARE / "benchmarks" / "results" / "latest.jsonl"
ROW, KIND = "cycles", "epoch"
COMMAND = "make bench ONLY=cycles"
EPOCH = next(
    domain.compiled_epoch for domain in DOMAINS if domain.compiled_epoch
)  # the one that is compiled
PLAIN, OWN = "keras", "ours"
PROGRAMS = {PLAIN: EPOCH.plain, OWN: EPOCH.own}
MACHINES = {machine.topology: machine for machine in EPOCH.machines}


@dataclass(frozen=True)
class Estimated:
    """Seconds per epoch from the compiler's cycles.

    `measured`: what the authors say of a program of plain layers; None for another.
    """

    program: str
    machine: str
    estimated_s: float
    measured: Speed | None

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of what was measured."""
        return None if self.measured is None else self.estimated_s / self.measured.seconds - 1.0


@dataclass(frozen=True)
class OnMachine:
    """Seconds per epoch on one machine: what the authors measured, and what is estimated of plain
    layers, their way, and of this project's step; None for what was not compiled.
    """

    machine: str
    measured_s: float
    plain_s: float | None
    own_s: float | None

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of what was measured."""
        return None if self.plain_s is None else self.plain_s / self.measured_s - 1.0

    @property
    def times_as_fast(self) -> float | None:
        """This project's step beside plain layers, both estimated."""
        return None if self.plain_s is None or self.own_s is None else self.plain_s / self.own_s


def by_machine(found: Iterable[Estimated]) -> tuple[OnMachine, ...]:
    """The same, a record a machine, in the order of MACHINES."""
    seconds = {(one.program, one.machine): one.estimated_s for one in found}
    machines = [
        OnMachine(
            machine.title,
            EPOCH.measured(machine.system).seconds,
            seconds.get((PROGRAMS[PLAIN], machine.title)),
            seconds.get((PROGRAMS[OWN], machine.title)),
        )
        for machine in EPOCH.machines
    ]
    return tuple(one for one in machines if (one.plain_s, one.own_s) != (None, None))


def stored(results: Path = RESULTS) -> tuple[Estimated, ...]:
    """Those of the newest results, in their order; none where nothing was measured."""
    try:
        lines = results.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    return estimated(
        record
        for record in map(json.loads, lines)
        if (record.get("row"), record.get("kind")) == (ROW, KIND)
    )


def estimated(records: Iterable[Mapping[str, Any]]) -> tuple[Estimated, ...]:
    """Of records of this kind: `side`, `topology`, `epoch_s`."""
    return tuple(
        Estimated(
            PROGRAMS[record["side"]],
            MACHINES[record["topology"]].title,
            record["epoch_s"],
            (
                EPOCH.measured(MACHINES[record["topology"]].system)
                if record["side"] == PLAIN
                else None
            ),
        )
        for record in records
    )
