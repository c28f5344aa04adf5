"""The workers of a run: a launcher for several on this host, and warnings about slow ones.

The launcher runs in the workers' process group until they end, and needs no dashboard. An
all-reduce needs every worker, so when one fails, the launcher ends the others and journals the
first failure.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from statistics import median

from gan_runtime.base import cluster
from gan_runtime.base.cluster import WorkerRank
from gan_runtime.device_locks import inherited_locks
from gan_runtime.engines.contract import WorkerSeconds
from gan_runtime.records import journal, processes
from gan_runtime.records.journal import JournalWriter, StatusChange
from gan_runtime.records.run_folder import RunDir, TrainerProcess, WorkerProcess
from gan_runtime.records.states import Reason, cause
from gan_runtime.spec import RunSpec

POLL_SECONDS = 0.1
GRACE_SECONDS = 10.0  # for the other workers to exit after a failure
FAILED = 1  # exit code of a worker that has journaled the reason
CUT_OFF = 3  # exit code of a worker that lost the others, which journal the reason
# Limit on a worker's computing time, relative to the median of the others. On one busy host, equal
# workers differ by up to 1.2.
STRAGGLER_FACTOR = 1.5


@dataclass(frozen=True)
class _LaunchedWorker:
    place: WorkerRank
    process: subprocess.Popen[bytes]

    @property
    def in_words(self) -> str:
        """For example "worker 1 of 2 (pid 4711)"."""
        return f"{self.place.name} (pid {self.process.pid})"


def launch(run: RunDir, attempt: int, accelerator: str, module: str) -> int:
    """Starts the workers of one attempt, each running `module`, and waits; returns 0 if all
    succeed.
    """
    # The whole process group gets SIGTERM. Workers inherit an ignored signal, not a handler, so
    # this protects them while they load.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    workers = _start(run, attempt, accelerator, module)
    started = [WorkerProcess.of(worker.process.pid, rank=worker.place.rank) for worker in workers]
    run.write_process(TrainerProcess.of(os.getpid(), attempt=attempt, workers=tuple(started)))
    first = _first_failure(workers)
    if first is None:
        return 0
    if first.process.returncode > 0:
        _wait_for_all(workers)
    culprit = _culprit(first, workers)
    _kill(workers)
    reason = _reason(run, attempt, culprit)
    if reason is not None:
        journal.append(run.launcher_journal, attempt, reason)
        print(reason.reason, flush=True)
    return 1


def _start(run: RunDir, attempt: int, accelerator: str, module: str) -> list[_LaunchedWorker]:
    spec = run.spec()
    addresses = cluster.free_addresses(spec.workers)
    command = processes.command(module, str(run.path), str(attempt), accelerator)
    # Workers inherit the device locks, so a worker that outlives this process still holds its
    # device.
    devices = [lock.number for lock in inherited_locks(os.environ)]
    locks = [*devices, *processes.handed_start_locks(os.environ)]
    return [
        _LaunchedWorker(
            WorkerRank(rank, spec.workers),
            subprocess.Popen(
                [*command, str(rank)],
                env=environment(spec, accelerator, addresses, rank, dict(os.environ)),
                pass_fds=locks,
            ),
        )
        for rank in range(spec.workers)
    ]


def environment(
    spec: RunSpec, accelerator: str, addresses: list[str], rank: int, inherited: dict[str, str]
) -> dict[str, str]:
    """The environment of worker `rank`: the addresses of all workers, and its share of the cores or
    GPUs.
    """
    variables = {**inherited, "TF_CONFIG": cluster.tf_config(addresses, rank)}
    if accelerator == "cpu":
        # Otherwise each worker uses all cores, and with 2 workers on 2 cores a step takes 7 to 13%
        # longer.
        variables.setdefault(
            "TF_NUM_INTRAOP_THREADS", str(max(1, (os.cpu_count() or 1) // spec.workers))
        )
    if accelerator == "gpu":
        visible = inherited.get("CUDA_VISIBLE_DEVICES") or ",".join(
            str(gpu) for gpu in range(spec.replicas_in_all)
        )
        begin = rank * spec.replicas
        variables["CUDA_VISIBLE_DEVICES"] = ",".join(
            visible.split(",")[begin : begin + spec.replicas]
        )
    return variables


def _first_failure(workers: list[_LaunchedWorker]) -> _LaunchedWorker | None:
    """Waits for the first failure; None on success. Once worker 0 succeeds, the others
    are ended.
    """
    while not _failures(workers) and workers[0].process.poll() is None:
        time.sleep(POLL_SECONDS)
    if workers[0].process.poll() == 0:
        _wait_for_all(workers)
        _kill(workers)
        return None
    return _culprit(_failures(workers)[0], workers)


def _failures(workers: list[_LaunchedWorker]) -> list[_LaunchedWorker]:
    return [worker for worker in workers if worker.process.poll() not in (None, 0)]


def _culprit(first: _LaunchedWorker, workers: list[_LaunchedWorker]) -> _LaunchedWorker:
    """The worker that caused the end: a killed worker, else a failed one, else a cut-off one."""
    ended = _failures(workers)
    killed = [worker for worker in ended if worker.process.returncode == -signal.SIGKILL]
    failed = [
        worker for worker in ended if worker.process.returncode not in (CUT_OFF, -signal.SIGABRT)
    ]
    return (killed or failed or [first])[0]


def _wait_for_all(workers: list[_LaunchedWorker]) -> None:
    deadline = time.monotonic() + GRACE_SECONDS
    while any(worker.process.poll() is None for worker in workers) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)


def _kill(workers: list[_LaunchedWorker]) -> None:
    for worker in workers:
        worker.process.kill()
    for worker in workers:
        worker.process.wait()


def _reason(run: RunDir, attempt: int, culprit: _LaunchedWorker) -> StatusChange | None:
    """The status change with the culprit's name. It is written again, since another worker can
    report last.
    """
    code, worker = culprit.process.returncode, culprit.in_words
    if code < 0:
        name = signal.Signals(-code).name
        return StatusChange.of(
            "lost", cause(Reason.WORKER_KILLED, worker=worker, signal=-code, name=name)
        )
    failures = [
        record
        for record in journal.read_all(run.trainer_journal(culprit.place.rank))
        if isinstance(record, StatusChange)
        and record.attempt == attempt
        and record.status == "failed"
    ]
    if failures:
        return failures[-1].model_copy(update={"at": journal.now()})
    if code == FAILED:
        return None  # all failed alike, and the first worker has reported it
    return StatusChange.of("failed", cause(Reason.WORKER_EXITED, worker=worker, exit_code=code))


# ---- slow workers --------------------------------------------------------------------------------


class WorkerLog:
    """Journals the step times of worker `rank` and, once per epoch, a warning about a straggler.

    All workers end a step together, so only their computing times show the slow one.
    """

    def __init__(self, writer: JournalWriter, rank: int) -> None:
        self._writer, self._rank = writer, rank
        self._compute_s: list[tuple[float, ...]] = []  # of all ranks, for each call of the epoch

    def call(self, epoch: int, first_step: int, steps: int, seconds: WorkerSeconds) -> None:
        """Writes the times of one host call."""
        self._writer.write(
            journal.WorkerTimes(
                rank=self._rank,
                epoch=epoch,
                first_step=first_step,
                steps=steps,
                step_s=seconds.compute_s + seconds.wait_s,
                compute_s=seconds.compute_s,
                wait_s=seconds.wait_s,
            )
        )
        if all(seconds.all_compute_s):  # 0 in the call that compiles
            self._compute_s.append(seconds.all_compute_s)

    def epoch_done(self, epoch: int) -> None:
        """Writes at most one warning about the epoch's slowest worker."""
        calls, self._compute_s = self._compute_s, []
        by_rank = [median(seconds) for seconds in zip(*calls, strict=True)]
        slowest = straggler(by_rank)
        if slowest is not None:
            message = _straggler_warning(epoch, slowest, by_rank)
            self._writer.write(journal.Event(level="warning", topic="straggler", message=message))


def straggler(compute_s: list[float]) -> int | None:
    """The rank that computes longer than STRAGGLER_FACTOR times the median of the others; None if
    all are within it.
    """
    if len(compute_s) < 2:
        return None
    slowest = compute_s.index(max(compute_s))
    rest = [seconds for rank, seconds in enumerate(compute_s) if rank != slowest]
    return slowest if compute_s[slowest] > STRAGGLER_FACTOR * median(rest) else None


def _straggler_warning(epoch: int, slowest: int, compute_s: list[float]) -> str:
    median_s = median(seconds for rank, seconds in enumerate(compute_s) if rank != slowest)
    return (
        f"Worker {slowest} is slow in epoch {epoch}: it computes {compute_s[slowest] * 1000:.1f} ms"
        f" per step, the others {median_s * 1000:.1f} ms, and they wait."
    )
