"""Our trainer as a user runs it, timed from what it stored: a DCGAN run in an empty home with the runtime open.

Supervisor, ingest into results.duckdb, input pipeline, checkpoints and probes are all at work; the images are random ones
in an IDX file. Training runs in host calls of `steps_per_loop` steps, and the steps of a call share its seconds evenly:
the median step is the median call, weighted by its steps. The time of probes and checkpoints between epochs is in
`phases_s` and in `elapsed_s`, not in the step time.

python -m benchmarks.ours --precision mixed_bfloat16 --batch 256 --steps 20        prints one JSON line
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.keras_loop import WARM_UP_STEPS, arguments
from benchmarks.trial import trial_home
from gan_runtime.data.mnist import DATA_VARIABLE
from gan_runtime.runtime import Runtime
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.store import Store

STEPS_PER_EPOCH = 10
DEADLINE_SECONDS = 900.0


def measure(precision: str, batch: int, steps: int) -> dict[str, Any]:
    """Images per second at the median step of one run, without its first steps."""
    epochs = -(-(WARM_UP_STEPS + steps) // STEPS_PER_EPOCH)
    spec = RunSpec.parse(
        {"dataset": "mnist", "accelerator": "cpu", "precision": precision, "batch_size_global": batch, "epochs": epochs}
    )
    with trial_home() as home:
        write_images(home.path / "images" / "mnist", STEPS_PER_EPOCH * batch)
        os.environ[DATA_VARIABLE] = str(home.path / "images")
        runtime = Runtime.open(home)
        try:
            begin = time.perf_counter()
            run_id = runtime.submit(spec).run_id
            wait_until_finished(runtime, run_id)
            elapsed_s = time.perf_counter() - begin
            step_s = median_step_s(runtime.store, run_id)
            phases = queries.phases(runtime.store, run_id)
        finally:
            runtime.close()
    return {
        "precision": precision,
        "batch": batch,
        "images_per_s": round(batch / step_s, 1),
        "step_s": round(step_s, 4),
        "steps": epochs * STEPS_PER_EPOCH,
        "elapsed_s": round(elapsed_s, 1),  # from the submit to the end, the look at the host and all starting included
        "phases_s": {name: round(seconds, 3) for name, seconds in phases.items()},
    }


def write_images(folder: Path, images: int) -> None:
    """An IDX file of random 28 × 28 images, as MNIST comes."""
    folder.mkdir(parents=True)
    pixels = np.random.default_rng(1).integers(0, 256, (images, 28, 28), np.uint8)
    (folder / "train-images-idx3-ubyte").write_bytes(struct.pack(">HBB3I", 0, 8, 3, *pixels.shape) + pixels.tobytes())


def wait_until_finished(runtime: Runtime, run_id: str) -> None:
    """Exits with the run's own reason when it ends in any other way, or is too slow."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (row := queries.run(runtime.store, run_id)).is_live and time.monotonic() < deadline:
        time.sleep(1.0)  # seldom: each look costs the trainer some milliseconds
    if row.status != "finished":
        print(runtime.home.run_dir(run_id).log_tail(40), file=sys.stderr)
        sys.exit(f"run {run_id} did not finish within {DEADLINE_SECONDS:.0f} s; it is {row.status}: {row.note}")


def median_step_s(store: Store, run_id: str) -> float:
    """Seconds of the median step after the warm-up, from the training seconds that are stored with each step."""
    curve = queries.curves(store, [run_id], ("loss_generator",), x="wall_s", max_points=1_000_000)
    return float(curve["x"].diff()[curve["step"] > WARM_UP_STEPS].median())


if __name__ == "__main__":
    given = arguments("Times a real run of our trainer.")
    print(json.dumps(measure(given.precision, given.batch, given.steps)))
