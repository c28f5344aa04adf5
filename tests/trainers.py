"""Ends trainers that a test has left behind: they train on without dashboard and test, and slow down all tests after it."""

from __future__ import annotations

import contextlib

import psutil

from gan_runtime.home import Home


def end_trainers(home: Home) -> None:
    """Kills every trainer of the home, also one that has not introduced itself yet."""
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        if "gan_runtime.worker" in words and any(word.startswith(str(home.runs)) for word in words):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
