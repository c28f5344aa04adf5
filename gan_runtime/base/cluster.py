"""The workers of a run: the rank of this process, and the rendezvous of all.

Workers find each other through TF_CONFIG, which the launcher or the cluster sets. They meet before
their framework connects them, so that an error can name the missing ones. Ranks count from 0. Rank
0 writes what the run measures; the others write their own times and failures.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import re
import socket
import time
from collections.abc import Callable, Iterable, MutableMapping
from dataclasses import dataclass
from typing import Any

from gan_runtime.base.errors import AcceleratorError

JOBS = ("chief", "worker")  # task types of TF_CONFIG, in TensorFlow's order of ranks
LOOPBACK = "127.0.0.1"
# Raised by TensorFlow in a worker that lost another worker. An InternalError can have many causes,
# and counts only if it names a worker.
CUT_OFF_ERRORS = ("UnavailableError", "AbortedError", "CancelledError", "DeadlineExceededError")
LOOPBACK_NAMES = (LOOPBACK, "localhost", "::1")
PROXIES = (
    "grpc_proxy",
    "http_proxy",
    "https_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "all_proxy",
    "ALL_PROXY",
)
PORTS = range(20_000, 32_000)  # Linux uses ports from 32768 for outgoing connections


@dataclass(frozen=True)
class WorkerRank:
    """Worker `rank` of `workers`.

    `on_cluster`: started by Slurm, Kubernetes or by hand with TF_CONFIG, not by our launcher.

    `chiefs`: how many of them TensorFlow counts as "chief", before those that it counts as
    "worker".
    """

    rank: int = 0
    workers: int = 1
    on_cluster: bool = False
    chiefs: int = 0

    @property
    def name(self) -> str:
        """The name, such as "worker 1 of 2"."""
        return f"worker {self.rank} of {self.workers}"

    def says(self, sentence: str) -> str:
        """The sentence with the worker's name before it; unchanged when it works alone."""
        return sentence if self.workers == 1 else f"{self.name}: {sentence}"

    def lost_in(self, error: Exception) -> str | None:
        """The name of the worker that this worker could not reach, such as "worker 1 of 2" or
        "another worker"; None for other errors.
        """
        kind = type(error).__name__
        named = re.findall(r"/job:(?!localhost)(\w+)/replica:\d+/task:(\d+)", str(error))
        tasks = {int(task) + (self.chiefs if job == "worker" else 0) for job, task in named} - {
            self.rank
        }
        # Gloo connects CPUs, and names no worker.
        is_of_jax = kind == "JaxRuntimeError" and "Gloo" in str(error)
        if self.workers == 1 or not (
            kind in CUT_OFF_ERRORS or (kind == "InternalError" and tasks) or is_of_jax
        ):
            return None
        return (
            f"worker {' and '.join(map(str, sorted(tasks)))} of {self.workers}"
            if tasks
            else "another worker"
        )


@dataclass(frozen=True)
class Members:
    """The workers of a cluster; `rank`: of this process.

    `addresses`: host:port by rank. `chiefs`: as in `WorkerRank`.
    """

    rank: int
    addresses: tuple[str, ...]
    chiefs: int = 0

    @classmethod
    def from_environment(cls, workers: int, in_slurm: Callable[[], Members]) -> Members:
        """The members by TF_CONFIG if it is set, else by `in_slurm` from Slurm's variables.

        Raises:
            AcceleratorError: the cluster and the run differ in the number of workers, or the
                variables cannot be read.
        """
        source, read = (
            ("TF_CONFIG", cls.in_tf_config) if "TF_CONFIG" in os.environ else ("Slurm", in_slurm)
        )
        try:
            members = read()
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise AcceleratorError(
                f"the rank of this worker cannot be read from {source} ({error!r}): see"
                " docs/cluster.md."
            ) from None
        count = len(members.addresses)
        if count != workers:
            raise AcceleratorError(
                f"workers is {workers}, but {source} names {count} worker(s): start {workers}, or"
                f" use workers={count}."
            )
        hosts = (address.rpartition(":")[0].strip("[]") for address in members.addresses)
        exempt_from_proxies(os.environ, hosts)
        return members

    @classmethod
    def in_tf_config(cls) -> Members:
        """The members by TF_CONFIG. Raises ValueError, TypeError or KeyError if it is invalid."""
        config = json.loads(os.environ["TF_CONFIG"])
        jobs, kind, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
        addresses = tuple(address for job in JOBS for address in jobs.get(job, ()))
        rank = index + sum(len(jobs.get(job, ())) for job in JOBS[: JOBS.index(kind)])
        if not 0 <= index < len(jobs.get(kind, ())):
            raise ValueError(f"task {kind} {index} is not in the cluster")
        return cls(rank, addresses, len(jobs.get("chief", ())))

    @property
    def place(self) -> WorkerRank:
        """The rank of this process."""
        return WorkerRank(self.rank, len(self.addresses), on_cluster=True, chiefs=self.chiefs)


def is_cluster() -> bool:
    """Whether a cluster, not our launcher, has started this process as one of several."""
    return "TF_CONFIG" in os.environ or "SLURM_PROCID" in os.environ


