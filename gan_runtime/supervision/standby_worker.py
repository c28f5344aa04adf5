"""A trainer process that loads TensorFlow before it has a run (supervision/standby.py starts it).

    python -m gan_runtime.supervision.standby_worker SOCKET ROOM

A thread waits at the open SOCKET for the run, so that it can confirm while TensorFlow still loads.
From then on the process has the command line, the environment, the output and the files of a
trainer that was started for this run. ROOM: an argument that leaves space for that command line.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import select
import socket
import sys
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass
from typing import NoReturn

from gan_runtime import catalog, worker
from gan_runtime.base import framework_settings
from gan_runtime.engines.tf import process as tf_process
from gan_runtime.records import processes
from gan_runtime.supervision.standby import (
    CONFIRMED,
    FIRST_NUMBER,
    IDLE_SECONDS,
    MOST_FILES,
    is_memory_short,
)

CHECK_SECONDS = 5.0  # between two checks of the free memory
MOST_BYTES = 200_000
LAST_WORDS = 3  # run folder, attempt, accelerator


@dataclass(frozen=True)
class Order:
    """The run to train: the command line and the environment of its trainer."""

    words: list[str]
    environment: dict[str, str]


def wait(connection: socket.socket, order: Future[Order | None]) -> None:
    """Sets `order` when a run arrives, and to None after IDLE_SECONDS, if memory is short, or when
    the owner ends.
    """
    with connection:
        order.set_result(_received(connection))


def _received(connection: socket.socket) -> Order | None:
    deadline = time.monotonic() + IDLE_SECONDS
    while not select.select([connection], [], [], CHECK_SECONDS)[0]:
        if time.monotonic() > deadline or is_memory_short():
            return None
    message, files, *_ = socket.recv_fds(connection, MOST_BYTES, MOST_FILES)
    if not message:
        return None
    received = Order(**json.loads(message))
    if not processes.rename(received.words):
        return None  # the owner starts another process
    log, *others = files
    for number in (1, 2):
        os.dup2(log, number)
    for number, file in enumerate(others, FIRST_NUMBER):
        os.dup2(file, number, inheritable=False)
        os.close(file)
    os.close(log)
    connection.send(CONFIRMED)
    return received


def load() -> None:
    """Imports what every TensorFlow trainer imports. Workloads are left out: a user may be changing
    one.
    """
    framework_settings.block_scikit_learn()
    tf_process.keep_jax_out()
    for module in (
        catalog.engine("tensorflow").module,
        "gan_runtime.training.loop",
        "gan_runtime.training.recorder",
    ):
        importlib.import_module(module)


def enter(number: int) -> NoReturn:
    """Waits for a run, trains it, and exits."""
    order: Future[Order | None] = Future()
    connection = socket.socket(fileno=number)
    fcntl.fcntl(connection, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
    threading.Thread(target=wait, args=(connection, order), daemon=True).start()
    with processes.scratch_folder() as scratch:
        worker.settle(scratch)
        before = {**os.environ}
        with contextlib.suppress(ImportError):  # the run reports it
            load()
        loaded = {name: value for name, value in os.environ.items() if before.get(name) != value}
        received, code = order.result(), 0
        if received is not None:
            os.environ.clear()
            os.environ.update(received.environment)
            framework_settings.clean_this_process()  # names in the log what it ignores
            os.environ.update({**loaded, "KERAS_HOME": before["KERAS_HOME"]})
            code = worker.attempt(received.words[-LAST_WORDS:])
    worker.leave(code)


if __name__ == "__main__":
    enter(int(sys.argv[1]))
