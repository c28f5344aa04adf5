"""The role of a process for its home, requested by several pages at once."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from dashboard.frame.access import HomeAccess
from gan_runtime.base.errors import HomeInUseError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import HostProbe
from gan_runtime.records.home import HOME_VARIABLE, Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.supervision import owner

ANSWER_SECONDS = 30.0


def test_no_page_waits_for_a_read_only_database_to_close(
    home: Home, new_run: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    new_run("quick-0001").request_stop("a test")
    monkeypatch.setenv(HOME_VARIABLE, str(home.path))
    home_access = HomeAccess(lambda: "", HostProbe)
    lease = owner.acquire(home)
    looks = home_access.runtime()
    assert isinstance(looks.ownership_error, HomeInUseError)
    lease.release()
    runtimes: list[Runtime] = []
    end = looks.close

    def close() -> None:
        page = threading.Thread(target=lambda: runtimes.append(home_access.runtime()), daemon=True)
        page.start()
        page.join(ANSWER_SECONDS)
        runtimes.append(looks)
        end()

    monkeypatch.setattr(looks, "close", close)
    home_access.try_to_own()
    try:
        owns, last = runtimes
        assert (owns.ownership_error, last) == (
            None,
            looks,
        ), "the page was answered before it was closed"
    finally:
        home_access.close()
