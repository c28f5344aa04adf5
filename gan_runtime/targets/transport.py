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
from typing import IO, Any, Protocol

from gan_runtime.base import cluster
from gan_runtime.targets.target import NoAnswerError

OPTIONS = (
    *("-o", "BatchMode=yes"),  # never asks for a password
    *("-o", "ConnectTimeout=10"),
    *("-o", "ServerAliveInterval=15"),
)
NO_MESSAGE = "no message"
STREAM_SECONDS = 3_600.0
SSH_FAILED = 255  # exit code of ssh itself
# More of a job in which the dashboard itself runs, and choices of the user that would hide jobs.
_FOREIGN = ("SBATCH_", "SQUEUE_", "SINFO_", "SCANCEL_", "PMI")


@dataclass(frozen=True)
class Done:
    """A command that has ended."""

    code: int
    output: str
    errors: str

    @property
    def last_error(self) -> str:
        """The last line of its errors; "" without one."""
        lines = [line.strip() for line in self.errors.splitlines() if line.strip()]
        return lines[-1] if lines else ""


class Transport(Protocol):
    """Runs commands where a target takes them."""

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs a command. Raises NoAnswerError if it cannot be started or takes longer."""

    def stream(self, words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        """Runs a command from one file to another, for at most STREAM_SECONDS. Raises as `run`."""


class Here:
    """This host."""

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs the command without variables of a job that this process may be part of."""
        return _run(words, seconds, input=stdin.encode(), stdout=subprocess.PIPE)

    def stream(self, words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        """Runs the command likewise."""
        return _run(words, STREAM_SECONDS, stdin=source, stdout=sink)


@dataclass(frozen=True)
class Ssh:
    """The host that `ssh HOST` reaches. `command`: the words that take the place of `ssh HOST`."""

    host: str
    command: tuple[str, ...] = ()

    def run(self, words: Sequence[str], stdin: str = "", seconds: float = 30.0) -> Done:
        """Runs the command there."""
        return self._answered(Here().run(self._words(words), stdin, seconds))

    def stream(self, words: Sequence[str], source: IO[bytes], sink: IO[bytes]) -> Done:
        """Runs the command there."""
        return self._answered(Here().stream(self._words(words), source, sink))

    def _words(self, words: Sequence[str]) -> list[str]:
        begin = self.command or ("ssh", self.host)
        return [begin[0], *OPTIONS, *begin[1:], shlex.join(words)]

    def _answered(self, done: Done) -> Done:
        if done.code == SSH_FAILED:
            why = done.last_error or NO_MESSAGE
            raise NoAnswerError(f"{self.host} cannot be reached with ssh: {why}")
        return done


def _run(words: Sequence[str], seconds: float, **streams: Any) -> Done:
    environment = {
        name: value
        for name, value in cluster.without_cluster(dict(os.environ)).items()
        if not name.startswith(_FOREIGN)
    }
    try:
        done = subprocess.run(
            list(words),
            env=environment,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
            **streams,
        )
    except subprocess.TimeoutExpired:
        raise NoAnswerError(f"`{words[0]}` did not answer within {seconds:.0f} s") from None
    except OSError as error:
        raise NoAnswerError(f"`{words[0]}` cannot be run: {error.strerror or error}") from None
    return Done(done.returncode, _text(done.stdout), _text(done.stderr))


def _text(output: bytes | None) -> str:
    return (output or b"").decode(errors="replace")
