"""Changes that no test can notice, because the outcome is the same: by hand, each with the reason. Counted apart, and shown."""

from __future__ import annotations

from benchmarks.mutants.changes import Change

# (path under gan_runtime/, stripped lines after the change) → reason
REASONS = {
    (
        "engines/tf/probes.py",
        "for variable, value in zip(stored, before, strict=False):  # passes in training mode have moved them",
    ): "both lists are made of the same variables",
    ("engines/tf/state.py", "elif self._replicas > 0:"): "the mean over one replica is what it holds",
}


def reason(change: Change) -> str:
    """Empty when the change makes a difference."""
    return REASONS.get((change.path.removeprefix("gan_runtime/"), change.after.strip()), "")
