"""A run that begins with another run's weights, by the training loop in this process; on
whichever engine. No framework until then.
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
    """`first`: the state with which the first run ended.

    Of the second one: its first checkpoint, what is said of it, and its last state, without a stop
    and with one.
    """

    first: Arrays
    begin: Arrays
    messages: list[str]
    straight: Arrays
    resumed: Arrays


def attempt(run: RunDir, stop_after: int = 1_000, **options: Any) -> tuple[Arrays, list[str]]:
    """One attempt as a trainer makes it, stopped after so many steps; the state at its end,
    and what is said of its beginning.
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
    """Trains a run, and another one with its weights, twice.

    `earlier`: of a run of another engine, in the place of the first.
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
    checkpoints.delete_from(folder.checkpoints, 0)  # nobody reads them again
    resumed, nothing = attempt(cut, **options)
    assert nothing == []
    return FineTuned(
        first, checkpoints.load_step(whole.checkpoints, 0).arrays, messages, straight, resumed
    )
