"""Runs that start with another run's weights, trained in this process on either engine.

No framework is imported until a run trains.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime import catalog
from gan_runtime.engines.contract import Arrays
from gan_runtime.records.home import Home
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import checkpoints, loop, starting_point
from tests.support.engines.toy_runs import PICTURES

OPTIONS: dict[str, Any] = {
    **{"workload": "mlp_gan", "batch_size_global": 4, "epochs": 2},
    **{"precision": "float32", "ema_decay": 0.9},
}


@dataclass(frozen=True)
class FineTuned:
    """`first`: the final state of the first run.

    Of the second run: its first checkpoint, the messages about its start, and its final state
    without and with a stop.
    """

    first: Arrays
    begin: Arrays
    messages: list[str]
    straight: Arrays
    resumed: Arrays


def attempt(run: RunDir, stop_after: int = 1_000, **options: Any) -> tuple[Arrays, list[str]]:
    """Trains one attempt like a trainer, until step `stop_after`; returns its final state and the
    messages about its start.
    """
    spec = RunSpec.parse({**OPTIONS, **options})
    run.path.mkdir(parents=True, exist_ok=True)
    workload = importlib.import_module(spec.entry.module).WORKLOAD
    engine = importlib.import_module(catalog.engine(spec.engine).module).ENGINE(
        spec, workload, PICTURES, "cpu"
    )
    _, events = starting_point.begin(engine, spec, run)
    with JournalWriter(run.trainer_journal(), 1) as writer:
        loop.train(
            spec,
            PICTURES.rows,
            engine,
            run,
            writer,
            lambda: int(engine.state()["step"]) >= stop_after,
        )
    return engine.state(), [event.message for event in events]


def fine_tuned(engine: str, path: Path, earlier: Path | None = None) -> FineTuned:
    """Trains a run, then twice another run that starts with its weights.

    `earlier`: the folder of a run of another engine, used instead of the first run.
    """
    home = Home(path)
    folder = RunDir(home.runs / "quick-0001")
    if earlier is None:
        first, _ = attempt(folder, engine=engine)
    else:
        RunDir(earlier).path.rename(folder.path)
        newest = checkpoints.load_newest(folder.checkpoints)
        assert newest is not None
        first = newest.arrays
    options = {"engine": engine, "start_from": "quick-0001:2", "seed": 5}
    whole, cut = RunDir(home.runs / "quick-0002"), RunDir(home.runs / "quick-0003")
    straight, messages = attempt(whole, **options)
    attempt(cut, stop_after=1, **options)
    checkpoints.delete_from(folder.checkpoints, 0)  # not read again
    resumed, nothing = attempt(cut, **options)
    assert nothing == []
    return FineTuned(
        first, checkpoints.load_step(whole.checkpoints, 0).arrays, messages, straight, resumed
    )
