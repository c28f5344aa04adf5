"""`surface`: asks for the job that computes a run's loss surfaces, and waits for its end."""

from __future__ import annotations

from gan_runtime.base.errors import SurfaceError
from gan_runtime.cli import progress_line
from gan_runtime.cli.arguments import commands
from gan_runtime.records.home import Home


def compute(home: Home, run_id: str, size: int) -> None:
    """Computes, with its progress on stderr; Ctrl-C ends the job.

    Raises:
        RunStateError: see `commands.evaluate`.
        SurfaceError: the job ended without a surface; the message says why.
    """
    job = commands(home).evaluate(run_id, "loss_surface", {"size": size})
    with progress_line.one_line() as tell:

        def told(done: int, total: int, _: str) -> None:
            tell(done, total, f"loss surface, {done} of {total} losses" if total else "loading the networks")

        look = progress_line.followed(home, job, told)
    if look.end is None or look.state != "finished":
        raise SurfaceError(
            f"no loss surface of {run_id}: {look.end.reason if look.end else 'it has no end.'}"
        )
