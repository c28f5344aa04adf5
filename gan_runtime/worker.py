"""The entry point of a trainer process: spec.json → workload, engine, loop → one final event.

    python -m gan_runtime.worker RUN_DIR ATTEMPT ACCELERATOR [RANK]

Its output goes to the run's log.txt. SIGTERM or the file STOP end it at a step boundary.

If the run has several workers and RANK is missing, a process on a cluster (TF_CONFIG or Slurm's
variables are set) derives its rank; otherwise it becomes the launcher of all workers on this host.
A job that Slurm has requeued N times trains attempt ATTEMPT + N.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

from filelock import FileLock, Timeout

from gan_runtime import catalog, device_locks
from gan_runtime.base import cluster, disk, fields, formats, framework_settings, slurm
from gan_runtime.base.cluster import WorkerRank
from gan_runtime.base.errors import (
    AcceleratorError,
    AlarmError,
    DatasetError,
    GanRuntimeError,
    NonFiniteError,
    SpecError,
)
from gan_runtime.base.framework_settings import block_scikit_learn
from gan_runtime.catalog.entries import EngineEntry
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet
from gan_runtime.device_locks import inherited_locks
from gan_runtime.engines.inputs import digest, fixed_inputs
from gan_runtime.engines.task import check_batches, data_for_workload, workload_of
from gan_runtime.hardware import hosts, machine
from gan_runtime.records import journal, processes, run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Created, JournalWriter, SideJournalWriter, StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess
from gan_runtime.records.states import Cause, Reason, cause
from gan_runtime.spec import RunSpec
from gan_runtime.spec.run_options import HERE
from gan_runtime.training import starting_point, watch, workers
from gan_runtime.training.watch import StartupWatch

if TYPE_CHECKING:
    from gan_runtime.training.loop import Outcome

_LOCK_POLL_SECONDS = 1.0
Trains = Callable[[RunDir, JournalWriter, str, threading.Event, WorkerRank], None]


def enter(
    words: list[str], module: str = processes.TRAINER, train: Trains | None = None
) -> NoReturn:
    """Runs a trainer process and exits.

    `words`: the command line after the module's name. `module`: the module that a launcher starts
    as workers. `train`: what a worker runs once it has its rank, by default `_train`.
    """
    with processes.scratch_folder() as scratch:
        settle(scratch)
        code = attempt(words, module, train)
    leave(code)


def settle(scratch: Path) -> None:
    """Cleans the environment of this process, and moves its temporary files into `scratch`."""
    # TensorFlow leaves a file for each function that it rewrites.
    tempfile.tempdir = str(scratch)
    framework_settings.clean_this_process()
    framework_settings.use_private_keras_home(scratch)


def attempt(words: list[str], module: str = processes.TRAINER, train: Trains | None = None) -> int:
    """Trains with the locks that this process has; returns the exit code."""
    device_locks.start_refreshing(inherited_locks(os.environ))
    processes.handed_start_locks(os.environ)
    try:
        return main(
            RunDir(Path(words[0])),
            int(words[1]) + slurm.restarts(),
            words[2],
            *map(int, words[3:4]),
            module=module,
            train=train,
        )
    except GanRuntimeError as error:  # without a rank there is no journal to write to
        print(error)
        return workers.FAILED


def leave(code: int) -> NoReturn:
    """Exits at once."""
    sys.stdout.flush()
    sys.stderr.flush()
    # Everything is on disk. An orderly exit of TensorFlow holds the accelerator for seconds more.
    os._exit(code)


def main(
    run: RunDir,
    attempt: int,
    accelerator: str,
    rank: int | None = None,
    *,
    module: str = processes.TRAINER,
    train: Trains | None = None,
) -> int:
    """Trains one attempt; returns the exit code: 0 finished or stopped, 1 failed, 3 failed because
    another worker did.
    """
    place = _place(run, rank)
    if place is None:
        return workers.launch(run, attempt, accelerator, module)
    lock = _lock(run, place)
    if lock is None:
        return workers.FAILED
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    os.environ[cluster.MEETING_VARIABLE] = f"{run.run_id}/{attempt}"
    if place.on_cluster:
        _write_output_to(run.worker_log(place.rank), place)
    if rank is None and place.rank == 0:
        _write_process(run, attempt, accelerator, place)
    writer_kind = JournalWriter if place.rank == 0 else SideJournalWriter
    with lock, writer_kind(run.trainer_journal(place.rank), attempt) as writer:
        try:
            with disk.full_disk_as_home_error(run.path):
                (train or _train)(run, writer, accelerator, stop, place)
            return 0
        except (NonFiniteError, AlarmError) as error:  # raised by all workers
            print(place.says(str(error)))
            if place.rank == 0:
                is_alarm = isinstance(error, AlarmError)
                code = Reason.ALARM_AFTER_ROLL_BACKS if is_alarm else Reason.NOT_FINITE
                writer.write(StatusChange.of("failed", cause(code, message=str(error))))
        except GanRuntimeError as error:
            print(place.says(str(error)))
            refused = cause(Reason.REFUSED, message=place.says(str(error)))
            writer.write(StatusChange.of("failed", refused))
        except Exception as error:  # the dashboard must show the reason
            traceback.print_exc()
            writer.write(StatusChange.of("failed", crash(error, place)))
            return workers.CUT_OFF if place.lost_in(error) else workers.FAILED
        return workers.FAILED


def _place(run: RunDir, rank: int | None) -> WorkerRank | None:
    """The rank of this worker process; None for the launcher of all workers.

    Raises AcceleratorError when the cluster does not fit the run.
    """
    try:
        spec = run.spec()
    except SpecError:
        return WorkerRank()  # an unknown cluster is reported once there is a journal
    if spec.workers == 1:
        return WorkerRank(on_cluster=cluster.is_cluster())
    if rank is not None:
        return WorkerRank(rank, spec.workers)
    return _cluster_of(spec).place(spec.workers) if cluster.is_cluster() else None


def _lock(run: RunDir, place: WorkerRank) -> FileLock | None:
    """The lock of a worker's journal; None if another process has it, which trains the run.

    A requeued job waits: the controller has lost its host, where the trainer can be alive. Nothing
    continues what that one has ended as failed.
    """
    lock = FileLock(run.worker_lock(place.rank))
    with contextlib.suppress(Timeout):
        lock.acquire(blocking=False)
        return lock
    known = f"another process already trains {run.run_id}"
    if not slurm.restarts():
        print(place.says(f"{known}; this process exits."))
        return None
    print(place.says(f"{known}; this one waits for its end."), flush=True)
    lock.acquire(poll_interval=_LOCK_POLL_SECONDS)
    path = run.trainer_journal(place.rank)
    states = journal.statuses(path) if path.exists() else []
    if states and states[-1][1].status == "failed":
        print(place.says(f"it has failed: {states[-1][1].reason}"))
        lock.release()
        return None
    return lock


def _cluster_of(spec: RunSpec) -> Any:
    """The module that connects the workers of the run's engine."""
    return importlib.import_module(catalog.engine(spec.engine).cluster)


