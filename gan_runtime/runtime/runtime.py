"""The runtime of one home: store, ingestor and supervisor in the one process that owns results.duckdb.

The dashboard holds one for as long as it lives; the command line opens one for a training if nobody else does.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from filelock import FileLock

from gan_runtime.errors import GanRuntimeError, JobError, RunStateError
from gan_runtime.home import Home
from gan_runtime.host_look import HostLook
from gan_runtime.hosts import Host
from gan_runtime.jobs import desk
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_work import Wanted
from gan_runtime.jobs.uploads import Dropped
from gan_runtime.records.rundir import RunDir
from gan_runtime.runtime import (
    commands,
    data_requests,
    leftovers,
    owner,
    picture_requests,
    surface_requests,
    tpu_requests,
)
from gan_runtime.runtime.supervisor import GRACE_SECONDS, Supervisor
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.store.watch import Clock
from gan_runtime.studies.design import StudyDesign
from gan_runtime.tpu.check import Progress
from gan_runtime.tpu.plan import Plan
from gan_runtime.training.checkpoints import Which

TICK_SECONDS = 0.25
TROUBLED_TICK_SECONDS = 2.0  # after one that failed
COMPLAINT_SECONDS = 60.0  # between two entries of the log about the same kind of error
ASKER = "dashboard"  # of what its pages ask for
log = logging.getLogger("gan_runtime")


class Runtime:
    """Use `Runtime.open`. Every method may be called from any thread."""

    def __init__(
        self,
        home: Home,
        lock: FileLock,
        store: Store,
        grace_seconds: float,
        host_look: HostLook,
        clock: Clock = time.monotonic,
    ) -> None:
        self.home, self.store, self.host_look = home, store, host_look
        self.trouble = ""  # why the last tick failed, for the pages to show; empty when all is well
        self._lock, self._closed = lock, threading.Event()
        self._acting = threading.Lock()
        self._complained: dict[str, float] = {}  # kind of error → when it was last logged
        self._clock, self._ingestor = clock, Ingestor(home, store, clock)
        self._supervisor = Supervisor(home, store, self._ingestor, grace_seconds, clock)
        self._thread = threading.Thread(target=self._work, name="gan-runtime", daemon=True)

    @classmethod
    def open(
        cls, home: Home, grace_seconds: float = GRACE_SECONDS, host_look: HostLook | None = None
    ) -> Runtime:
        """Becomes the owner of the home and goes on with its runs. `host_look`: one that has begun already.

        Raises:
            HomeInUseError: another process is the owner; the message names it.
            StoreError, HomeError: the store or the folder cannot be used.
        """
        home.prepare()
        lock = owner.acquire(home)
        with contextlib.suppress(OSError):  # of a full disk is told where something is lost by it
            leftovers.of_home(home)
        try:
            store = Store(home.database)
        except GanRuntimeError:
            lock.release()
            raise
        runtime = cls(home, lock, store, grace_seconds, host_look or HostLook())
        runtime.refresh()
        runtime._thread.start()
        return runtime

    def close(self) -> None:
        """Gives up the home. Trainers go on by themselves; the next owner finds them."""
        self._closed.set()
        self._thread.join()
        self.store.close()
        self._lock.release()

    def host(self) -> Host:
        """What this host offers; waits some seconds for the first answer. Raises AcceleratorError."""
        return self.host_look.answer()

    def submit(self, spec: RunSpec, preset: str = "") -> RunDir:
        """Queues a run, which starts at once when its accelerator is free. Raises as `commands.submit`."""
        run = commands.submit(self.home, spec, self.host(), preset, asker=ASKER)
        self.refresh()
        return run

    def submit_study(self, design: StudyDesign) -> list[RunDir]:
        """Queues all runs of a study. Raises as `commands.submit_study`."""
        runs = commands.submit_study(self.home, design, self.host(), asker=ASKER)
        self.refresh()
        return runs

    def load(self, bundle: Path) -> list[str]:
        """Loads the runs of a bundle and takes them in; returns the new ids. Raises as `commands.import_bundle`."""
        new = commands.import_bundle(self.home, bundle, asker=ASKER)
        self.refresh()
        return new

    def stop_all(self, run_ids: list[str]) -> None:
        """Asks those of the runs that wait or train to end, the waiting ones first, so that none of them starts meanwhile."""
        live = [row.run_id for row in queries.runs(self.store) if row.is_live and row.run_id in run_ids]
        for run_id in live:  # the newest first
            with contextlib.suppress(RunStateError):  # it has ended by itself
                commands.stop(self.home.run_dir(run_id), asker=ASKER)
        self.refresh()

    def resume_all(self, run_ids: list[str]) -> None:
        """Queues those of the runs again that ended before their time, in the order given.

        Raises:
            RunStateError: none of them can go on; the message says why the first cannot.
        """
        broken = {row.run_id for row in queries.runs(self.store, ("stopped", "failed", "lost"))}
        runs = [self.home.run_dir(run_id) for run_id in run_ids if run_id in broken]
        refusals = {run.run_id: commands.why_not_resumed(run) for run in runs}
        if refusals and all(refusals.values()):
            raise RunStateError(next(iter(refusals.values())))
        for run in runs:
            if not refusals[run.run_id]:
                commands.resume(run, asker=ASKER)
        self.refresh()

    def stop(self, run_id: str) -> None:
        """See `commands.stop`."""
        commands.stop(self.home.run_dir(run_id), asker=ASKER)
        self.refresh()

    def resume(self, run_id: str, changes: Mapping[str, Any] | None = None) -> None:
        """See `commands.resume`."""
        commands.resume(self.home.run_dir(run_id), changes, asker=ASKER)
        self.refresh()

    def why_not_resumed(self, run_id: str) -> str:
        """See `commands.why_not_resumed`."""
        return commands.why_not_resumed(self.home.run_dir(run_id))

    def rename(self, run_id: str, name: str) -> None:
        """See `commands.rename`."""
        commands.rename(self.home.run_dir(run_id), name, asker=ASKER)
        self.refresh()

    def delete(self, run_id: str) -> None:
        """See `commands.delete`."""
        commands.delete(self.home.run_dir(run_id), asker=ASKER)
        self.refresh()

    def swap_in_queue(self, earlier: list[str], later: list[str]) -> None:
        """See `commands.swap_in_queue`."""
        commands.swap_in_queue(
            *([self.home.run_dir(run_id) for run_id in run_ids] for run_ids in (earlier, later)), asker=ASKER
        )
        self.refresh()

    def prepare_data(
        self,
        preparation: str,
        name: str = "",
        source: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> JobDir:
        """See `commands.prepare_data`."""
        return commands.prepare_data(self.home, preparation, name, source, options, asker=ASKER)

    def look_through(self, preparation: str, source: Path, options: Mapping[str, Any]) -> JobDir:
        """See `commands.look_through`."""
        return commands.look_through(self.home, preparation, source, options, asker=ASKER)

    def newest_look(self, preparation: str, source: Path, options: Mapping[str, Any]) -> JobLook | None:
        """See `data_requests.newest_look`."""
        return data_requests.newest_look(self.home, preparation, source, options)

    def data_jobs(self) -> list[JobLook]:
        """All jobs that prepare data sets, the newest first."""
        return desk.looks(self.home, data_requests.PREPARE)

    def job(self, job_id: str) -> JobLook | None:
        """A job as it is now. Raises JobError when there is none."""
        return desk.job_dir(self.home, job_id).look()

    def generate(self, wanted: Wanted) -> JobDir:
        """See `commands.generate`."""
        return commands.generate(self.home, wanted, asker=ASKER)

    def newest_images(self, run_id: str) -> JobLook | None:
        """See `picture_requests.newest_images`."""
        return picture_requests.newest_images(self.home, run_id)

    def checkpoints_of(self, run_id: str) -> dict[Which, int]:
        """See `picture_requests.checkpoints_of`."""
        return picture_requests.checkpoints_of(self.home, run_id)

    def classes_of(self, run_id: str) -> tuple[str, ...]:
        """See `picture_requests.classes_of`."""
        return picture_requests.classes_of(self.home, run_id)

    def cancel_job(self, job_id: str) -> None:
        """See `commands.cancel_job`."""
        commands.cancel_job(self.home, job_id, asker=ASKER)
        self.refresh()

    def remove_data(self, name: str) -> None:
        """See `commands.remove_data`."""
        commands.remove_data(self.home, name, asker=ASKER)

    def keep_upload(self, file_id: str, content: bytes) -> None:
        """See `commands.keep_upload`."""
        commands.keep_upload(self.home, file_id, content, asker=ASKER)

    def use_uploads(self, files: Sequence[Dropped]) -> Path:
        """See `commands.use_uploads`."""
        return commands.use_uploads(self.home, files, asker=ASKER)

    def compute_surfaces(self, run_id: str) -> JobDir:
        """See `commands.compute_surfaces`."""
        return commands.compute_surfaces(self.home, run_id, asker=ASKER)

    def can_compute_surfaces(self, run_id: str) -> bool:
        """See `surface_requests.can_compute`."""
        return surface_requests.can_compute(self.home.run_dir(run_id))

    def surface_job(self, run_id: str) -> JobLook | None:
        """See `surface_requests.newest_surface_job`."""
        return surface_requests.newest_surface_job(self.home, run_id)

    def check_on_tpu(self, plan: Plan) -> None:
        """See `commands.check_on_tpu`. Compiling takes all cores for minutes, so a page's check ends the one before it."""
        for look in tpu_requests.live_checks(self.home, ASKER):
            with contextlib.suppress(JobError):  # it has ended meanwhile
                commands.cancel_job(self.home, look.job.job_id, asker=ASKER)
        commands.check_on_tpu(self.home, plan, asker=ASKER)

    def cancel_tpu_check(self, plan: Plan) -> None:
        """Ends the check of this plan, if one is under way."""
        look = tpu_requests.newest_check(self.home, plan)
        if look is not None and look.is_live:
            self.cancel_job(look.job.job_id)

    def tpu_progress(self, plan: Plan) -> Progress:
        """See `tpu_requests.progress`."""
        return tpu_requests.progress(self.home, plan)

    def refresh(self) -> None:
        """Acts now instead of at the next tick, so that a page shows the effect of its own button.

        What goes wrong is kept in `trouble`: a full disk must not end the supervision of all runs.
        """
        with self._acting:
            try:
                self._supervisor.tick()
                self.trouble = ""
            except Exception as error:
                self.trouble = f"{type(error).__name__}: {error}"
                self._complain(error)

    def _complain(self, error: Exception) -> None:
        """Into the log, once in a while: a disk stays full for hours, and its log would fill it."""
        now, kind = self._clock(), type(error).__name__
        if now - self._complained.get(kind, -COMPLAINT_SECONDS) >= COMPLAINT_SECONDS:
            self._complained[kind] = now
            log.error("the runtime could not act", exc_info=error)

    def _work(self) -> None:
        while not self._closed.wait(TROUBLED_TICK_SECONDS if self.trouble else TICK_SECONDS):
            self.refresh()
