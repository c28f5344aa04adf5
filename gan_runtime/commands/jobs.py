"""Commands about background jobs, data sets and files from a browser. Part of `Commands`."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gan_runtime.base import disk
from gan_runtime.base.errors import GanRuntimeError, HomeError, JobError, RunStateError
from gan_runtime.commands.base import CommandGroup, change
from gan_runtime.data import prepared, uploads
from gan_runtime.data.preparations import PreparationRequest
from gan_runtime.data.uploads import Upload
from gan_runtime.evaluation import jobs
from gan_runtime.gpu import check as gpu_check
from gan_runtime.gpu.check import GpuPlan
from gan_runtime.jobs import core_jobs, job_queue
from gan_runtime.jobs.folder import JobDir
from gan_runtime.records.journal import ENDED
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.tpu import check
from gan_runtime.tpu.plan import CheckPlan

log = logging.getLogger("gan_runtime")


class JobCommands(CommandGroup):
    """Requesting and cancelling background jobs."""

    @change
    def request_job(self, name: str, options: Any) -> JobDir:
        """Requests a job. `options`: its option record, or values by name. Raises as
        `job_queue.request`.
        """
        return job_queue.request(self.home, name, options, self.actor.name)

    @change
    def evaluate(self, run_id: str, name: str, options: Mapping[str, Any] | None = None) -> JobDir:
        """Asks for a job that evaluates a run. Raises as `evaluation.requests.request`."""
        return jobs.request(self.home, run_id, name, options or {}, self.actor.name)

    @change
    def check_on_tpu(self, plan: CheckPlan, alone: bool = False) -> JobDir | None:
        """Requests a job that compiles those points of a plan that have no answer; None if all have
        one.

        `alone`: cancels earlier checks of the same actor. Compiling takes all cores for minutes.

        Raises:
            AcceleratorError: the compiler is not installed here.
            HomeError: the answers cannot be stored.
        """
        for job in job_queue.snapshots(self.home, check.CHECK) if alone else ():
            if job.is_live and job.request.asker == self.actor.name:
                with contextlib.suppress(JobError):  # the job has just ended
                    job_queue.cancel(job.job, self.actor.name)
        if not check.unanswered(self.home, plan):
            return None
        return job_queue.request(
            self.home, check.CHECK, check.as_options(self.home, plan), self.actor.name
        )

    @change
    def check_on_gpu(self, plan: GpuPlan) -> JobDir:
        """Requests a job that compiles a plan; its result is the answer.

        Raises:
            AcceleratorError: the compiler is not installed here.
            JobError: the same check runs already.
        """
        return job_queue.request(
            self.home, gpu_check.CHECK, gpu_check.as_options(plan), self.actor.name
        )

    @change
    def cancel_job(self, job_id: str) -> None:
        """Requests the end of a waiting or running job. Raises JobError if there is no such job, or
        it has ended.
        """
        job_queue.cancel(job_queue.job_dir(self.home, job_id), self.actor.name)


class DataCommands(CommandGroup):
    """Data sets, and files that a browser uploads for them."""

    @change
    def prepare_data(
        self,
        preparation: str,
        name: str = "",
        source: Path | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> JobDir:
        """Requests a job that prepares the data set `name` from `source`.

        Raises as `core_jobs.request_preparation`.
        """
        request = PreparationRequest(preparation, name, source, dict(options or {}))
        return core_jobs.request_preparation(self.home, request, self.actor.name)

    @change
    def remove_data(self, name: str) -> None:
        """Permanently deletes a prepared data set. Ended runs that were trained on it remain;
        resuming one needs the set again.

        Raises:
            DatasetError: there is no such prepared set.
            RunStateError: a run uses it; the message names the run.
            HomeError: the home cannot be written.
        """
        for run in self.home.run_dirs():
            status = _live_on(run, name)
            if status:
                raise RunStateError(
                    f"data set {name} is used by run {run.run_id}, which is {status}: stop it"
                    " first."
                )
        prepared.remove(self.home, name)
        log.info("%s deletes data set %s", self.actor.name, name)

    @change
    def receive_upload(self, file_id: str, size: int) -> Path:
        """Makes room for a file of about `size` bytes; returns the path for its content.

        Raises:
            HomeError: the home cannot be written, or its disk has too little space.
            ValueError: that is not the id of a file.
        """
        uploads.remove_old(self.home.prepare())
        disk.require(self.home.path, size + disk.LEAST_BYTES, "this file")
        path = uploads.place(self.home, file_id)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise HomeError.not_written(path, error) from None
        log.info("%s uploads a file of %d bytes", self.actor.name, size)
        return path

    @change
    def keep_upload(self, file_id: str, content: bytes) -> None:
        """Stores the whole content of a file.

        Raises as `receive_upload`, and HomeError when the disk is full.
        """
        uploads.store(self.home, file_id, content)
        log.info("%s uploaded a file of %d bytes", self.actor.name, len(content))

    @change
    def use_uploads(self, files: Sequence[Upload]) -> Path:
        """The source of a data set: the only zip or HDF5 file, or a folder with all files.

        Raises as `uploads.as_source`.
        """
        source = uploads.as_source(self.home, files)
        log.info("%s uploaded %d files for a data set", self.actor.name, len(files))
        return source

    @change
    def forget_upload(self, file_id: str) -> None:
        """Deletes a file, if it exists."""
        uploads.remove(self.home, file_id)
        log.info("%s deletes an uploaded file", self.actor.name)


def _live_on(run: RunDir, name: str) -> str:
    """The state of a run that waits or trains on this data set; "" for other runs."""
    with contextlib.suppress(GanRuntimeError):
        status = latest_status(run).status
        if status not in ENDED and run.spec().dataset == name:
            return status
    return ""
