"""A home folder for one measurement: empty at the start, and nothing that was started for it is left behind."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from gan_runtime.home import Home


@contextmanager
def trial_home() -> Iterator[Home]:
    """An empty home in a temporary folder, removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="gan-bench-", ignore_cleanup_errors=True) as folder:
        try:
            yield Home(Path(folder)).prepare()
        finally:
            # Trainers outlive a dashboard on purpose; after a failed measurement one would train on and spoil the next.
            children = psutil.Process().children(recursive=True)
            for child in children:
                with contextlib.suppress(psutil.NoSuchProcess):
                    child.kill()
            psutil.wait_procs(children, timeout=10)
