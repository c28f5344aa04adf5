"""Process entry of a trainer without a framework: the real worker, launcher, loop, journal and
checkpoints with a toy engine.

python -m tests.support.toy_trainer RUN_DIR ATTEMPT ACCELERATOR [RANK]
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path

from gan_runtime import worker
from gan_runtime.base.cluster import WorkerRank
from gan_runtime.records import journal
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import loop
from tests.support import inject
from tests.support.inject import Watcher
from tests.support.toy_engine import IMAGES, ToyEngine

MODULE = "tests.support.toy_trainer"


def train(
    watcher: Watcher,
    run: RunDir,
    writer: JournalWriter,
    _accelerator: str,
    stop: threading.Event,
    place: WorkerRank,
) -> None:
    """Trains like worker.py, but with the toy engine and without data."""
    spec = run.spec()
    writer.write(StatusChange(status="compiling", reason="building the toy"))
    engine = ToyEngine(place)
    writer.write(
        journal.HostFacts(facts=engine.describe()), journal.PhaseSeconds(phase="build", seconds=0.0)
    )
    outcome = loop.train(
        spec,
        IMAGES,
        engine,
        run,
        writer,
        lambda: stop.is_set() or run.stop_file.exists(),
        place.rank,
    )
    print(place.says(f"{outcome.reason}; {watcher.counts}"), flush=True)
    writer.write(StatusChange.of(outcome.status, outcome.cause))


if __name__ == "__main__":
    counting = inject.arm("trainer", Path(sys.argv[1]), attempt=int(sys.argv[2]))
    worker.enter(sys.argv[1:], MODULE, partial(train, counting))
