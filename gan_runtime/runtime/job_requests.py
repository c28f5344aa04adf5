"""What may be asked of every background job. Part of `commands`."""

from __future__ import annotations

from gan_runtime.askers import Asker, for_operators
from gan_runtime.home import Home
from gan_runtime.jobs import desk


@for_operators
def cancel_job(home: Home, job_id: str, *, asker: Asker) -> None:
    """Asks a waiting or running job to end. Raises JobError when there is none, or it has ended."""
    desk.cancel(desk.job_dir(home, job_id), asker.name)
