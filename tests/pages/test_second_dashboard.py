"""A second dashboard on one home: it names the owner, shows everything, changes nothing, and takes
over once the home is free.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import access, places, session
from gan_runtime.base.errors import RoleError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import Scalars
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision import owner
from tests.support import damaged_stores

Show = Callable[..., AppTest]
URL = "http://127.0.0.1:8599"
HOLD = (
    "import sys; from pathlib import Path; from gan_runtime.records.home import Home; from"
    " gan_runtime.commands.runtime import Runtime\nfrom gan_runtime.supervision.supervisor import"
    " Supervisor\nSupervisor._start = lambda *_: None\nruntime ="
    " Runtime.open(Home(Path(sys.argv[1])), url=sys.argv[2]); print('held', flush=True); input();"
    " runtime.close()"
)


@pytest.fixture
def holder(home: Home) -> Iterator[subprocess.Popen[str]]:
    """Another process that owns the home, as a dashboard does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home.path), URL],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def live(running: RunDir) -> RunDir:
    """A training run that has logged two steps."""
    first = Scalars(
        epoch=1, first_step=1, wall_s=[1.0, 2.0], values={"loss_generator": [0.5, 0.25]}
    )
    journal.append(running.trainer_journal(), 1, first)
    return running


def page_text(app: AppTest) -> str:
    """The text of the page: Markdown, captions, errors and titles."""
    return "\n".join(
        element.value for element in (*app.markdown, *app.caption, *app.error, *app.title)
    )


def files(home: Home) -> dict[str, tuple[int, int]]:
    """The files of the home, except the owner's entry, which changes meanwhile."""
    paths = [path for path in home.path.rglob("*") if path.name != ".owner.json"]
    return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in paths}


def test_view_only_pages_name_the_owner_and_follow_the_journals(
    show: Show,
    home: Home,
    live: RunDir,
    holder: subprocess.Popen[str],
    wait_until: Callable[..., Any],
) -> None:
    before = files(home)
    app = show("run", run=live.run_id)
    assert not app.exception
    text = page_text(app).replace("\\", "").replace("\u2060", "")
    assert "View only: these pages show all runs and change nothing." in text
    assert f"is in use by process {holder.pid} on host {platform.node()} since 20" in text
    assert f"UTC, at {URL}" in text
    greyed = {button.label: button.help for button in app.button if button.disabled}
    assert greyed["Stop and save"] == access.home_access().refusal
    store = session.runtime().store
    assert store.rows("SELECT count(*) FROM scalars") == [(2,)]
    more = Scalars(epoch=1, first_step=3, wall_s=[3.0], values={"loss_generator": [0.125]})
    journal.append(live.trainer_journal(), 1, more)
    wait_until(lambda: store.rows("SELECT count(*) FROM scalars") == [(3,)], "the curve goes on")
    after = files(home)
    del before[str(live.trainer_journal())], after[str(live.trainer_journal())]
    assert {path for path in after if after[path] != before.get(path)} <= {
        str(home.database),
        f"{home.database}.wal",
    }


def test_every_command_is_refused_with_the_owner_named(
    show: Show, live: RunDir, holder: subprocess.Popen[str]
) -> None:
    show("home")
    runtime = session.runtime()
    for change in (
        runtime.commands.stop,
        runtime.commands.delete,
        runtime.commands.resume,
        lambda run: runtime.commands.rename(run, "mine"),
    ):
        with pytest.raises(RoleError, match=f"is in use by process {holder.pid} on host"):
            change(live.run_id)
    assert not live.stop_file.exists()
    assert not access.of_session("any").may_change  # uploads are refused too


def test_every_page_opens_view_only(
    show: Show, live: RunDir, holder: subprocess.Popen[str]
) -> None:
    for page in (path.stem for path in places.PAGES):
        app = show(page)
        assert not app.exception, page
        assert f"process {holder.pid} on host" in page_text(app), page
    assert [row.run_id for row in queries.runs(session.runtime().store)] == [live.run_id]


@pytest.mark.parametrize("end", ["close", "kill"])
def test_the_next_load_takes_over_a_free_home_folder(
    show: Show,
    home: Home,
    live: RunDir,
    holder: subprocess.Popen[str],
    end: str,
) -> None:
    app = show("home")
    looking = session.runtime().store
    if end == "close":
        holder.communicate("\n")
    else:
        holder.kill()
        holder.wait()
    assert looking.rows("SELECT count(*) FROM runs") == [(1,)]
    app.run()
    assert "View only" not in page_text(app)
    assert not any(button.disabled for button in app.button)
    entry = owner.holder(home)
    assert entry is not None
    assert entry.pid == os.getpid()
    session.runtime().commands.rename(live.run_id, "mine")
    assert queries.run(session.runtime().store, live.run_id).name == "mine"
    assert looking.rows("SELECT count(*) FROM runs") == [(1,)]  # for pages still drawing from it


