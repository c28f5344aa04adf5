"""The queue on Home: its manual order, and which runs use the devices of this host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import places, session
from gan_runtime import device_locks
from gan_runtime.device_locks import host_devices
from gan_runtime.device_locks.locks import Holder
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import queries
from gan_runtime.supervision.admission import Dependency

Show = Callable[..., AppTest]


@pytest.fixture
def busy_device() -> Iterator[None]:
    """A run of another home has used the CPU for an hour."""
    since = journal.now() - timedelta(hours=1, seconds=5)
    who = Holder(home="/data/gan", run_id="paper-0042", name="the *large* one", since=since)
    with device_locks.claim([host_devices.CPU], 1, who):
        yield


@pytest.fixture
def three(new_run: Callable[..., RunDir]) -> list[RunDir]:
    return [new_run(f"quick-{number:04d}", seconds=number) for number in (1, 2, 3)]


def order() -> list[str]:
    return [row.run_id[-1] for row in queries.queue(session.runtime().store)]


@pytest.mark.usefixtures("busy_device", "three")
def test_buttons_move_a_run_up_down_or_to_the_front(show: Show) -> None:
    app = show("home")
    assert not app.exception
    assert next(header.value for header in app.header) == "Queue (3)"
    for key, expected in (
        ("next.quick-0003", ["3", "1", "2"]),
        ("down.quick-0003", ["1", "3", "2"]),
        ("up.quick-0002", ["1", "2", "3"]),
    ):
        app.button(key=key).click().run()
        assert not app.exception
        assert order() == expected
    assert app.button(key="up.quick-0001").disabled
    assert app.button(key="down.quick-0003").disabled
    assert not app.button(key="down.quick-0001").disabled


@pytest.mark.usefixtures("busy_device", "three")
def test_the_queue_shows_which_run_uses_the_device_and_for_how_long(show: Show) -> None:
    captions = [caption.value for caption in show("home").caption]
    assert r"CPU: taken by run paper-0042 (the \*large\* one) of /data/gan for 1 h 00 m" in captions


@pytest.mark.usefixtures("busy_device", "three")
def test_a_waiting_run_can_add_or_drop_a_dependency(show: Show) -> None:
    app = show("home")
    choices = app.selectbox(key="after.quick-0002").options
    assert choices == ["no other run", "quick-0003, queued", "quick-0001, queued"]
    app.selectbox(key="after.quick-0002").select("quick-0003").run()
    app.checkbox(key="after.only.quick-0002").check().run()
    app.button(key="set_after.quick-0002").click().run()
    assert not app.exception
    sentence = "Starts when run quick-0003 finishes"
    assert sentence in [caption.value for caption in app.run().caption]
    app.selectbox(key="after.quick-0002").select("").run()
    app.button(key="set_after.quick-0002").click().run()
    assert sentence not in [caption.value for caption in app.run().caption]


@pytest.mark.usefixtures("busy_device", "three")
def test_launch_shows_the_device_owner_and_offers_a_dependency(show: Show) -> None:
    app = show("launch")
    assert not app.exception
    assert any("CPU: taken by run paper-0042" in caption.value for caption in app.caption)
    app.selectbox(key="after.launch").select("quick-0001").run()
    [start] = [button for button in app.button if button.label == "Add to the queue"]
    start.click().run()
    newest = session.runtime().home.run_dirs()[-1]
    state = latest_status(newest)
    assert (state.after, state.after_if) == ("quick-0001", "ended")
    assert state.reason == "starts when run quick-0001 ends, in any state"


@pytest.mark.usefixtures("busy_device", "three")
def test_a_rerun_keeps_its_dependency_while_that_run_is_active(
    show: Show,
) -> None:
    app = show("home")
    runtime = session.runtime()
    runtime.commands.start_after(["quick-0002"], Dependency("quick-0001", "finished"))
    runtime.commands.stop("quick-0002")

    def again() -> tuple[object, bool]:
        app.query_params["run"] = "quick-0002"
        app.switch_page(str(places.RUN)).run()
        next(
            button for button in app.button if button.label == "Run again with changes"
        ).click().run()
        assert not app.exception
        assert app.title[0].value == "Launch"
        only = [box.value for box in app.checkbox if box.key == "after.only.launch"]
        return app.selectbox(key="after.launch").value, only == [True]

    assert again() == ("quick-0001", True)
    runtime.commands.stop("quick-0001")
    assert again() == ("", False)


@pytest.mark.usefixtures("three")
def test_a_device_used_by_an_unknown_run_is_shown_without_its_end_time(
    show: Show, home: Home
) -> None:
    who = Holder(home=str(home.path.resolve()), run_id="quick-0009", since=journal.now())
    with device_locks.claim([host_devices.CPU], 1, who):  # deleted while its last process exits
        app = show("home")
    assert not app.exception
    assert any(
        caption.value.startswith("CPU: taken by run quick-0009 for") for caption in app.caption
    )
