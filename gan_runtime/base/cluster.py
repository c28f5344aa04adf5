"""Which worker of a run this process is.

Workers find each other through TF_CONFIG, which the launcher or the cluster sets.

Before their framework connects them they meet, and say who is missing.

Ranks count from 0. Rank 0 writes what the run measures; the others write their own times and
failures.
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

JOBS = ("chief", "worker")  # of TF_CONFIG, in the order of the ranks, as TensorFlow counts them
LOOPBACK = "127.0.0.1"
# What TensorFlow raises in a worker whose exchange lost another one. An InternalError may mean
# anything: it counts if it names one.
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
PORTS = range(20_000, 32_000)  # Linux gives those from 32768 to outgoing connections


@dataclass(frozen=True)
class Place:
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
        """Such as "worker 1 of 2"."""
        return f"worker {self.rank} of {self.workers}"

    def says(self, sentence: str) -> str:
        """The sentence with the worker's name before it; unchanged when it works alone."""
        return sentence if self.workers == 1 else f"{self.name}: {sentence}"

    def lost_in(self, error: Exception) -> str | None:
        """Whom this worker could not reach, such as "worker 1 of 2" or "another worker"; None
        when the error means something else.
        """
        kind = type(error).__name__
        named = re.findall(r"/job:(?!localhost)(\w+)/replica:\d+/task:(\d+)", str(error))
        tasks = {int(task) + (self.chiefs if job == "worker" else 0) for job, task in named} - {
            self.rank
        }
        of_jax = kind == "JaxRuntimeError" and "Gloo" in str(
            error
        )  # what carries the exchange between CPUs; it names nobody
        if self.workers == 1 or not (
            kind in CUT_OFF_ERRORS or (kind == "InternalError" and tasks) or of_jax
        ):
            return None
        return (
            f"worker {' and '.join(map(str, sorted(tasks)))} of {self.workers}"
            if tasks
            else "another worker"
        )


@dataclass(frozen=True)
class Members:
    """The workers that a cluster names, and which of them this process is.

    `addresses`: host:port by rank; see `Place.chiefs`.
    """

    rank: int
    addresses: tuple[str, ...]
    chiefs: int = 0

    @classmethod
    def found(cls, workers: int, in_slurm: Callable[[], Members]) -> Members:
        """Those of TF_CONFIG where it is set, else those that `in_slurm` makes of Slurm's
        variables.

        Raises:
            AcceleratorError: the cluster has another number of workers than the run, or its
                variables make no sense.
        """
        source, read = (
            ("TF_CONFIG", cls.in_tf_config) if "TF_CONFIG" in os.environ else ("Slurm", in_slurm)
        )
        try:
            found = read()
        except (KeyError, ValueError, TypeError, RuntimeError) as error:
            raise AcceleratorError(
                f"{source} does not say which worker this is ({error!r}): see docs/cluster.md."
            ) from None
        named = len(found.addresses)
        if named != workers:
            raise AcceleratorError(
                f"workers is {workers}, but {source} names {named} worker(s): start {workers}, or"
                f" use workers={named}."
            )
        hosts = (address.rpartition(":")[0].strip("[]") for address in found.addresses)
        exempt_from_proxies(os.environ, hosts)
        return found

    @classmethod
    def in_tf_config(cls) -> Members:
        """Those of TF_CONFIG. Raises ValueError, TypeError or KeyError where it cannot be read."""
        config = json.loads(os.environ["TF_CONFIG"])
        jobs, kind, index = config["cluster"], config["task"]["type"], int(config["task"]["index"])
        addresses = tuple(address for job in JOBS for address in jobs.get(job, ()))
        rank = index + sum(len(jobs.get(job, ())) for job in JOBS[: JOBS.index(kind)])
        if not 0 <= index < len(jobs.get(kind, ())):
            raise ValueError(f"task {kind} {index} is not in the cluster")
        return cls(rank, addresses, len(jobs.get("chief", ())))

    @property
    def place(self) -> Place:
        """This process among them."""
        return Place(self.rank, len(self.addresses), on_cluster=True, chiefs=self.chiefs)


