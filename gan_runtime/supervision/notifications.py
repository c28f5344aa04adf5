"""Notices when a run ends, fails or collapses, sent by the owner of a home in its own thread.

Events are read from the database. notified.jsonl in the home lists the sent notices, so a new owner
sends the rest, and nothing twice. Only a crash between a server's answer and that line repeats a
notice, with the same key. Runs that ended before a channel was set up give no notice.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from gan_runtime.base import channels
from gan_runtime.base.channels import Channel, Event, Notice, NoticeSettings
from gan_runtime.base.errors import NotifyError, UnknownRunError
from gan_runtime.records import run_files
from gan_runtime.records.home import Home
from gan_runtime.records.states import ENDED
from gan_runtime.store import queries
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.store.queries import Ending, RunRow
from gan_runtime.store.store import Store
from gan_runtime.training.verdict import Finding, Verdict

log = logging.getLogger("gan_runtime")
LEDGER = "notified.jsonl"
ROUND_SECONDS = 2.0
# Before each retry; then the last pause repeats.
PAUSES_SECONDS = (5.0, 30.0, 120.0, 600.0, 3_600.0)
MOST_TRIES = 28  # about a day
LAST_TIMEOUT_S = 4.0  # of a server's answer when the owner ends
JOIN_SECONDS = 15.0
MOST_TEXT = 1_900  # characters; Discord takes 2,000
MOST_RECENT = 20  # events for browsers
LATE = timedelta(days=2)  # after its end an attempt can be found to have collapsed


@dataclass(frozen=True)
class RunEvent:
    """An event of an attempt of a run."""

    event: Event
    ending: Ending
    verdict: Verdict

    @property
    def key(self) -> str:
        """quick-0007/1/ended."""
        return key(self.ending, self.event)

    def notice(self, row: RunRow, url: str = "") -> Notice:
        """The notice of this event. `row`: the run; `url`: of the pages."""
        name, collapsed = " ".join(row.name.split()), self.event == "collapsed"
        who = name if name == row.run_id else f"{name} ({row.run_id})"
        title = f"{who} {'collapsed' if collapsed else self.ending.status}"
        note = "" if collapsed else f"{row.note[:1].upper()}{row.note[1:].rstrip('.')}."
        link = f"{url.rstrip('/')}/run?run={quote(row.run_id)}" if url else ""
        parts = (f"{title}.", note, self.verdict.sentence, link)
        text = " ".join(" ".join(filter(None, parts)).split())[:MOST_TEXT]
        document = {
            "id": self.key,
            "event": self.event,
            "run_id": row.run_id,
            "name": name,
            "workload": row.workload,
            "attempt": self.ending.attempt,
            "status": self.ending.status,
            "reason": row.reason_code,
            "finding": self.verdict.finding.value,
            "verdict": self.verdict.sentence,
            "at": self.ending.changed_at.isoformat(),
            "url": link,
            "text": text,  # Slack, Mattermost, Rocket.Chat
            "content": text,  # Discord
        }
        return Notice(self.key, title, text, document)


def key(ending: Ending, event: Event) -> str:
    """quick-0007/1/ended."""
    return f"{ending.run_id}/{ending.attempt}/{event}"


def end_of(ending: Ending) -> Event:
    """The event of an attempt that has ended."""
    return "ended" if ending.status in ("finished", "stopped") else "failed"


def events_of(ending: Ending, verdict: Verdict) -> list[RunEvent]:
    """The events of an attempt that has ended, or has collapsed while training."""
    events: list[Event] = []
    if verdict.finding is Finding.COLLAPSED:
        events.append("collapsed")
    if ending.status in ENDED:
        events.append(end_of(ending))
    return [RunEvent(event, ending, verdict) for event in events]


def recent(store: Store) -> list[Notice]:
    """The newest events of a home, for browsers, latest first."""
    endings = queries.endings(store)[:MOST_RECENT]
    verdicts = queries.verdicts(store, tuple(ending.run_id for ending in endings))
    rows = {row.run_id: row for row in queries.runs(store)}
    return [
        event.notice(rows[ending.run_id])
        for ending in endings
        if ending.run_id in rows
        for event in events_of(ending, verdicts.get(ending.run_id, Verdict()))
    ]


# ---- what was sent -------------------------------------------------------------------------------


@dataclass
class Ledger:
    """The file notified.jsonl. `done`: channel → keys of notices that must not be sent (again)."""

    path: Path
    done: dict[str, set[str]] = field(default_factory=dict)

    def read(self) -> None:
        """Reads the file again; invalid lines do not count."""
        self.done = {}
        try:
            lines = [line for piece in run_files.pieces(self.path) for line in piece.splitlines()]
        except FileNotFoundError:
            return
        for line in lines:
            try:
                entry: Any = json.loads(line)
                keys = {str(name) for name in entry["keys"]}
                self.done.setdefault(str(entry["channel"]), set()).update(keys)
            except (ValueError, TypeError, KeyError):
                continue

    def add(self, channel: str, state: str, keys: Sequence[str]) -> None:
        """Appends a line. `state`: "before" (the channel was set up), "sent", "unwanted" or
        "given_up". Raises OSError.
        """
        entry = {"channel": channel, "state": state, "keys": [*keys], "at": time.time()}
        with os.fdopen(run_files.appending(self.path), "ab") as file:
            file.write(f"{json.dumps(entry)}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        self.done.setdefault(channel, set()).update(keys)


@dataclass
class _Delay:
    """The retries of a notice that was not accepted."""

    tries: int = 0
    not_before_s: float = float("-inf")


class Notifier:
    """The notification thread of an owned home. `is_ready`: whether the database has all runs."""

    def __init__(
        self,
        home: Home,
        store: Store,
        is_ready: Callable[[], bool],
        clock: Clock = time.monotonic,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.trouble = ""  # why the last try failed, or ""
        self._home, self._store, self._is_ready = home, store, is_ready
        self._clock, self._environment = clock, environment
        self._ledger = Ledger(home.path / LEDGER)
        self._delays: dict[tuple[str, str], _Delay] = {}
        self._verdicts: dict[str, tuple[object, Verdict]] = {}
        self._ended, self._lock = threading.Event(), threading.Lock()
        self._thread = threading.Thread(target=self._work, name="gan-notices", daemon=True)
        self._ledger.read()

    def begin(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def end(self) -> None:
        """Ends the thread. Sends the newest notices once more, with a short timeout."""
        self._ended.set()
        self._thread.join(JOIN_SECONDS)

    def run_round(self, timeout_s: float = channels.TIMEOUT_S) -> None:
        """Sends all notices that are due. Raises NotifyError for wrong settings, OSError for a full
        disk.
        """
        with self._lock:
            settings = channels.settings(self._home.path, self._environment)
            if not settings.channels or not self._is_ready():
                return
            endings = queries.endings(self._store)
            self._note_channels(settings, endings)
            for channel in settings.channels:
                self._send(channel, self._due(channel, settings, endings), settings, timeout_s)

    def _note_channels(self, settings: NoticeSettings, endings: list[Ending]) -> None:
        """Marks runs that ended before a channel was set up as done."""
        for channel in settings.channels:
            if channel.name not in self._ledger.done:
                over = [ending for ending in endings if ending.status in ENDED]
                before = [key(ending, event) for ending in over for event in channels.EVENTS]
                self._ledger.add(channel.name, "before", before)

    def _due(
        self, channel: Channel, settings: NoticeSettings, endings: list[Ending]
    ) -> list[RunEvent]:
        """The events to send on a channel, earliest first. Events that the settings exclude now are
        never sent. Quality may show a collapse after the end: ended attempts are judged for
        another two days.
        """
        done = self._ledger.done[channel.name]
        first = datetime.now(UTC) - LATE
        new = [
            event
            for ending in reversed(endings)
            if ending.changed_at > first
            or ending.status not in ENDED
            or key(ending, end_of(ending)) not in done
            for event in events_of(ending, self._verdict(ending))
            if event.key not in done
        ]
        if unwanted := [event.key for event in new if event.event not in settings.events]:
            self._ledger.add(channel.name, "unwanted", unwanted)
        return [event for event in new if event.event in settings.events]

    def _verdict(self, ending: Ending) -> Verdict:
        """The verdict of an attempt, recomputed after an epoch or a measurement of quality."""
        marker = (ending.attempt, ending.status, ending.news)
        before, verdict = self._verdicts.get(ending.run_id, (None, Verdict()))
        if before != marker:
            verdict = queries.verdicts(self._store, (ending.run_id,)).get(ending.run_id, verdict)
            self._verdicts[ending.run_id] = (marker, verdict)
        return verdict

    def _send(
        self, channel: Channel, due: list[RunEvent], settings: NoticeSettings, timeout_s: float
    ) -> None:
        """Sends notices on a channel until the server refuses one in this round."""
        for event in due:
            delay = self._delays.setdefault((channel.name, event.key), _Delay())
            if self._clock() < delay.not_before_s:
                continue
            try:
                row = queries.run(self._store, event.ending.run_id)
                channel.send(event.notice(row, settings.url or ""), timeout_s)
            except UnknownRunError:  # the run was deleted in the meantime
                continue
            except NotifyError as error:
                self._put_off(channel, event, delay, error)
                return
            self.trouble = ""
            self._ledger.add(channel.name, "sent", [event.key])
            del self._delays[(channel.name, event.key)]

    def _put_off(
        self, channel: Channel, event: RunEvent, delay: _Delay, error: NotifyError
    ) -> None:
        pause = PAUSES_SECONDS[min(delay.tries, len(PAUSES_SECONDS) - 1)]
        delay.tries += 1
        delay.not_before_s = self._clock() + pause
        self.trouble = str(error)
        log.warning(
            "%s by %s was not sent (try %d): %s", event.key, channel.name, delay.tries, error
        )
        if delay.tries >= MOST_TRIES:
            self._ledger.add(channel.name, "given_up", [event.key])

    def _work(self) -> None:
        while not self._ended.wait(ROUND_SECONDS):
            self._try_round(channels.TIMEOUT_S)
        self._try_round(LAST_TIMEOUT_S)

    def _try_round(self, timeout_s: float) -> None:
        try:
            self.run_round(timeout_s)
        except Exception as error:  # such as wrong settings; the next round tries again
            trouble = f"{type(error).__name__}: {error}"
            if trouble != self.trouble:
                log.warning("notices cannot be sent: %s", error)
            self.trouble = trouble


def trial_notice() -> Notice:
    """A notice that tests the settings."""
    text = "Test of the notices of the GAN dashboard: this channel works."
    document = {"id": f"test/{time.time_ns()}", "event": "test", "text": text, "content": text}
    return Notice(str(document["id"]), "GAN dashboard: test", text, document)
