"""The folder of a task that is a process of its own: what lies in that of a run and in that of a job alike."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gan_runtime.records import run_files

_TAIL_BYTES = 64_000


@dataclass(frozen=True)
class TaskFolder:
    """`path`: of the folder, whose name is the task's id."""

    path: Path

    @property
    def process_file(self) -> Path:
        """Identity of its process: pid and start time; of a run that of the newest attempt."""
        return self.path / "process.json"

    @property
    def stop_file(self) -> Path:
        """Exists from the moment someone asks the task to end, and says who."""
        return self.path / "STOP"

    @property
    def log(self) -> Path:
        """Everything that its process has printed."""
        return self.path / "log.txt"

    def request_stop(self, asker: str) -> None:
        """Asks the task to end, and says who asks; asking twice changes nothing."""
        if not self.stop_file.exists():
            self.stop_file.write_text(asker, encoding="utf-8")

    def log_tail(self, lines: int = 200) -> str:
        """The last lines of the log; empty before anything is printed, and where it cannot be read."""
        try:
            text = run_files.tail(self.log, _TAIL_BYTES).decode("utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])
