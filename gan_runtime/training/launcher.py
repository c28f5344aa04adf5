"""Several workers on this host, in the process group of this process: starts them, and sees to it
that none outlives another.

It lives as long as they do and needs no dashboard. An all-reduce needs every worker, so when one
ends in any way but well, the others are ended too, and the journal of the launcher names the one
that was first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Place
from gan_runtime.device_locks import handed
from gan_runtime.records import journal, processes
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import Reason, cause
from gan_runtime.spec import RunSpec

POLL_SECONDS = 0.1
FAREWELL_SECONDS = (
    10.0  # for the others to end by themselves: after a good end, or to say why they failed too
)

FAILED = 1  # exit code of a worker that has said why in its journal
CUT_OFF = 3  # exit code of one that lost the others: the reason lies elsewhere


@dataclass(frozen=True)
class _LaunchedWorker:
    """A worker that this process has started."""

    place: Place
    process: subprocess.Popen[bytes]

    @property
    def in_words(self) -> str:
        """Such as "worker 1 of 2 (pid 4711)"."""
        return f"{self.place.name} (pid {self.process.pid})"


def launch(run: RunDir, attempt: int, accelerator: str, module: str) -> int:
    """Starts the workers of one attempt, each as `module`, and waits for their end; returns 0 when
    all ended well.
    """
    # Meant for the workers, which get it too, as the whole group does. Ignored, not handled: a
    # worker that is still loading inherits that and does not die of it before it can listen.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    workers = _start(run, attempt, accelerator, module)
    started = [
        processes.identity(worker.process.pid) | {"rank": worker.place.rank} for worker in workers
    ]
    run.write_process(processes.identity(os.getpid()) | {"attempt": attempt, "workers": started})
    first = _first_to_end_badly(workers)
    if first is None:
        return 0
    if first.process.returncode > 0:
        _wait_for_all(workers)
    guilty = _guilty(first, workers)
    _kill(workers)
    reason = _reason(run, attempt, guilty)
    if reason is not None:
        journal.append(run.launcher_journal, attempt, reason)
        print(reason.reason, flush=True)
    return 1


def _start(run: RunDir, attempt: int, accelerator: str, module: str) -> list[_LaunchedWorker]:
    spec = run.spec()
    addresses = cluster.free_addresses(spec.workers)
    command = [sys.executable, "-m", module, str(run.path), str(attempt), accelerator]
    # Handed on, since a worker that outlives this process still has its device and is of this
    # start.
    locks = [*(one.number for one in handed(os.environ)), *processes.handed_start_locks(os.environ)]
    return [
        _LaunchedWorker(
            Place(rank, spec.workers),
            subprocess.Popen(
                [*command, str(rank)],
                env=environment(spec, accelerator, addresses, rank, dict(os.environ)),
                pass_fds=locks,
            ),
        )
        for rank in range(spec.workers)
    ]


def environment(
    spec: RunSpec, accelerator: str, addresses: list[str], rank: int, given: dict[str, str]
) -> dict[str, str]:
    """What worker `rank` finds in its environment: the others' addresses, and its own share of the
    cores or GPUs.
    """
    own = {**given, "TF_CONFIG": cluster.tf_config(addresses, rank)}
    if accelerator == "cpu":
        # Each worker would take all cores. Measured with 2 workers on 2 cores: a step takes 7 to 13
        # % less time this way.
        own.setdefault("TF_NUM_INTRAOP_THREADS", str(max(1, (os.cpu_count() or 1) // spec.workers)))
    if accelerator == "gpu":
        visible = given.get("CUDA_VISIBLE_DEVICES") or ",".join(
            str(gpu) for gpu in range(spec.replicas_in_all)
        )
        begin = rank * spec.replicas
        own["CUDA_VISIBLE_DEVICES"] = ",".join(visible.split(",")[begin : begin + spec.replicas])
    return own


def _first_to_end_badly(workers: list[_LaunchedWorker]) -> _LaunchedWorker | None:
    """Waits; None when all ended well.

    Once the first worker has ended well, the run has: whoever still lingers is ended.
    """

    def bad() -> list[_LaunchedWorker]:
        return [worker for worker in workers if worker.process.poll() not in (None, 0)]

    while not bad() and workers[0].process.poll() is None:
        time.sleep(POLL_SECONDS)
    if workers[0].process.poll() == 0:
        _wait_for_all(workers)
        _kill(workers)
        return None
    return _guilty(bad()[0], workers)


def _guilty(first: _LaunchedWorker, workers: list[_LaunchedWorker]) -> _LaunchedWorker:
    """Of those that have ended, the one whose end was no consequence: killed before failed, failed
    before cut off.
    """
    bad = [worker for worker in workers if worker.process.poll() not in (None, 0)]
    killed = [worker for worker in bad if worker.process.returncode == -signal.SIGKILL]
    failed = [
        worker for worker in bad if worker.process.returncode not in (CUT_OFF, -signal.SIGABRT)
    ]
    return (killed or failed or [first])[0]


def _wait_for_all(workers: list[_LaunchedWorker]) -> None:
    deadline = time.monotonic() + FAREWELL_SECONDS
    while any(worker.process.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _kill(workers: list[_LaunchedWorker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.wait()


def _reason(run: RunDir, attempt: int, guilty: _LaunchedWorker) -> StatusChange | None:
    """Why the run ended, with the worker's name.

    Said again when the worker has said it: another may have spoken last.
    """
    code, worker = guilty.process.returncode, guilty.in_words
    if code < 0:
        name = signal.Signals(-code).name
        return StatusChange.of(
            "lost", cause(Reason.WORKER_KILLED, worker=worker, signal=-code, name=name)
        )
    failures = [
        record
        for record in journal.read_all(run.trainer_journal(guilty.place.rank))
        if isinstance(record, StatusChange)
        and record.attempt == attempt
        and record.status == "failed"
    ]
    if failures:
        return failures[-1].model_copy(update={"at": journal.now()})
    if code == FAILED:
        return None  # it failed as all did, and the first worker has said why
    return StatusChange.of("failed", cause(Reason.WORKER_EXITED, worker=worker, exit_code=code))