def _write_output_to(log: Path, place: WorkerRank) -> None:
    """Continues the output of this process in a log of the run, where the dashboard shows it."""
    with log.open("ab") as file:
        if not os.path.sameopenfile(file.fileno(), sys.stdout.fileno()):
            print(place.says(f"the output continues in {log}"), flush=True)
            os.dup2(file.fileno(), sys.stdout.fileno())
        os.dup2(file.fileno(), sys.stderr.fileno())


def _write_process(run: RunDir, attempt: int, accelerator: str, place: WorkerRank) -> None:
    """Writes process.json. Of a run that no owner has started also journals the start, and the
    submission if there is none.
    """
    trainer = partial(TrainerProcess.of, os.getpid(), attempt=attempt, attempt_began=time.time())
    is_submitted = run.supervisor_journal.exists()
    if not place.on_cluster and is_submitted:
        run.write_process(trainer())
        return
    run.write_process(trainer(cluster_host=platform.node() if place.on_cluster else None))
    if run.spec().target != HERE:  # its owner has submitted the job, and journals the start
        return
    why = cause(Reason.STARTING, devices=accelerator)
    if place.on_cluster:
        several = place.workers if place.workers > 1 else 0
        why = cause(Reason.STARTED_ON_CLUSTER, workers=several)
    starting = StatusChange.of("starting", why)
    if is_submitted:
        if not slurm.restarts():  # the user has started this attempt after the stop of another
            run.stop_file.unlink(missing_ok=True)
        journal.append(run.supervisor_journal, attempt, starting)
    else:
        spec = run.spec()
        created = Created(
            spec=spec.model_dump(),
            accelerator=accelerator,
            color=0,
            images_per_step=spec.images_per_step,
        )
        journal.append(run.supervisor_journal, attempt, created, starting)
    run.announce()