def without_cluster(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a trainer on this host, without cluster variables. The dashboard can run
    inside a Slurm job, which its trainers are not part of.
    """
    return {
        name: value
        for name, value in environment.items()
        # SLURM_CONF is the user's: it names the cluster.
        if name != "TF_CONFIG" and (name == "SLURM_CONF" or not name.startswith("SLURM_"))
    }


def tf_config(addresses: list[str], rank: int) -> str:
    """TF_CONFIG of worker `rank` among workers at `addresses` (host:port), in the order of
    their ranks.
    """
    config: dict[str, Any] = {
        "cluster": {"worker": addresses},
        "task": {"type": "worker", "index": rank},
    }
    return json.dumps(config)


def exempt_from_proxies(environment: MutableMapping[str, str], hosts: Iterable[str]) -> None:
    """Adds `hosts` to the exceptions of the environment's proxies.

    gRPC uses a proxy even for 127.0.0.1, which it cannot reach, so the workers would wait for each
    other forever.
    """
    if not any(environment.get(name) for name in PROXIES):
        return
    everywhere = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    in_grpc, exempt = environment.get("no_grpc_proxy", ""), list(hosts)  # gRPC reads its own first
    for name, value in (("no_proxy", everywhere), ("no_grpc_proxy", in_grpc)):
        if value or name == "no_proxy":
            environment[name] = ",".join(dict.fromkeys(filter(None, [*value.split(","), *exempt])))


def free_addresses(count: int) -> list[str]:
    """Loopback addresses without a listener, at ports that no outgoing connection uses.

    A worker that connects to one that is not up yet could otherwise get that port as its own.
    """
    free = (port for port in random.sample(PORTS, len(PORTS)) if _is_free(port))
    return [f"{LOOPBACK}:{port}" for port in itertools.islice(free, count)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


HOST_SECONDS = 60.0  # for all workers on one host to connect
CLUSTER_SECONDS = 600.0  # on a cluster, whose machines and images start at different times
RETRY_SECONDS = 0.2
_ANSWER_SECONDS = 5.0  # for a connected worker to send its rank
_MOST_BYTES = 400  # of a message
_GO, _OTHER = b"go\n", b"other\n"
MEETING_VARIABLE = "GAN_RUNTIME_MEETING"  # the run and attempt that a worker has come for


def meet(
    members: Members, host_seconds: float = HOST_SECONDS, cluster_seconds: float = CLUSTER_SECONDS
) -> None:
    """Waits until all workers of this run and attempt (MEETING_VARIABLE) have connected to the
    address of the first worker.

    Raises:
        AcceleratorError: a worker is missing at the deadline, or the first one cannot be reached;
            the message names it, and likely causes.
    """
    host, _, port = members.addresses[0].rpartition(":")
    workers, is_local = len(members.addresses), host == LOOPBACK
    seconds = host_seconds if is_local else cluster_seconds
    print(
        f"{members.place.name}: waiting up to {seconds:.0f} s for all to meet at {host}:{port}",
        flush=True,
    )
    deadline = time.monotonic() + seconds
    if members.rank == 0:
        missing = _gather((host if is_local else "", int(port)), workers, deadline)
        absent = (
            f"worker {', '.join(map(str, missing))} of {workers} has not connected to {host}:{port}"
        )
        problem = absent if missing else ""
    else:
        why = _join((host.strip("[]"), int(port)), members.rank, deadline)
        problem = f"worker 0 of {workers} cannot be reached at {host}:{port} ({why})" if why else ""
    if problem:
        raise AcceleratorError(f"{problem} within {seconds:.0f} s. {_likely_causes(is_local)}")


def _gather(address: tuple[str, int], workers: int, deadline: float) -> list[int]:
    """Run by the first worker: waits for all others, then lets them continue. Returns the missing
    ranks; if there are any, no worker continues.
    """
    dual = not address[0] and socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if dual else socket.AF_INET
    with contextlib.ExitStack() as open_sockets:
        server = socket.create_server(address, family=family, dualstack_ipv6=dual)
        open_sockets.enter_context(server)
        present: dict[int, socket.socket] = {}
        while missing := sorted({*range(1, workers)} - {*present}):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return missing
            server.settimeout(remaining)
            with contextlib.suppress(OSError, ValueError):  # a timeout, or a stranger
                worker = open_sockets.enter_context(server.accept()[0])
                worker.settimeout(_ANSWER_SECONDS)
                rank, _, meeting = worker.recv(_MOST_BYTES).decode().strip().partition(" ")
                if meeting == os.environ.get(MEETING_VARIABLE, ""):
                    present[int(rank)] = worker
                else:
                    worker.sendall(_OTHER)
                    worker.close()
        for worker in present.values():
            with contextlib.suppress(OSError):  # the worker has exited, which the framework reports
                worker.sendall(_GO)
    return []


def _join(address: tuple[str, int], rank: int, deadline: float) -> str:
    """Run by the other workers: connects to the first worker and waits for its permission. Returns
    the reason not to continue, or "".
    """
    why, has_met_others = "it did not answer", False
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection(
                address, timeout=min(remaining, _ANSWER_SECONDS)
            ) as first:
                first.sendall(f"{rank} {os.environ.get(MEETING_VARIABLE, '')}\n".encode())
                first.settimeout(remaining)
                answer = first.recv(_MOST_BYTES)
                if answer == _GO:
                    return ""
                has_met_others |= answer == _OTHER
        except OSError as error:
            why = error.strerror or str(error)
        time.sleep(RETRY_SECONDS)
    return "workers of another run meet there" if has_met_others else why


def _likely_causes(is_local: bool) -> str:
    proxies = [name for name in PROXIES if os.environ.get(name)]
    causes = [
        "the other workers have not started or have ended (see their logs)",
        *([] if is_local else ["a firewall between the hosts", "a wrong address in TF_CONFIG"]),
        *([f"{proxies[0]}, if it catches connections to these hosts"] if proxies else []),
    ]
    return f"Likely causes: {'; '.join(causes)}. docs/cluster.md lists the addresses of workers."
