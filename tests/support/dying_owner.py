"""Process entry of an owner that is killed when it has just said that a trainer starts.

    python -m tests.support.dying_owner HOME before|forked

before: and has not started it. forked: and the trainer's process is there, but is no other program
yet: it looks like its owner, and stays so until it is killed. Its pid is printed.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from gan_runtime.device_locks import Claim
from gan_runtime.records.home import Home
from gan_runtime.records.states import StateTimer
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.starters import Attempt, LocalStarter
from gan_runtime.supervision.supervisor import Supervisor


class DyingStarter(LocalStarter):
    """Of an owner that is killed before or while it starts its first trainer."""

    is_forked = False

    def start(self, _attempt: Attempt, claim: Claim) -> None:
        """Never returns."""
        if self.is_forked:
            claim.hand_over({})
            forked = os.fork()
            if forked == 0:
                os.setsid()
                os.close(sys.stdout.fileno())  # or whoever reads it would wait for this process
                signal.pause()
            print(forked, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    home, store = Home(Path(sys.argv[1])), Store()
    starter = DyingStarter(StateTimer())
    starter.is_forked = sys.argv[2] == "forked"
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    Supervisor(home, store, ingestor, starter=starter).tick()
