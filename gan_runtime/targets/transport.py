"""How commands of a target are run: on this host, or on another one through OpenSSH.

The system's `ssh` honors the user's configuration, agent, jump hosts, and connections that the user
has opened with a one-time password.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from gan_runtime.base import cluster
from gan_runtime.targets.target import NoAnswerError

SSH = (
    "ssh",
    *("-o", "BatchMode=yes"),  # never asks for a password
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=15"),
)
SSH_FAILED = 255  # exit code of ssh itself
# More of a job in which the dashboard itself runs, and choices of the user that would hide jobs.
_FOREIGN = ("SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "PMI")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    output: str
    errors: str


class Transport(Protocol):
    """Runs commands where a target takes them."""

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs a command. Raises NoAnswerError if it cannot be started or takes longer."""


class Here:
    """This host."""

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs the command without variables of a job that this process may be part of."""
        environment = {
            name: value
            for name, value in cluster.without_cluster(dict(os.environ)).items()
            if not name.startswith(_FOREIGN)
        }
        try:
            done = subprocess.run(
                list(words),
                input=stdin,
                env=environment,
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise NoAnswerError(f"`{words[0]}` did not answer within {seconds:.0f} s") from None
        except OSError as error:
            raise NoAnswerError(f"`{words[0]}` cannot be run: {error.strerror or error}") from None
        return Done(done.returncode, done.stdout, done.stderr)


@dataclass(frozen=True)
class Ssh:
    """The host that `ssh HOST` reaches."""

    host: str

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs the command there."""
        done = Here().run([*SSH, self.host, shlex.join(words)], stdin, seconds)
        if done.code == SSH_FAILED:
            why = (done.errors.strip().splitlines() or ["no message"])[-1]
            raise NoAnswerError(f"{self.host} cannot be reached with ssh: {why}")
        return done
