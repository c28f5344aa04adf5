"""The thread of a target, which makes all calls to it: submissions, cancellations, and one query
for the states of all jobs.

The supervisor reads the newest answer. A failed call changes nothing: no job has ended until good
answers lack it for ABSENT_SECONDS.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial

from gan_runtime.records import journal
from gan_runtime.store.folder_watcher import Clock
from gan_runtime.targets.configuration import QueryPace
from gan_runtime.targets.target import (
    COMPLETING,
    NoAnswerError,
    Offer,
    RunTarget,
    Seen,
    Submitted,
    TargetJob,
)

ABSENT_SECONDS = 300.0  # without a job in good answers, before it counts as ended
OFFER_SECONDS = 600.0
FIRST_SECONDS = 4.0  # from a submission to the query that says why its job waits
LEAVING_SECONDS = 2.0
ABSENT = Seen("ended", "ABSENT")
log = logging.getLogger("gan_runtime")


class TargetWatch:
    """Jobs of one target. All methods but `run_once` are for the supervisor, and return at once."""

    def __init__(
        self,
        name: str,
        target: RunTarget,
        pace: QueryPace,
        clock: Clock,
        has_thread: bool = True,
    ) -> None:
        """`has_thread`: False where the caller uses `run_once`."""
        self._has_thread = has_thread
        self._name, self._target, self._clock = name, target, clock
        self._pace, self._pause_seconds = pace, pace.poll_seconds
        self._lock, self._wake = threading.Lock(), threading.Event()
        self._submissions: list[tuple[TargetJob, Callable[[Submitted], None]]] = []
        self._cancelled: set[str] = set()  # tokens
        self._seen: dict[str, Seen | None] = {}  # by token; None before the first answer
        self._absent_since: dict[str, float] = {}
        self._offer: Offer | None = None
        self._offer_s, self._is_offer_due = 0.0, False
        self._is_ended = False
        self._thread: threading.Thread | None = None
        self.silent_since: datetime | None = None  # since when the target does not answer
        self.rounds = 0  # of calls that were all answered

    def script(self, job: TargetJob) -> str:
        """What `submit` starts."""
        return self._target.script(job)

    def submit(self, job: TargetJob, answered: Callable[[Submitted], None]) -> None:
        """Submits a job; `answered` gets the answer in the target's thread."""
        with self._lock:
            self._submissions.append((job, answered))
            self._seen.setdefault(job.token, None)
        self._begin()

    def watch(self, token: str) -> None:
        """Reads the states of a job from now on."""
        with self._lock:
            is_new = self._seen.setdefault(token, None) is None
        if is_new:
            self._begin()

    def forget(self, token: str) -> None:
        """Stops reading the states of a job."""
        with self._lock:
            self._seen.pop(token, None)
            self._cancelled.discard(token)
            self._absent_since.pop(token, None)

    def cancel(self, token: str) -> None:
        """Ends a job, and takes back a submission that the target has not got."""
        with self._lock:
            self._submissions = [each for each in self._submissions if each[0].token != token]
            self._seen.setdefault(token, None)
            is_new = token not in self._cancelled
            self._cancelled.add(token)
        if is_new:
            self._begin()

    def offer(self) -> Offer | None:
        """What the target has, at most OFFER_SECONDS old once it has answered again."""
        is_old = self._offer is None or self._clock() - self._offer_s > OFFER_SECONDS
        if is_old and not self._is_offer_due:
            self._is_offer_due = True
            self._begin()
        return self._offer

    def seen(self, token: str) -> Seen | None:
        """The newest state of a job; None before the first answer."""
        return self._seen.get(token)

    def end(self) -> None:
        """Ends the thread, which may be in a call for some seconds more. Jobs run on."""
        self._is_ended = True
        self._wake.set()
        if self._thread is not None:
            self._thread.join(LEAVING_SECONDS)

    def change(self, target: RunTarget, pace: QueryPace) -> None:
        """Uses other settings from the next call on."""
        self._target, self._pace = target, pace

    # ---- in the thread ---------------------------------------------------------------------------

    def run_once(self) -> None:
        """Makes all calls that are due."""
        began = self._clock()
        if self._is_offer_due:
            self._is_offer_due = False
            self._offer, self._offer_s = self._target.offer(), self._clock()
        failures, has_submitted = [], bool(self._submissions)
        # One call that fails must not keep the others from being made.
        for call in (self._read, self._cancel_all, *self._due_submissions()):
            try:
                call()
            except NoAnswerError as error:
                failures.append(error)
        if failures:
            if self.silent_since is None:
                log.warning("target %s does not answer: %s", self._name, failures[0])
            self.silent_since = self.silent_since or journal.now()
            self._pause_seconds = min(self._pace.most_seconds, 2 * self._pause_seconds)
            return
        self.silent_since = None
        self.rounds += 1
        poll_s = self._pace.poll_seconds
        # An ended job's files may need several answers.
        has_more = any(seen and seen.state == COMPLETING for seen in self._seen.values())
        poll_s = min(poll_s, FIRST_SECONDS) if has_submitted or has_more else poll_s
        rest = 1.0 if has_more else self._pace.rest
        self._pause_seconds = max(poll_s, rest * (self._clock() - began))

    def _due_submissions(self) -> list[Callable[[], None]]:
        return [partial(self._submit, *each) for each in list(self._submissions)]

    def _submit(self, job: TargetJob, answered: Callable[[Submitted], None]) -> None:
        if self._is_ended or (job, answered) not in self._submissions:  # it may be canceled since
            return
        answer = self._target.submit(job)
        with self._lock, contextlib.suppress(ValueError):
            self._submissions.remove((job, answered))
        answered(answer)

    def _read(self) -> None:
        with self._lock:
            waiting = {job.token for job, _ in self._submissions}
            tokens = [
                token
                for token, seen in self._seen.items()
                if seen is not ABSENT and token not in waiting
            ]
        answers = self._target.observe(tokens)
        now = self._clock()
        with self._lock:
            for token in tokens:
                if token in answers:
                    self._absent_since.pop(token, None)
                    self._seen[token] = answers[token]
                elif now - self._absent_since.setdefault(token, now) > ABSENT_SECONDS:
                    self._seen[token] = ABSENT

    def _cancel_all(self) -> None:
        for token in list(self._cancelled):
            seen = self._seen.get(token)
            if seen is None or seen.stage != "ended":
                self._target.cancel(token)

    def _begin(self) -> None:
        self._wake.set()
        with self._lock:
            if self._has_thread and self._thread is None and not self._is_ended:
                self._thread = threading.Thread(
                    target=self._run, name=f"target-{self._name}", daemon=True
                )
                self._thread.start()

    def _run(self) -> None:
        while not self._is_ended:
            self._wake.clear()
            try:
                self.run_once()
            except Exception:  # the thread must live on
                log.exception("target %s", self._name)
            self._wake.wait(self._pause_seconds)
