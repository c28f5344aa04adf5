"""Process entry of a trainer: spec.json → workload, engine, loop → one final event.

    python -m gan_runtime.worker RUN_DIR ATTEMPT ACCELERATOR

Everything printed goes to the run's log.txt. A stop comes as SIGTERM or as the file STOP; both end at a step boundary.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
import threading
import time
import traceback
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from gan_runtime import catalog, hosts, journal
from gan_runtime.data import loading
from gan_runtime.errors import GanRuntimeError
from gan_runtime.journal import JournalWriter
from gan_runtime.rundir import RunDir


def main(run: RunDir, attempt: int, accelerator: str) -> int:
    """Trains one attempt of one run; returns the exit code (0 finished or stopped, 1 failed)."""
    lock = FileLock(run.worker_lock)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        print(f"another process already trains {run.run_id}; this one ends.")
        return 1
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run.write_process({"pid": os.getpid(), "started": psutil.Process().create_time(), "attempt": attempt})
    with lock, JournalWriter(run.trainer_journal(), attempt) as writer:
        try:
            _train(run, writer, accelerator, stop)
            return 0
        except GanRuntimeError as error:
            print(error)
            writer.write(journal.StatusChange(status="failed", reason=str(error)))
        except Exception as error:  # the last line of defence: a person must read why in the dashboard
            traceback.print_exc()
            first = (str(error).splitlines() or [""])[0][:300]
            writer.write(
                journal.StatusChange(status="failed", reason=f"{type(error).__name__}: {first} (the log has the details)")
            )
        return 1


def _train(run: RunDir, writer: JournalWriter, accelerator: str, stop: threading.Event) -> None:
    begin = time.perf_counter()
    spec = run.spec()
    data = loading.load(spec.dataset)
    spec.check_set(len(data.images))
    if data.note:
        writer.write(journal.Event(level="info", topic="data", message=data.note))
    print(f"{data.name}: {len(data.images)} images from {data.origin}", flush=True)
    writer.write(journal.StatusChange(status="compiling", reason="building the networks and tracing the training step"))
    engine_module = importlib.import_module(catalog.ENGINES[spec.engine].module)
    workload = importlib.import_module(catalog.WORKLOADS[spec.workload].module).WORKLOAD
    from gan_runtime.training import loop

    engine = engine_module.ENGINE(spec, workload, data, accelerator)
    writer.write(
        journal.HostFacts(facts={**hosts.facts(), **engine.describe(), "data_origin": data.origin}),
        journal.Phase(phase="build", seconds=time.perf_counter() - begin),
    )
    outcome = loop.train(spec, len(data.images), engine, run, writer, lambda: stop.is_set() or run.stop_file.exists())
    print(outcome.reason, flush=True)
    writer.write(journal.StatusChange(status=outcome.status, reason=outcome.reason))


if __name__ == "__main__":
    code = main(RunDir(Path(sys.argv[1])), int(sys.argv[2]), sys.argv[3])
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is on disk. Taking TensorFlow down in order holds the accelerator's memory for seconds more.
    os._exit(code)
