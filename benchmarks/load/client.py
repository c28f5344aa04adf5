"""Headless clients: WebSocket sessions that speak Streamlit's protocol, in one process.

A session requests a page as a browser does, then each fragment that redraws itself, at its interval
and until the server stops it. It discards the content of messages.

python -m benchmarks.load.client ADDRESS PAGE [QUERY] [--sessions 30]
    runs until standard input is closed, then prints one JSON line
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import random
import re
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from benchmarks.load.figures import p95

STREAM = "/_stcore/stream"
# Messages of timers and ends are shorter, so thirty sessions need not parse every chart.
SHORT_BYTES = 400
MEDIA = re.compile(rb"/media/[0-9a-f]+\.\w+")
MAX_BYTES = 2**27
OPENED_AT_ONCE = 5


class PageError(Exception):
    """A page shows an error."""


@dataclass
class Visit:
    """One response of the server. `seconds`: until its script ended; `payload`: bytes of its
    messages; `media`: paths of its images.
    """

    seconds: float = 0.0
    payload: int = 0
    messages: int = 0
    media: set[str] = field(default_factory=set)


class Session:
    """One browser window, created by `open_session`."""

    def __init__(self, connection: ClientConnection, page: str, query: str) -> None:
        self._connection, self._page, self._query = connection, page, query
        self._script_hash = ""
        self._timers: dict[str, asyncio.Task[None]] = {}
        self._requests: list[float] = []  # times of fragment requests without a complete response
        self.refreshes: list[Visit] = []

    async def visit(self, page: str = "", query: str = "") -> Visit:
        """Requests a page; returns the response up to the end of its script. Raises PageError."""
        self._page, self._query = page or self._page, query or self._query
        self._stop_timers()
        begin, visit = time.perf_counter(), Visit()
        await self._request()
        async for message in self._connection:
            assert isinstance(message, bytes)
            visit.payload += len(message)
            visit.messages += 1
            visit.media |= {name.decode() for name in MEDIA.findall(message)}
            if self._is_end(ForwardMsg.FromString(message)):
                visit.seconds = time.perf_counter() - begin
                return visit
        raise PageError(f"{self._page}: the server has closed the connection")

    async def follow(self) -> None:
        """Reads the refreshes of fragments until it is cancelled."""
        visit = Visit()
        async for message in self._connection:
            assert isinstance(message, bytes)
            visit.payload += len(message)
            visit.messages += 1
            if len(message) <= SHORT_BYTES and self._is_end(ForwardMsg.FromString(message)):
                visit.seconds = time.perf_counter() - self._requests[0] if self._requests else 0.0
                self._requests.clear()
                self.refreshes.append(visit)
                visit = Visit()

    def _is_end(self, message: ForwardMsg) -> bool:
        """Handles a message; returns whether it ends a script."""
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._script_hash = message.new_session.page_script_hash
        elif kind == "navigation":  # the page of the address
            self._script_hash = message.navigation.page_script_hash
        elif kind == "page_config_changed":  # a full run of the page, before its fragments
            self._stop_timers()
        elif kind == "auto_rerun":
            timer = message.auto_rerun
            self._stop_timers(timer.fragment_id)
            self._timers[timer.fragment_id] = asyncio.create_task(
                self._repeat(timer.fragment_id, timer.interval)
            )
        elif kind == "stop_auto_rerun":
            self._stop_timers(*message.stop_auto_rerun.fragment_ids)
        elif kind == "delta" and message.delta.new_element.WhichOneof("type") == "exception":
            raise PageError(f"{self._page}: {message.delta.new_element.exception.message}")
        return kind == "script_finished" and message.script_finished in (
            ForwardMsg.FINISHED_SUCCESSFULLY,
            ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY,
        )

    async def _repeat(self, fragment_id: str, interval: float) -> None:
        await asyncio.sleep(interval * random.random())
        while True:
            await asyncio.sleep(interval)
            self._requests.append(time.perf_counter())
            await self._request(fragment_id)

    def _stop_timers(self, *fragment_ids: str) -> None:
        for fragment_id in fragment_ids or tuple(self._timers):
            timer = self._timers.pop(fragment_id, None)
            if timer is not None:
                timer.cancel()

    async def _request(self, fragment_id: str = "") -> None:
        request = BackMsg()
        state = request.rerun_script
        state.query_string, state.page_name = self._query, self._page
        if fragment_id:
            state.fragment_id, state.is_auto_rerun, state.page_script_hash = (
                fragment_id,
                True,
                self._script_hash,
            )
        state.context_info.timezone, state.context_info.locale = "UTC", "en-US"
        await self._connection.send(request.SerializeToString())


@contextlib.asynccontextmanager
async def open_session(address: str, page: str = "", query: str = "") -> Any:
    """A new session on the dashboard at `address`, such as http://127.0.0.1:8501."""
    stream = address.replace("http", "ws", 1) + STREAM
    async with connect(
        stream,
        origin=Origin(address),
        subprotocols=[Subprotocol("streamlit")],
        max_size=MAX_BYTES,
        compression=None,
    ) as connection:
        session = Session(connection, page, query)
        yield session
        session._stop_timers()


async def crowd(address: str, page: str, query: str, sessions: int) -> dict[str, Any]:
    """Opens `sessions` sessions on one page, until standard input is closed."""
    async with contextlib.AsyncExitStack() as stack:
        windows = [
            await stack.enter_async_context(open_session(address, page, query))
            for _ in range(sessions)
        ]
        tasks = []
        for begin in range(0, sessions, OPENED_AT_ONCE):
            batch = windows[begin : begin + OPENED_AT_ONCE]
            await asyncio.gather(*(session.visit() for session in batch))
            tasks += [asyncio.create_task(session.follow()) for session in batch]
        print("all sessions are open", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        for task in tasks:
            if task.done():
                task.result()  # raises the task's error
            task.cancel()
        return summary([visit for session in windows for visit in session.refreshes])


def summary(visits: list[Visit]) -> dict[str, Any]:
    """Counts, sizes and times of all refreshes."""
    seconds = [visit.seconds for visit in visits] or [0.0]
    count = max(1, len(visits))
    return {
        "refreshes": len(visits),
        "refresh_p50_s": round(statistics.median_high(seconds), 3),
        "refresh_p95_s": round(p95(seconds), 3),
        "bytes_per_refresh": sum(visit.payload for visit in visits) // count,
        "messages_per_refresh": round(sum(visit.messages for visit in visits) / count, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Opens headless sessions on a page.")
    parser.add_argument("address")
    parser.add_argument("page")
    parser.add_argument("query", nargs="?", default="")
    parser.add_argument("--sessions", type=int, default=1)
    options = parser.parse_args()
    print(
        json.dumps(
            asyncio.run(crowd(options.address, options.page, options.query, options.sessions))
        )
    )
