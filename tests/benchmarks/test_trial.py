"""The temporary home of a measurement and its cleanup."""

from __future__ import annotations

import sys

import psutil

from benchmarks.trial import trial_home

SLEEPING = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_trial_kills_only_processes_started_within_it() -> None:
    """Earlier processes may be the other side of a comparison or the browser of another test."""
    earlier = psutil.Popen(SLEEPING)
    try:
        with trial_home() as home:
            within = psutil.Popen(SLEEPING)
        assert not within.is_running()
        assert earlier.is_running()
        assert not home.path.exists()
    finally:
        earlier.kill()
        earlier.wait()
