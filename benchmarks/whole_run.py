"""One whole run of our trainer in an empty home, from submit to its end, timed from its journal.

For runs that the gate of trainer_side.py cannot pause, such as those of several worker processes.
Supervisor, ingest, input pipeline, checkpoints and probes are active; rows are random. The steps of
a host call share its seconds evenly, so the median step is the median call, weighted by its steps.
Probes and checkpoints between epochs are in `phases_s` and in `elapsed_s`, not in the step time.

python -m benchmarks.whole_run --precision mixed_bfloat16 --batch 256 --steps 20
    [--data mnist|showers_full|…] [--steps-per-epoch N] [--set OPTION=VALUE …]
    prints one JSON line
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from typing import Any

from benchmarks.run_options import add_data_argument, random_rows, spec_of, trainer_arguments
from benchmarks.step_timer import WARM_UP_STEPS
from benchmarks.trial import trial_home
from gan_runtime.catalog import declarations
from gan_runtime.commands.runtime import Runtime
from gan_runtime.store import queries
from gan_runtime.store.store import Store

STEPS_PER_EPOCH = 10
DEADLINE_SECONDS = 900.0


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Images per second at the median step of one run, after the warm-up, and the trainer's peak
    memory.
    """
    epochs = -(-(WARM_UP_STEPS + options.steps) // options.steps_per_epoch)
    spec = spec_of(options, epochs, options.data)
    with (
        trial_home() as home,
        random_rows(home, options.steps_per_epoch * spec.images_per_step, options.data),
    ):
        runtime = Runtime.open(home)
        try:
            begin = time.perf_counter()
            run_id = runtime.commands.submit(spec).run_id
            wait_until_finished(runtime, run_id)
            elapsed_s = time.perf_counter() - begin
            step_s = median_step_s(
                runtime.store, run_id, declarations.of(spec.workload).losses[0].name
            )
            memory = queries.peak_memory(runtime.store, run_id)
            phases = queries.phases(runtime.store, run_id)
        finally:
            runtime.close()
    return {
        "precision": spec.precision,
        "batch": spec.batch_size_global,
        "images_per_s": round(spec.images_per_step / step_s, 1),
        "step_s": round(step_s, 4),
        "peak_mb": memory and memory.process_bytes // 1_000_000,
        "steps": epochs * options.steps_per_epoch,
        "elapsed_s": round(elapsed_s, 1),  # includes the check of the host and all starts
        "phases_s": {name: round(seconds, 3) for name, seconds in phases.items()},
    }


def wait_until_finished(runtime: Runtime, run_id: str) -> None:
    """Exits with the run's reason if it ends in another state or exceeds DEADLINE_SECONDS."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (row := queries.run(runtime.store, run_id)).is_live and time.monotonic() < deadline:
        time.sleep(1.0)  # each query costs the trainer some milliseconds
    if row.status != "finished":
        print(runtime.home.run_dir(run_id).log_tail(40), file=sys.stderr)
        sys.exit(
            f"run {run_id} did not finish within {DEADLINE_SECONDS:.0f} s; it is {row.status}:"
            f" {row.note}"
        )


def median_step_s(store: Store, run_id: str, loss: str) -> float:
    """Seconds of the median step after the warm-up, from the training seconds stored per step."""
    curve = queries.curves(store, [run_id], (loss,), x="wall_s", max_points=1_000_000)
    seconds = curve["x"].diff()[curve["step"] > WARM_UP_STEPS]
    return float(seconds[seconds > 0.0].median())  # profiled steps have no time


if __name__ == "__main__":
    parser = trainer_arguments("Times a whole run of our trainer.")
    add_data_argument(parser)
    parser.add_argument(
        "--steps-per-epoch", type=int, default=STEPS_PER_EPOCH, help="length of an epoch"
    )
    print(json.dumps(measure(parser.parse_args())))
