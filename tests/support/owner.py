"""Process entry of a home's owner without a web server: it manages runs like the dashboard's
process.

    python -m tests.support.owner HOME GRACE_SECONDS TRAINER_MODULE

Prints "open" once it is the owner, or who else is if it cannot be. Ends on SIGTERM.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.records.states import StateTimer
from gan_runtime.store.store import Store, Writer
from gan_runtime.supervision.starters import LocalStarter
from tests.support import inject
from tests.support.inject import Watcher


def _report_commits(watcher: Watcher) -> None:
    """Notifies the watcher of each database transaction right before its commit."""
    real = Store.transaction

    @contextmanager
    def transaction(store: Store) -> Iterator[Writer]:
        with real(store) as writer:
            yield writer
            watcher.before_commit()

    Store.transaction = transaction  # type: ignore[method-assign, assignment]


def main(home: Home, grace_seconds: float, module: str) -> int:
    """Owns the home until SIGTERM; returns the exit code, 1 if it never was the owner."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        runtime = Runtime.open(home, grace_seconds, starter=LocalStarter(StateTimer(), module))
    except GanRuntimeError as error:
        print(error, flush=True)
        return 1
    print("open", flush=True)
    ended.wait()
    runtime.close()
    return 0


if __name__ == "__main__":
    _report_commits(inject.arm("owner", Path(sys.argv[1])))
    sys.exit(main(Home(Path(sys.argv[1])), float(sys.argv[2]), sys.argv[3]))
