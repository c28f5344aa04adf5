"""Workers meet before their framework connects them, and say who is missing.

TensorFlow waits for an absent worker for ever, JAX ends the process: neither says why. So the first worker listens at its own
address, which the framework takes over afterward, until all others have come; then it sends them on.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

from gan_runtime.base.cluster import LOOPBACK, PROXIES, Members
from gan_runtime.base.errors import AcceleratorError

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
        AcceleratorError: they have not in time; the message names who is missing, or what could not be reached, and likely causes.
    """
    host, _, port = members.addresses[0].rpartition(":")
    workers, is_local = len(members.addresses), host == LOOPBACK
    seconds = host_seconds if is_local else cluster_seconds
    print(f"{members.place.name}: waiting up to {seconds:.0f} s for all to meet at {host}:{port}", flush=True)
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
    """As the first worker: waits for all others, then sends them on. Returns the ranks that have not come, and then sends nobody on."""
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
    """As another worker: comes to the first one and waits until it is sent on. Returns why it was not; empty when it was."""
    why = "it did not answer"
    while (remaining := deadline - time.monotonic()) > 0:
        try:
            with socket.create_connection(address, timeout=min(remaining, _ANSWER_SECONDS)) as first:
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
    return f"Likely causes: {'; '.join(causes)}. docs/cluster.md has the addresses that workers need."
