"""Process entry of a trainer that does nothing until it is killed, for tests of what only the
operating system knows about processes. It imports only the standard library.

    python -m tests.support.idle_trainer RUN_DIR ATTEMPT ACCELERATOR [RANK]

A run with several workers has a launcher and a process per worker, which inherit its locks. They do
not introduce themselves: a test does that if needed.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

MODULE = "tests.support.idle_trainer"


def main(words: list[str]) -> None:
    """Never returns."""
    workers = json.loads((Path(words[0]) / "spec.json").read_text(encoding="utf-8"))["workers"]
    if workers > 1 and len(words) == 3:
        for rank in range(workers):
            subprocess.Popen([sys.executable, "-m", MODULE, *words, str(rank)], close_fds=False)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
