"""The bare engine as a side: repeated calls of `engine.run`, without the rest of a run.

It includes the input pipeline and the numbers of each step, but no journal, probe, checkpoint,
database or supervisor. A call has `steps_per_loop` steps, as in a run. Without --serve it prints
one JSON line: the median call, or with --profile N the shares of N profiled steps.

python -m benchmarks.engine_side --precision mixed_bfloat16 --batch 256 --steps 20
    [--data mnist|pictures|streamed] [--set OPTION=VALUE …] [--profile N]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
from functools import partial
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from benchmarks.ratios import total
from benchmarks.run_options import (
    add_data_argument,
    random_rows,
    reading,
    spec_of,
    trainer_arguments,
)
from benchmarks.step_timer import WARM_UP_STEPS, median_rate, time_steps
from benchmarks.trial import trial_home
from benchmarks.turns import Turn, serve
from gan_runtime import catalog
from gan_runtime.data import loading
from gan_runtime.engines.task import data_for_workload, workload_of
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec


def build(spec: RunSpec, home: Home) -> Any:
    """The engine of a run, built and traced as in a trainer. `home`: has the prepared data sets."""
    declared = catalog.engine(spec.engine)
    importlib.import_module(declared.flags).set_flags(spec, "cpu")
    engine_class = importlib.import_module(declared.module).ENGINE
    data = data_for_workload(spec, loading.load(spec.dataset, home))
    engine = engine_class(spec, workload_of(spec), data, "cpu")
    engine.trace()
    return engine


def run_steps(engine: Any, spec: RunSpec, steps: int) -> Turn:
    """Times `steps` steps, in calls of at most `steps_per_loop`."""
    full, rest = divmod(steps, spec.steps_per_loop)
    calls = [spec.steps_per_loop] * full + ([rest] if rest else [])
    return total(
        [Turn(count, time_steps(partial(engine.run, count), 1).seconds) for count in calls]
    )


def profiled_shares(engine: Any, steps: int) -> dict[str, Any]:
    """Category → share of the wall time of `steps` profiled steps, 0 to 1."""
    engine.run(WARM_UP_STEPS)
    shares: dict[str, float] = {}
    for part in engine.profile(steps).shares:
        shares[part.category] = shares.get(part.category, 0.0) + part.share
    return {"steps": steps, "shares": {name: round(share, 5) for name, share in shares.items()}}


def answer(options: argparse.Namespace, engine: Any, spec: RunSpec) -> None:
    """Serves turns, or prints one line."""
    if options.serve:
        serve(lambda steps: run_steps(engine, spec, steps))
    elif options.profile:
        print(json.dumps(profiled_shares(engine, options.profile)))
    else:
        print(
            json.dumps(
                median_rate(options.precision, options.batch, options.steps, lambda: engine.run(1))
            )
        )


def main() -> None:
    """Builds the engine of the command line and answers."""
    parser = trainer_arguments("Times the bare engine.")
    add_data_argument(parser)
    parser.add_argument(
        "--profile",
        type=int,
        default=0,
        metavar="STEPS",
        help="profile this many steps instead of timing them",
    )
    options = parser.parse_args()
    spec = spec_of(options, epochs=1, data=options.data)
    with (
        trial_home() as home,
        random_rows(home, options.images, options.data),
        reading(options.data),
    ):
        answer(options, build(spec, home), spec)


if __name__ == "__main__":
    main()
