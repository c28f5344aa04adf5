"""What may be asked of every background job. Part of `commands`."""

from __future__ import annotations

from gan_runtime.jobs import job_queue
from gan_runtime.records.actors import Asker, for_operators
from gan_runtime.records.home import Home


@for_operators
def cancel_job(home: Home, job_id: str, *, asker: Asker) -> None:
    """Asks a waiting or running job to end. Raises JobError when there is none, or it has ended."""
    job_queue.cancel(job_queue.job_dir(home, job_id), asker.name)
