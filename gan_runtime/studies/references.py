"""Published numbers to compare with: the paper's settings and sentences, and an epoch of a GAN at
full size as its authors measured it and as the TPU's compiler estimates it.

Literal tables with their source. Quotations are word for word: Ravikumar and Sriraman 2023,
doi:10.32604/csse.2023.034710. The estimates are read from the newest results of `make bench
ONLY=cycles` (benchmarks/rows/cycles.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime.catalog.domain import DOMAINS
from gan_runtime.catalog.entries import Speed
from gan_runtime.records.home import SHARE

PAPER = "Ravikumar and Sriraman 2023"

# The paper's setting: Table 1, sections 4 and 5, Figs. 5 to 10. A TPU compiles every step with XLA.
PAPER_DATASET, PAPER_IMAGES = "mnist", 60_000
PAPER_MACHINE, PAPER_REPLICAS = "TPU v3", 8
PAPER_EPOCHS = 30
PAPER_BATCHES = (64, 128, 256, 512)
PAPER_BEST_BATCHES = (256, 512)  # whose losses it calls optimized best, Fig. 10
PAPER_RESTARTS_BATCH = 512  # batch with a cyclic learning rate, Fig. 9
PAPER_DEVICES_BATCH = 32  # in the comparison of accelerators, Fig. 13
# The paper, abstract and sections 5.3 and 5.4. It gives these numbers in its text; its figures have
# no tables.
PAPER_TIME_SAVED = 0.79  # share of the training time, batch 512 against 64
PAPER_XLA_SPEEDUP = 1.15
PAPER_FASTER_THAN = {
    "CPU": 0.562,
    "GPU": 0.197,
    "TPU, serial": 0.246,
}  # eight TPU cores at batch 32, share of time


@dataclass(frozen=True)
class Quotation:
    """A quotation. `sentence`: as printed."""

    section: str
    sentence: str


TIME_FELL = Quotation(
    "abstract and section 6, conclusion",
    "The training time was reduced by 79% by varying the batch size from 64 to 512 in multi-core"
    " TPU.",
)
TIME_ROSE = Quotation(
    "section 5.1",
    "The different batch sizes implemented using the novel GAN network in distributed TPU showed an"
    " increase in training time as the batch sizes increased, as shown in Figs. 5 and 6.",
)
LOSSES_SHOWN = Quotation(
    "section 5.2",
    "The generator loss and discriminator loss for the varying batch sizes are shown in Fig. 7.",
)
HISTOGRAMS_SHOWN = Quotation(
    "section 5.2",
    "The histogram loss curve's loss concentration on each epoch for all batch sizes is"
    " demonstrated.",
)
RATE_DIPS = Quotation(
    "section 5.2",
    "It can infer that there is a dip in the learning rate at iteration 7 and iteration 24 for"
    " batch size 512, and finally, there is a sudden rise in the learning rate, and the peak is"
    " attained.",
)
RATE_OF_TABLE = Quotation("Table 1", "Adam(1e-4)")
OPTIMIZED = Quotation(
    "section 5.2",
    "The loss is optimized in batch sizes 256 and 512—so better optimization as batch size"
    " increases.",
)
LEAST_AT_512 = Quotation(
    "section 5.2",
    "From Fig. 11, the generator loss is minimized, and the radius is minimum for batch size 512,"
    " clearly showing it has the minimum loss.",
)
REDUCED = Quotation(
    "section 5.2",
    "As the iteration increases, the loss is reduced; further, it is reduced with an increase in"
    " batch size.",
)
RISES_IN_D = Quotation(
    "section 5.2",
    "The loss is less for smaller batch sizes in the discriminator and increases with batch size.",
)
XLA = Quotation(
    "section 5.3",
    "After enabling XLA, the models run around 1.15 times quicker than before, as shown in"
    " Fig. 12.",
)
FASTER = Quotation(
    "section 5.4",
    "The proposed model is 56.20% faster than a CPU, 19.7% faster than GPU, and 24.6% faster than"
    " serial TPU execution for batch size 32.",
)


# ---- an epoch at full size -----------------------------------------------------------------------

RESULTS = SHARE / "benchmarks" / "results" / "latest.jsonl"
ROW, KIND = "cycles", "epoch"
COMMAND = "make bench ONLY=cycles"
EPOCH = next(domain.compiled_epoch for domain in DOMAINS.values() if domain.compiled_epoch)
PLAIN, PROJECT = "keras", "ours"  # the programs: plain Keras layers, and this project's step
PROGRAMS = {PLAIN: EPOCH.plain, PROJECT: EPOCH.project}
MACHINES = {machine.topology: machine for machine in EPOCH.machines}


@dataclass(frozen=True)
class EpochEstimate:
    """Seconds per epoch from the compiler's cycles. `measured`: the authors' measurement with plain
    layers; None for this project's step.
    """

    program: str
    machine: str
    estimated_s: float
    measured: Speed | None

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of the measurement."""
        return None if self.measured is None else self.estimated_s / self.measured.seconds - 1.0


@dataclass(frozen=True)
class MachineEpochs:
    """Seconds per epoch on one machine: measured by the authors, and estimated for plain layers
    and for this project's step; None for what was not compiled.
    """

    machine: str
    measured_s: float
    plain_s: float | None
    own_s: float | None

    @property
    def error(self) -> float | None:
        """Of the estimate, as a share of the measurement."""
        return None if self.plain_s is None else self.plain_s / self.measured_s - 1.0

    @property
    def times_as_fast(self) -> float | None:
        """This project's step against plain layers, both estimated."""
        return None if self.plain_s is None or self.own_s is None else self.plain_s / self.own_s


def by_machine(estimates: Iterable[EpochEstimate]) -> tuple[MachineEpochs, ...]:
    """A record a machine, in the order of MACHINES."""
    seconds = {(each.program, each.machine): each.estimated_s for each in estimates}
    machines = [
        MachineEpochs(
            machine.title,
            EPOCH.measured(machine.system).seconds,
            seconds.get((PROGRAMS[PLAIN], machine.title)),
            seconds.get((PROGRAMS[PROJECT], machine.title)),
        )
        for machine in EPOCH.machines
    ]
    return tuple(each for each in machines if (each.plain_s, each.own_s) != (None, None))


def stored_estimates(results: Path = RESULTS) -> tuple[EpochEstimate, ...]:
    """The estimates in the newest benchmark results, in order; empty without results."""
    try:
        lines = results.read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    return epoch_estimates(
        record
        for record in map(json.loads, lines)
        if (record.get("row"), record.get("kind")) == (ROW, KIND)
    )


def epoch_estimates(records: Iterable[Mapping[str, Any]]) -> tuple[EpochEstimate, ...]:
    """The estimates from records with `side`, `topology` and `epoch_s`."""
    return tuple(
        EpochEstimate(
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
