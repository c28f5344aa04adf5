"""Changes that no test can notice, because the outcome is the same: by hand, each with the reason. Counted apart, and shown."""

from __future__ import annotations

from benchmarks.mutants.changes import Change

# (path under gan_runtime/, stripped lines after the change) → reason
REASONS: dict[tuple[str, str], str] = {}


def reason(change: Change) -> str:
    """Empty when the change makes a difference."""
    return REASONS.get((change.path.removeprefix("gan_runtime/"), change.after.strip()), "")
