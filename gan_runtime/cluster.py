"""Which worker of a run this process is. Workers find each other through TF_CONFIG, which the launcher or the cluster sets.

Ranks count from 0. Rank 0 writes what the run measures; the others write their own times and failures.
"""

from __future__ import annotations

import json
import os
import socket
from dataclasses import dataclass
from typing import Any

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """Worker `rank` of `workers`. `on_cluster`: started by Slurm, Kubernetes or by hand with TF_CONFIG, not by our launcher."""

    rank: int = 0
    workers: int = 1
    on_cluster: bool = False

    @property
    def name(self) -> str:
        """Such as "worker 1 of 2"."""
        return f"worker {self.rank} of {self.workers}"

    def says(self, sentence: str) -> str:
        """The sentence with the worker's name before it; unchanged when it works alone."""
        return sentence if self.workers == 1 else f"{self.name}: {sentence}"


def is_cluster() -> bool:
    """Whether someone else than our launcher has started this process as one of several."""
    return "TF_CONFIG" in os.environ or "SLURM_PROCID" in os.environ


def without_cluster(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a start on this host: the dashboard itself may run inside a Slurm job, its trainers are no part of that."""
    return {name: value for name, value in environment.items() if name != "TF_CONFIG" and not name.startswith("SLURM_")}


def tf_config(addresses: list[str], rank: int) -> str:
    """TF_CONFIG of worker `rank` among workers at `addresses` (host:port), in the order of their ranks."""
    config: dict[str, Any] = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": rank}}
    return json.dumps(config)


def free_addresses(count: int) -> list[str]:
    """Loopback addresses that nobody listens on: all are held open until the last is found, so they differ."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for item in sockets:
            item.bind((LOOPBACK, 0))
        return [f"{LOOPBACK}:{item.getsockname()[1]}" for item in sockets]
    finally:
        for item in sockets:
            item.close()
