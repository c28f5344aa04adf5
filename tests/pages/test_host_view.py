"""Pages during the inspection of the host, which takes seconds, and after it fails."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from gan_runtime.base.errors import AcceleratorError
from gan_runtime.hardware.hosts import Host
from tests.pages.launch_fields import text_field
from tests.pages.reading import texts

Show = Callable[..., AppTest]
DETECTING = "Detecting hardware …"
PREPARE = session.prepare_other_pages  # the original; tests of pages replace it


def labels(app: AppTest) -> set[str]:
    return {button.label for button in app.button}


def test_launch_does_not_wait_for_the_inspection_of_the_host(
    show: Show, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_answer = Event()
    monkeypatch.setattr(
        "gan_runtime.hardware.hosts.probe", lambda: host if may_answer.wait(60.0) else None
    )
    app = show("launch")
    assert not app.exception
    assert DETECTING in texts(app)
    assert text_field(app, "batch_size_global").value == "32"  # the form can be filled in meanwhile
    assert "Start run" not in labels(app)
    may_answer.set()
    session.runtime().host()
    app.run()
    assert DETECTING not in texts(app)
    assert "Start run" in labels(app)


def test_first_page_triggers_page_preloading_and_host_inspection(
    show: Show, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compare without runs stops early."""
    prepared, loaded = Event(), set[str]()
    monkeypatch.setattr(session, "importlib", SimpleNamespace(import_module=loaded.add))
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: prepared.set() or host)
    monkeypatch.setattr("dashboard.frame.session.prepare_other_pages", PREPARE)
    monkeypatch.setattr(session, "_first_page", Lock())
    assert not show("compare").exception
    assert prepared.wait(30.0)
    assert {"dashboard.home_view", "dashboard.run.view", "dashboard.tpu.view"} <= loaded


def test_a_failed_inspection_is_reported_and_retried_only_on_request(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def probe() -> Host:
        looks.append(1)
        raise AcceleratorError("TensorFlow cannot be loaded.")

    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", probe)
    app = show("launch")
    app.run()
    assert [error.value for error in app.error] == ["TensorFlow cannot be loaded."]
    assert len(looks) == 1
    next(button for button in app.button if "again" in button.label).click().run()
    assert len(looks) == 2
