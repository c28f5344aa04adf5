"""How far a job is, in a small file of the run's folder: surface.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from pydantic import TypeAdapter, ValidationError

from gan_runtime import processes
from gan_runtime.records.rundir import RunDir, write_json


@dataclass
class SurfaceProgress:
    """`done` of `total` losses; `total` is 0 before the job knows. `ended`: by itself, and with `reason` in vain."""

    pid: int
    started: float
    total: int = 0
    done: int = 0
    ended: bool = False
    reason: str = ""
    born: str = ""

    @classmethod
    def of(cls, pid: int) -> SurfaceProgress:
        """Of a process that has only begun."""
        return cls(**processes.identity(pid))

    @classmethod
    def read(cls, run: RunDir) -> SurfaceProgress | None:
        """As last written; None when no job was ever started. A job that is gone without an end is told as failed."""
        try:
            found = _READER.validate_json(run.surface_file.read_bytes())
        except (OSError, ValidationError):  # a power loss may tear it
            return None
        if not found.ended and processes.alive(found.pid, found.started, found.born) is None:
            found.ended, found.reason = True, "the process was ended before it was done; start it again."
        return found

    def write(self, run: RunDir) -> None:
        """Makes it known."""
        write_json(run.surface_file, asdict(self))

    def end(self, run: RunDir, reason: str = "") -> None:
        """The last word: done, or the reason why not."""
        self.ended, self.reason = True, reason
        self.write(run)


_READER = TypeAdapter(SurfaceProgress)