def is_cluster() -> bool:
    """Whether someone else than our launcher has started this process as one of several."""
    return "TF_CONFIG" in os.environ or "SLURM_PROCID" in os.environ


def without_cluster(environment: dict[str, str]) -> dict[str, str]:
    """The environment of a start on this host: the dashboard itself may run inside a Slurm
    job, its trainers are no part of that.
    """
    return {
        name: value
        for name, value in environment.items()
        if name != "TF_CONFIG" and not name.startswith("SLURM_")
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
    """Workers reach each other directly. gRPC sends even 127.0.0.1 through a proxy that the
    environment names, which knows no such address, and the workers wait for each other for ever.
    """
    if not any(environment.get(name) for name in PROXIES):
        return
    everywhere = environment.get("no_proxy") or environment.get("NO_PROXY", "")
    in_grpc, exempt = environment.get("no_grpc_proxy", ""), list(hosts)  # gRPC reads its own first
    for name, given in (("no_proxy", everywhere), ("no_grpc_proxy", in_grpc)):
        if given or name == "no_proxy":
            environment[name] = ",".join(dict.fromkeys(filter(None, [*given.split(","), *exempt])))


def free_addresses(count: int) -> list[str]:
    """Loopback addresses that nobody listens on, at ports that no outgoing connection takes in the
    meantime: a worker that looks for one not yet up could otherwise be given that very port as its
    own.
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


HOST_SECONDS = 60.0  # for all workers on one host to come, each from when it is there itself
CLUSTER_SECONDS = 600.0  # on a cluster, where machines and images arrive one after the other
RETRY_SECONDS = 0.2
_ANSWER_SECONDS = 5.0  # for a connected worker to say who it is
_GO = b"go\n"


def meet(
    members: Members, host_seconds: float = HOST_SECONDS, cluster_seconds: float = CLUSTER_SECONDS
) -> None:
    """Returns when all workers have come to the address of the first one.

    Raises:
        AcceleratorError: they have not in time; the message names who is missing, or what could not
            be reached, and likely causes.
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
        absent = f"worker {', '.join(map(str, missing))} of {workers} has not come to {host}:{port}"
        problem = absent if missing else ""
    else:
        why = _come((host.strip("[]"), int(port)), members.rank, deadline)
        problem = f"worker 0 of {workers} cannot be reached at {host}:{port} ({why})" if why else ""
    if problem:
        raise AcceleratorError(f"{problem} within {seconds:.0f} s. {_likely_causes(is_local)}")


def _gather(address: tuple[str, int], workers: int, deadline: float) -> list[int]:
    """As the first worker: waits for all others, then sends them on.

    Returns the ranks that have not come, and then sends nobody on.
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
            with contextlib.suppress(OSError, ValueError):  # nobody yet, or no worker
                worker = open_sockets.enter_context(server.accept()[0])
                worker.settimeout(_ANSWER_SECONDS)
                present[int(worker.recv(16))] = worker
        for worker in present.values():
            with contextlib.suppress(OSError):  # it has gone meanwhile: the framework will say so
                worker.sendall(_GO)
    return []


def _come(address: tuple[str, int], rank: int, deadline: float) -> str:
    """As another worker: comes to the first one and waits until it is sent on.

    Returns why it was not; empty when it was.
    """
    why = "it did not answer"
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection(
                address, timeout=min(remaining, _ANSWER_SECONDS)
            ) as first:
                first.sendall(b"%d\n" % rank)
                first.settimeout(remaining)
                if first.recv(16) == _GO:
                    return ""
        except OSError as error:
            why = error.strerror or str(error)
        time.sleep(RETRY_SECONDS)
    return why


def _likely_causes(is_local: bool) -> str:
    proxies = [name for name in PROXIES if os.environ.get(name)]
    causes = [
        "the other workers have not started or have ended (their log says why)",
        *(
            []
            if is_local
            else ["a firewall between the hosts", "an address in TF_CONFIG that leads elsewhere"]
        ),
        *([f"{proxies[0]}, if it catches what is meant for these hosts"] if proxies else []),
    ]
    return (
        f"Likely causes: {'; '.join(causes)}. docs/cluster.md has the addresses that workers need."
    )
