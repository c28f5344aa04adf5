"""Workers meet before their framework connects them; a missing worker is named."""

from __future__ import annotations

import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from gan_runtime.base import cluster
from gan_runtime.base.cluster import Members
from gan_runtime.base.errors import AcceleratorError

SOON = 0.6


def members(workers: int) -> list[Members]:
    addresses = tuple(cluster.free_addresses(workers))
    return [Members(rank, addresses) for rank in range(workers)]


def outcome(worker: Members, seconds: float) -> str:
    try:
        cluster.meet(worker, host_seconds=seconds)
    except AcceleratorError as problem:
        return str(problem)
    return "met"


def test_workers_meet_in_any_order_and_free_the_address() -> None:
    three = members(3)
    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(lambda worker: outcome(worker, 30.0), reversed(three)))
    assert answers == ["met", "met", "met"]
    host, _, port = three[0].addresses[0].rpartition(":")
    with socket.create_server((host, int(port))):
        pass  # the framework takes it over


def test_no_worker_continues_when_one_is_missing_and_rank_0_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    first, second, _ = members(3)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda worker: outcome(worker, SOON), (first, second)))
    assert re.search(r"worker 2 of 3 has not connected to 127\.0\.0\.1:\d+ within", answers[0])
    assert "https_proxy" in answers[0]
    assert "worker 0 of 3 cannot be reached" in answers[1]


def test_other_process_that_connects_is_not_a_worker() -> None:
    first, second = members(2)
    host, _, port = first.addresses[0].rpartition(":")
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(outcome, first, 30.0)
        stranger = None
        while stranger is None:
            try:
                stranger = socket.create_connection((host, int(port)))
            except ConnectionRefusedError:
                continue
        stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert outcome(second, 30.0) == "met"
        assert waiting.result() == "met"
        stranger.close()


def test_workers_of_another_run_do_not_meet_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs with one address: the second run's worker comes to the first run's rank 0."""
    first, second = members(2)
    host, _, port = first.addresses[0].rpartition(":")
    monkeypatch.setenv(cluster.MEETING_VARIABLE, "a-0001/1")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, first, 30.0)
        stranger = None
        while stranger is None:
            try:
                stranger = socket.create_connection((host, int(port)))
            except ConnectionRefusedError:
                continue
        stranger.sendall(b"1 b-0001/1\n")
        assert stranger.recv(100) == b"other\n"
        stranger.close()
        assert outcome(second, 30.0) == "met"
        assert waiting.result() == "met"


def test_worker_of_another_run_says_whom_it_has_met() -> None:
    worker = members(2)[1]
    host, _, port = worker.addresses[0].rpartition(":")
    with socket.create_server((host, int(port))) as server, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome, worker, SOON)
        asking = server.accept()[0]
        assert asking.recv(100) == b"1 \n"
        asking.sendall(b"other\n")
        asking.close()
        assert "(workers of another run meet there)" in waiting.result()
