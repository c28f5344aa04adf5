"""Which hosts the Python processes of a dashboard ask: each notes it in a file
(hook/sitecustomize.py), its trainers and jobs too.
"""

from __future__ import annotations

from pathlib import Path

HOOK = Path(__file__).parent / "hook"
NOTED_IN = "CONNECTIONS_NOTED_IN"


def noted_in(file: Path) -> dict[str, str]:
    """What a process needs in its environment, and hands on to those that it starts."""
    file.write_text("", encoding="utf-8")
    return {"PYTHONPATH": str(HOOK), NOTED_IN: str(file)}


def of_others(file: Path) -> list[str]:
    """What was asked of hosts other than this one: "socket.connect 203.0.113.7"."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines, "no process has noted anything: this looks in the wrong place"
    return [line for line in lines if not line.startswith("began")]
