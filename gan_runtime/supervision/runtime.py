"""The runtime of one home: store, ingestor and supervisor in the one process that owns results.duckdb.

The dashboard holds one for as long as it lives; the command line opens one for a training if nobody else does.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gan_runtime.base.errors import GanRuntimeError, JobError, RunStateError
from gan_runtime.commands import commands, queue_requests
from gan_runtime.commands.queue_requests import Way
from gan_runtime.evaluation import requests
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import data_jobs, job_queue, picture_job
from gan_runtime.jobs.folder import JobDir, JobLook
from gan_runtime.jobs.picture_job import Wanted
from gan_runtime.jobs.uploads import Dropped
from gan_runtime.records.actors import DASHBOARD, Asker, operator
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.records.states import CUT_SHORT
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision.hardware_probe import HostLook
from gan_runtime.supervision.retention import Keeping
from gan_runtime.supervision.run_dependencies import After
from gan_runtime.supervision.starters import Starter
from gan_runtime.supervision.store_recovery import Healed
from gan_runtime.supervision.store_updates import Owning, Upkeep, Viewing
from gan_runtime.supervision.supervisor import GRACE_SECONDS
from gan_runtime.tpu import check
from gan_runtime.tpu.check import Progress
from gan_runtime.tpu.plan import Plan
from gan_runtime.training import snapshots
from gan_runtime.training.checkpoints import Which


class Runtime:
    """Use `Runtime.open` or `Runtime.view`. Every method may be called from any thread."""

    why_not_owned: GanRuntimeError | None = None  # None for an owner

    def __init__(self, upkeep: Upkeep, host_look: HostLook) -> None:
        self.home, self.store, self.host_look = upkeep.home, upkeep.store, host_look
        self.asker = operator(DASHBOARD)  # whom the door is told of
        self._upkeep = upkeep

    @classmethod
    def open(
        cls,
        home: Home,
        grace_seconds: float = GRACE_SECONDS,
        host_look: HostLook | None = None,
        starter: Starter | None = None,
        url: str = "",
    ) -> Runtime:
        """Becomes the owner of the home and goes on with its runs. `host_look`: one that has begun already; `starter`: of
        trainers, by default processes on this host; `url`: where its pages are, for whoever wants the home as well.

        Raises:
            HomeInUseError: another process is the owner; the message names it.
            StoreError, HomeError: the store or the folder cannot be used.
        """
        return cls(Owning.begin(home, grace_seconds, starter, url), host_look or HostLook())

    @classmethod
    def view(cls, home: Home, why_not: GanRuntimeError, host_look: HostLook | None = None) -> Runtime:
        """Looks at a home without owning it: all that its journals say, and no change. `why_not`: why it is not owned."""
        runtime = cls(Viewing.begin(home), host_look or HostLook())
        runtime.why_not_owned, runtime.asker = why_not, Asker(DASHBOARD, why_not=str(why_not))
        return runtime

    def asked_by(self, asker: Asker) -> Runtime:
        """The same runtime, for somebody else: home, store and heartbeat are shared, only what the door is told differs."""
        other = copy.copy(self)
        other.asker = asker
        return other

    @property
    def trouble(self) -> str:
        """Why the runtime could not act the last time, for the pages to show; empty when all is well."""
        return self._upkeep.heartbeat.trouble

    @property
    def is_reading(self) -> bool:
        """Whether the journals are being read into a new store, so that runs are missing yet."""
        upkeep = self._upkeep
        return (
            not upkeep.heartbeat.has_begun
            or upkeep.is_reading
            or any(one.runs is None for one in self.healed)
        )

    @property
    def healed(self) -> list[Healed]:
        """What was found of results.duckdb and set aside since the home was opened."""
        return self._upkeep.healed

    def close(self) -> None:
        """Gives up the home. Trainers go on by themselves; the next owner finds them."""
        self._upkeep.end()

    def host(self) -> Host:
        """What this host offers; waits some seconds for the first answer. Raises AcceleratorError."""
        return self.host_look.answer()

    def submit(self, spec: RunSpec, preset: str = "", after: After | None = None) -> RunDir:
        """Queues a run, which starts at once when its accelerator is free. Raises as `commands.submit`."""
        run = commands.submit(self.home, spec, self.host(), preset, after, asker=self.asker)
        self.refresh()
        return run

    def submit_study(self, design: StudyDesign) -> list[RunDir]:
        """Queues all runs of a study. Raises as `commands.submit_study`."""
        runs = commands.submit_study(self.home, design, self.host(), asker=self.asker)
        self.refresh()
        return runs

    def load(self, bundle: Path) -> list[str]:
        """Loads the runs of a bundle and takes them in; returns the new ids. Raises as `commands.import_bundle`."""
        new = commands.import_bundle(self.home, bundle, asker=self.asker)
        self.refresh()
        return new

    def stop_all(self, run_ids: list[str]) -> None:
        """Asks those of the runs that wait or train to end, the waiting ones first, so that none of them starts meanwhile."""
        live = [row.run_id for row in queries.runs(self.store) if row.is_live and row.run_id in run_ids]
        for run_id in live:  # the newest first
            with contextlib.suppress(RunStateError):  # it has ended by itself
                commands.stop(self.home.run_dir(run_id), asker=self.asker)
        self.refresh()

    def resume_all(self, run_ids: list[str]) -> None:
        """Queues those of the runs again that ended before their time, in the order given.

        Raises:
            RunStateError: none of them can go on; the message says why the first cannot.
        """
        broken = {row.run_id for row in queries.runs(self.store, CUT_SHORT)}
        runs = [self.home.run_dir(run_id) for run_id in run_ids if run_id in broken]
        refusals = {run.run_id: commands.why_not_resumed(run) for run in runs}
        if refusals and all(refusals.values()):
            raise RunStateError(next(iter(refusals.values())))
        for run in runs:
            if not refusals[run.run_id]:
                commands.resume(run, asker=self.asker)
        self.refresh()

    def stop(self, run_id: str) -> None:
        """See `commands.stop`."""
        commands.stop(self.home.run_dir(run_id), asker=self.asker)
        self.refresh()

    def resume(self, run_id: str, changes: Mapping[str, Any] | None = None) -> None:
        """See `commands.resume`."""
        commands.resume(self.home.run_dir(run_id), changes, asker=self.asker)
        self.refresh()

    def why_not_resumed(self, run_id: str) -> str:
        """See `commands.why_not_resumed`."""
        return commands.why_not_resumed(self.home.run_dir(run_id))

    def rename(self, run_id: str, name: str) -> None:
        """See `commands.rename`."""
        commands.rename(self.home.run_dir(run_id), name, asker=self.asker)
        self.refresh()

    def delete(self, run_id: str) -> None:
        """See `commands.delete`."""
        commands.delete(self.home.run_dir(run_id), asker=self.asker)
        self.refresh()
        self._upkeep.housekeeping.look()

    @property
    def keeping(self) -> Keeping:
        """What is kept of runs, and where: their bin, their marks, the space that they take."""
        return Keeping(self.home, self.asker, self.refresh, self._upkeep.housekeeping)

    def move_in_queue(self, run_id: str, way: Way) -> None:
        """See `commands.move_in_queue`; waiting runs of a study stay together."""
        items = [[self.home.run_dir(row.run_id) for row in item] for item in queries.queue_items(self.store)]
        commands.move_in_queue(items, self.home.run_dir(run_id), way, asker=self.asker)
        self.refresh()

    def start_after(self, run_ids: Sequence[str], after: After | None) -> None:
        """See `commands.start_after`."""
        commands.start_after([self.home.run_dir(run_id) for run_id in run_ids], after, asker=self.asker)
        self.refresh()

    def waited_for(self, run_id: str) -> After | None:
        """See `queue_requests.waited_for`."""
        return queue_requests.waited_for(self.home.run_dir(run_id))

    def prepare_data(
        self,
        preparation: str,
        name: str = "",
        source: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> JobDir:
        """See `commands.prepare_data`."""
        return commands.prepare_data(self.home, preparation, name, source, options, asker=self.asker)

    def look_through(self, preparation: str, source: Path, options: Mapping[str, Any]) -> JobDir:
        """Asks for a job that looks through pictures."""
        return commands.request_job(
            self.home, data_jobs.SURVEY, data_jobs.preview_of(preparation, source, options), asker=self.asker
        )

    def newest_look(self, preparation: str, source: Path, options: Mapping[str, Any]) -> JobLook | None:
        """See `data_jobs.newest_look`."""
        return data_jobs.newest_look(self.home, data_jobs.preview_of(preparation, source, options))

    def data_jobs(self) -> list[JobLook]:
        """All jobs that prepare data sets, the newest first."""
        return job_queue.looks(self.home, data_jobs.PREPARE)

    def job(self, job_id: str) -> JobLook | None:
        """A job as it is now. Raises JobError when there is none."""
        return job_queue.job_dir(self.home, job_id).look()

    def generate(self, wanted: Wanted) -> JobDir:
        """Asks for a job that generates images."""
        return commands.request_job(self.home, picture_job.GENERATE, wanted, asker=self.asker)

    def newest_images(self, run_id: str) -> JobLook | None:
        """See `picture_job.newest_images`."""
        return picture_job.newest_images(self.home, run_id)

    def checkpoints_of(self, run_id: str) -> dict[Which, int]:
        """See `picture_job.checkpoints_of`."""
        return picture_job.checkpoints_of(self.home, run_id)

    def classes_of(self, run_id: str) -> tuple[str, ...]:
        """See `picture_job.classes_of`."""
        return picture_job.classes_of(self.home, run_id)

    def cancel_job(self, job_id: str) -> None:
        """See `commands.cancel_job`."""
        commands.cancel_job(self.home, job_id, asker=self.asker)
        self.refresh()

    def remove_data(self, name: str) -> None:
        """See `commands.remove_data`."""
        commands.remove_data(self.home, name, asker=self.asker)

    def keep_upload(self, file_id: str, content: bytes) -> None:
        """See `commands.keep_upload`."""
        commands.keep_upload(self.home, file_id, content, asker=self.asker)

    def use_uploads(self, files: Sequence[Dropped]) -> Path:
        """See `commands.use_uploads`."""
        return commands.use_uploads(self.home, files, asker=self.asker)

    def compute_surfaces(self, run_id: str) -> JobDir:
        """Asks for a job that computes loss surfaces."""
        return commands.evaluate(self.home, run_id, "loss_surface", asker=self.asker)

    def can_compute_surfaces(self, run_id: str) -> bool:
        """Whether the run's folder holds enough weight snapshots."""
        return len(snapshots.epochs(self.home.run_dir(run_id).snapshots)) >= snapshots.FEWEST

    def surface_job(self, run_id: str) -> JobLook | None:
        """The newest job that computes the surfaces of a run."""
        return requests.newest_request(self.home, run_id, "loss_surface")

    def check_on_tpu(self, plan: Plan) -> None:
        """See `commands.check_on_tpu`. Compiling takes all cores for minutes, so a page's check ends the one before it."""
        for look in job_queue.looks(self.home, check.CHECK):
            if not look.is_live or look.asked.asker != self.asker.name:
                continue
            with contextlib.suppress(JobError):  # it has ended meanwhile
                commands.cancel_job(self.home, look.job.job_id, asker=self.asker)
        commands.check_on_tpu(self.home, plan, asker=self.asker)

    def cancel_tpu_check(self, plan: Plan) -> None:
        """Ends the check of this plan, if one is under way."""
        look = check.newest(self.home, plan)
        if look is not None and look.is_live:
            self.cancel_job(look.job.job_id)

    def tpu_progress(self, plan: Plan) -> Progress:
        """See `check.newest_progress`."""
        return check.newest_progress(self.home, plan)

    def refresh(self) -> None:
        """Acts now instead of at the next tick, so that a page shows the effect of its own button."""
        self._upkeep.heartbeat.refresh()
