"""What this process is for its home: the owner, or, while somebody else is, one who looks and waits for it to be free."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from gan_runtime.base.errors import GanRuntimeError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hardware_probe import HostLook
from gan_runtime.records.home import Home
from gan_runtime.supervision import owner
from gan_runtime.supervision.owner import HomeOwner

log = logging.getLogger("gan_runtime")


class Post:
    """One for each process. `url`: where its pages are; `look`: at this host, begun by whoever asks first."""

    def __init__(self, url: Callable[[], str], look: Callable[[], HostLook]) -> None:
        self._url, self._look = url, look
        self._turn = threading.Lock()
        self._runtime: Runtime | None = None
        self._heard: HomeOwner | None = None
        self._heard_s = 0.0

    @property
    def why_not(self) -> str:
        """Why nothing can be changed here; empty for the owner."""
        refusal = self._runtime.why_not_owned if self._runtime is not None else None
        return str(refusal) if refusal is not None else ""

    @property
    def is_held(self) -> bool:
        """Whether somebody else has the home right now, or says so from another host."""
        return owner.is_owned(Home.choose()) or 0.0 < self.silent_seconds() < owner.SILENCE_SECONDS

    def silent_seconds(self) -> float:
        """For how long nothing was heard of an owner on another host, as far as anybody listened here; else 0."""
        found = owner.holder(Home.choose())
        if found is None or found.is_here:
            return 0.0
        if found != self._heard:
            self._heard, self._heard_s = found, time.monotonic()
        return max(time.monotonic() - self._heard_s, 0.001)

    def runtime(self) -> Runtime:
        """Opened by whoever asks first. Raises GanRuntimeError while the home can neither be opened nor looked at."""
        with self._turn:
            if self._runtime is None:
                self._runtime = self._owning() if not Home.choose().runs.is_dir() else self._either()
            return self._runtime

    def try_again(self) -> None:
        """Becomes the owner if the home is free by now. What is being drawn from the other store is drawn to its end."""
        with self._turn:
            before = self._runtime
            if before is None or before.why_not_owned is None or self.is_held:
                return
            try:
                self._runtime = self._owning()
            except GanRuntimeError as error:
                before.why_not_owned = error
                return
        before.close()  # it waits for a look through all journals that may be under way: no page waits for that

    def close(self) -> None:
        """At the end of the process."""
        with self._turn:
            if self._runtime is not None:
                self._runtime.close()
                self._runtime = None

    def _owning(self) -> Runtime:
        return Runtime.open(Home.choose(), host_look=self._look(), url=self._url())

    def _either(self) -> Runtime:
        try:
            return self._owning()
        except GanRuntimeError as error:
            log.warning("these pages only look: %s", error)
            try:
                return Runtime.view(Home.choose(), error, self._look())
            except (GanRuntimeError, OSError):  # no room for temporary files either
                raise error from None