def crash(error: Exception, place: WorkerRank) -> Cause:
    """The reason code and details of an unexpected exception in a worker."""
    kind, lost = type(error).__name__, place.lost_in(error)
    worker = place.name if place.workers > 1 else ""
    if lost is None:
        first = (str(error).splitlines() or [""])[0][:300]
        return cause(Reason.CRASHED, worker=worker, error=kind, message=first)
    return cause(Reason.WORKERS_DISCONNECTED, worker=worker, others=lost, error=kind)


def _train(
    run: RunDir, writer: JournalWriter, accelerator: str, stop: threading.Event, place: WorkerRank
) -> None:
    def stop_requested() -> bool:
        return stop.is_set() or run.stop_file.exists()

    spec = run.spec()
    with StartupWatch(writer, stop_requested) as startup:
        outcome = _outcome(
            spec, run, writer, accelerator, place, stop_requested, startup.first_step
        )
    why = outcome.cause
    if why.code is Reason.STOP_ON_REQUEST and run.stop_asker == slurm.TIME_LIMIT:
        why = Cause(Reason.STOP_AT_TIME_LIMIT, why.details)
    print(place.says(why.sentence), flush=True)
    writer.write(StatusChange.of(outcome.status, why))
    _cluster_of(spec).leave()


def _outcome(
    spec: RunSpec,
    run: RunDir,
    writer: JournalWriter,
    accelerator: str,
    place: WorkerRank,
    stop_requested: Callable[[], bool],
    first_step: Callable[[], None],
) -> Outcome:
    """Loads data and engine, then trains."""
    begin = time.perf_counter()
    block_scikit_learn()
    engine_entry = catalog.engine(spec.engine)
    flags = importlib.import_module(engine_entry.flags)
    flags.set_flags(spec, accelerator)  # before the data set: reading MNIST imports Keras
    rows, content = _data(run, spec, writer)
    writer.write(StatusChange.of("compiling", cause(Reason.BUILDING)))
    engine_module = _loaded(engine_entry)
    workload, data = workload_of(spec), data_for_workload(spec, rows)
    check_batches(spec, workload.program(spec.of_workload, data.fields))
    if not run.has_checkpoint:
        disk.require(
            run.path,
            watch.checkpoints_bytes(spec, data.fields),
            "this run with its checkpoints",
        )
    from gan_runtime.training import loop
    from gan_runtime.training.recorder import SampleWriter

    engine = engine_module.ENGINE(spec, workload, data, accelerator)
    # The framework has put its own handler in place of ours when it connected the workers.
    signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))
    begun, events = starting_point.begin(engine, spec, run)
    writer.write(
        journal.HostFacts(
            facts={
                **machine.facts(),
                **engine.describe(),
                "settings": framework_settings.recorded(os.environ),
                "data_origin": data.origin,
                **content,
                **begun,
            }
        ),
        *events,
        journal.PhaseSeconds(phase="build", seconds=time.perf_counter() - begin),
    )
    classes = fields.class_names(data.fields)
    return loop.train(
        spec,
        data.rows,
        engine,
        run,
        writer,
        stop_requested,
        place.rank,
        SampleWriter.of(
            spec, classes, digest(fixed_inputs(workload, spec.of_workload, data), classes)
        ),
        first_step,
    )


def _loaded(engine: EngineEntry) -> ModuleType:
    """The module of the engine.

    Raises AcceleratorError: the framework of the engine cannot be imported.
    """
    try:
        return importlib.import_module(engine.module)
    except ImportError:
        trace = traceback.format_exc()
        print(trace)
        raise AcceleratorError(hosts.not_loaded(engine.title, trace)) from None


def _data(run: RunDir, spec: RunSpec, writer: JournalWriter) -> tuple[DataSet, dict[str, str]]:
    """The data set, and the digest of its content for the record; {} for a built-in set.

    Raises DatasetError if it is missing, or if its content has changed since an earlier attempt.
    """
    home = Home(run.path.parent.parent)
    content = loading.content_of(spec.dataset, home)
    if refusal := run_folder.data_refusal(run, spec.dataset, content):
        raise DatasetError(refusal)
    data = loading.load(spec.dataset, home)
    spec.check_set(data.rows)
    if data.note:
        writer.write(journal.Event(level="info", topic="data", message=data.note))
    print(f"{data.name}: {formats.count(data.rows)} rows from {data.origin}", flush=True)
    return data, {run_folder.DATA_FACT: content} if content else {}


if __name__ == "__main__":
    enter(sys.argv[1:])