def test_a_database_of_a_newer_version_opens_view_only(
    show: Show, home: Home, live: RunDir
) -> None:
    Store(home.database).close()
    with duckdb.connect(str(home.database)) as newer:
        newer.execute("UPDATE ingest.version SET schema_version = 99")
    app = show("run", run=live.run_id)
    assert not app.exception
    assert "has schema version 99 of a newer program" in page_text(app).replace("\\", "")
    assert next(button.label for button in app.button if not button.disabled) == "Try again"
    assert session.runtime().store.rows("SELECT count(*) FROM scalars") == [(2,)]
    home.database.unlink()  # as a user might
    app.run()
    assert "View only" not in page_text(app)


def test_database_damage_is_reported_until_dismissed(show: Show, home: Home, live: RunDir) -> None:
    (
        damaged_stores.text(home.database)
        if home.database.exists()
        else home.database.write_text("no database")
    )
    app = show("runs")
    (old,) = home.path.glob("results.duckdb.damaged-*")
    text = page_text(app).replace("\\", "").replace("\u2060", "")
    assert (
        f"It was renamed to {old.name}. The new database has 1 run, read from their journals."
        in text
    )
    assert [block.value for block in app.code] == [f"rm {old}"]
    next(button for button in app.button if button.label == "Got it").click().run()
    app.run()
    assert "set aside" not in page_text(app)
    assert old.exists()
    assert live.path.exists()


@pytest.mark.usefixtures("live")
def test_pages_report_missing_runs_while_journals_are_read(
    show: Show, home: Home, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    home.database.write_text("no database")
    may_read, read = threading.Event(), Ingestor.catch_up_news
    monkeypatch.setattr(
        Ingestor, "catch_up_news", lambda self, **of: may_read.wait(60) and read(self, **of)
    )
    monkeypatch.setattr("gan_runtime.supervision.owner_thread.WITHIN_SECONDS", 0.1)
    app = show("runs")
    assert "some runs are not listed yet" in page_text(app)
    assert "The database is being rebuilt from the journals of all runs." in page_text(app)
    may_read.set()
    wait_until(lambda: not session.runtime().is_reading, "all journals are read")
    app.run()
    assert "some runs are not listed yet" not in page_text(app)
    assert "The database was rebuilt from the journals of all runs." in page_text(app)
    assert not app.exception


# ---- owners on other hosts -----------------------------------------------------------------------


def of_another_host(home: Home, beats: int = 7) -> owner.HomeOwner:
    """Writes the entry of a dashboard on another host."""
    entry = owner.HomeOwner(
        host="gpu-box", pid=4711, since=datetime(2026, 1, 1, 12, tzinfo=UTC), beats=beats
    )
    home.owner_lock.with_suffix(".json").write_text(entry.model_dump_json())
    return entry


def test_an_active_owner_on_another_host_keeps_the_home_folder(
    home: Home,
) -> None:
    of_another_host(home)

    def pass_a_second(_: float) -> None:
        of_another_host(home, beats=8)

    with pytest.raises(
        owner.HomeInUseError, match="by process 4711 on host gpu-box since 2026-01-01 12:00 UTC"
    ):
        owner.acquire(home, sleep=pass_a_second)
    assert not owner.is_owned(home)  # no lock remains


def test_an_unresponsive_owner_on_another_host_is_replaced(
    home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    of_another_host(home)
    seconds: list[float] = []
    lease = owner.acquire(home, sleep=seconds.append)
    assert sum(seconds) == owner.SILENCE_SECONDS
    assert (
        "its last owner, process 4711 on host gpu-box since 2026-01-01 12:00 UTC, does not respond"
        in caplog.text
    )
    entry = owner.holder(home)
    assert entry is not None
    assert (entry.pid, entry.host) == (os.getpid(), platform.node())
    lease.release()
    assert owner.holder(home) is None


def test_a_replaced_owner_stops_acting(home: Home) -> None:
    lease = owner.acquire(home)
    lease.check()
    of_another_host(home)
    with pytest.raises(
        owner.HomeInUseError, match="was taken over by process 4711 on host gpu-box"
    ):
        lease.check()
    lease.release()
    entry = owner.holder(home)
    assert entry is not None
    assert entry.pid == 4711  # the entry of the new owner stays


@pytest.mark.parametrize(
    "content", [b"", b"{", b'{"host": 1}', b"\xff" * 9_000, b'{"host":"x","pid":0,"since":"now"}']
)
def test_an_unreadable_owner_entry_is_ignored(home: Home, content: bytes) -> None:
    home.owner_lock.with_suffix(".json").write_bytes(content)
    assert owner.holder(home) is None
    owner.acquire(home).release()


def test_a_page_reports_a_database_rebuild_that_starts_while_it_is_drawn(
    show: Show, trained: Callable[..., RunDir], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file is renamed, as if a user had deleted the database."""
    trained("quick-0001")
    answers = iter([False, False])  # before the page, and in the notice above it
    monkeypatch.setattr(Runtime, "is_reading", property(lambda _: next(answers, True)))
    app = show("runs")
    assert not app.exception
    assert "The database is being rebuilt from the journals of all runs." in page_text(app)
    assert "some runs are not listed yet" in page_text(app)
