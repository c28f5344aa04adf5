"""Process entry of an owner that is killed right after recording that a trainer starts.

    python -m tests.support.dying_owner HOME before|forked

before: the trainer has not been started. forked: the trainer's process is forked, but does not run
another program yet: it looks like its owner until it is killed. Its pid is printed.
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
    """Kills its owner before or while it starts its first trainer."""

    is_forked = False

    def start(self, _attempt: Attempt, claim: Claim) -> None:
        """Never returns."""
        if self.is_forked:
            claim.hand_over({})
            forked = os.fork()
            if forked == 0:
                os.setsid()
                os.close(sys.stdout.fileno())  # or its reader would wait for this process
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
