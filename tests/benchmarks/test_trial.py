"""The home of a measurement, and what is left of it."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.trial import trial_home

SLEEPING = [sys.executable, "-c", "import time; time.sleep(600)"]


def test_a_trial_ends_what_was_started_within_and_nothing_else() -> None:
    """Such as the other side of a comparison, or the browser of a test in the same process."""
    with subprocess.Popen(SLEEPING) as earlier:
        with trial_home() as home:
            within = subprocess.Popen(SLEEPING)
        assert within.wait(timeout=10) < 0
        assert earlier.poll() is None
        assert not home.path.exists()
        earlier.kill()
