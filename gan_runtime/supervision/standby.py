"""A trainer process that has loaded TensorFlow and waits for a run, which then starts sooner.

It is a new process like every other trainer (a fork would copy locks of threads), holds no device,
and ends after IDLE_SECONDS, when memory is short, or with its owner. Until it has confirmed a run
within CONFIRMED_SECONDS, the run has no trainer: then it is killed, and the run starts as usual.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import psutil

from gan_runtime.base import cluster
from gan_runtime.hardware import machine
from gan_runtime.records import processes
from gan_runtime.spec import RunSpec

# The dashboard's processes must not import this module.
MODULE = "gan_runtime.supervision.standby_worker"
SWITCH = "GAN_RUNTIME_STANDBY"  # "off": no such process
LEAST_MEMORY = 2_000_000_000  # bytes that stay free; the process itself takes 0.4 GB
IDLE_SECONDS = 120.0
CONFIRMED_SECONDS = 5.0  # a process that has just begun takes two of them
FIRST_NUMBER = 200  # the files of a run follow from this descriptor on, in the trainer
MOST_FILES = 64
CONFIRMED = b"confirmed"


def is_memory_short() -> bool:
    """Whether this host has less than LEAST_MEMORY left."""
    return psutil.virtual_memory().available < LEAST_MEMORY


def is_for(spec: RunSpec) -> bool:
    """Whether a waiting trainer can train this run: one worker with TensorFlow, whose flags can
    still be set once it is loaded (those of autoclustering cannot).
    """
    is_tensorflow = spec.engine in ("auto", "tensorflow")
    return is_tensorflow and spec.workers == 1 and spec.xla != "autocluster"


@dataclass(frozen=True)
class _Waiting:
    process: subprocess.Popen[bytes]
    connection: socket.socket


class Standby:
    """At most one waiting trainer. All methods are thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: _Waiting | None = None

    def begin(self) -> None:
        """Starts the process, unless one waits, it is switched off, memory is short, or this host
        trains on something else than its CPU: what a GPU or TPU would need was not measured.
        """
        is_off = os.environ.get(SWITCH, "") == "off"
        if is_off or machine.has_gpu() or machine.has_tpu() or is_memory_short():
            return
        with self._lock:
            if self._waiting is None or self._waiting.process.poll() is not None:
                self._end()
                self._waiting = _started()

    def hand_over(
        self, words: Sequence[str], environment: Mapping[str, str], files: Sequence[int], log: int
    ) -> subprocess.Popen[bytes] | None:
        """Lets the waiting process train a run; None if there is none or if it does not confirm.

        `words`: the command line that it takes. `environment`: of the trainer, where the
        descriptors of `files` are those from FIRST_NUMBER on. `log`: receives its output.
        """
        with self._lock:
            waiting, self._waiting = self._waiting, None
        if waiting is None:
            return None
        order = json.dumps({"words": list(words), "environment": dict(environment)}).encode()
        with waiting.connection as connection:
            try:
                connection.settimeout(CONFIRMED_SECONDS)
                socket.send_fds(connection, [order], [log, *files])
                if connection.recv(len(CONFIRMED)) == CONFIRMED:
                    return waiting.process
            except OSError:  # it has ended, or is too busy
                pass
        waiting.process.kill()
        waiting.process.wait()
        return None

    def end(self) -> None:
        """Ends the waiting process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        """The process notices that the connection is closed, and removes its temporary files."""
        if self._waiting is not None:
            self._waiting.connection.close()
            self._waiting = None


def _started() -> _Waiting:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    environment = processes.environment(cluster.without_cluster(dict(os.environ)))
    environment["CUDA_VISIBLE_DEVICES"] = "-1"
    with theirs:
        process = subprocess.Popen(
            processes.command(MODULE, str(theirs.fileno()), processes.ROOM_FOR_WORDS),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            pass_fds=[theirs.fileno()],
        )
    return _Waiting(process, ours)
