"""Hosts that the Python processes of a dashboard contact, including its trainers and jobs.

Each process logs them to a file (hook/sitecustomize.py).
"""

from __future__ import annotations

from pathlib import Path

HOOK = Path(__file__).parent / "hook"
NOTED_IN = "CONNECTIONS_NOTED_IN"


def noted_in(file: Path) -> dict[str, str]:
    """Returns the environment variables that a process and its children need to log to `file`."""
    file.write_text("", encoding="utf-8")
    return {"PYTHONPATH": str(HOOK), NOTED_IN: str(file)}


def of_others(file: Path) -> list[str]:
    """Connections to and lookups of other hosts, such as "socket.connect 203.0.113.7"."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines, "no process has noted anything: this looks in the wrong place"
    return [line for line in lines if not line.startswith("began")]
