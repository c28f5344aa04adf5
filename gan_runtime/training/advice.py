"""What a person can do about a training whose numbers have become NaN or infinite, as a command to copy."""

from __future__ import annotations

import shlex

from gan_runtime.records.home import Home, command_line
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec


def with_lower_rates(run: RunDir, spec: RunSpec, factor: float, resumable: bool) -> str:
    """A sentence with the whole command. `factor`: what it leaves of all rates, 0 to 1; `resumable`: there is a checkpoint."""
    home = Home(run.path.resolve().parent.parent)
    rates = "".join(f" --set {name}={spec.value(name) * factor:g}" for name in spec.entry.rates)
    if resumable:
        return f"Go on with lower rates: {command_line()} resume {run.run_id}{rates}{home.flag}"
    return f"It has no checkpoint yet; begin anew with lower rates: {command_line()} train --spec {shlex.quote(str(run.spec_path))}{rates}{home.flag}"
