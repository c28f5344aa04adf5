"""The button that ends a run early, on Home and on Live."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from gan_runtime.records import journal
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import queries

Show = Callable[..., AppTest]


def buttons(app: AppTest) -> dict[str, bool]:
    """The labels of the stop and resume buttons, and whether they are enabled."""
    about = ("Stop", "Remove", "Resume")
    return {
        button.label: not button.disabled for button in app.button if button.label.startswith(about)
    }


@pytest.mark.parametrize("page", ["home", "run"])
def test_stop_button_reacts_immediately(show: Show, running: RunDir, page: str) -> None:
    app = show(page)
    assert buttons(app) == {"Stop and save": True}
    app.button(key="stop.quick-0001").click().run()
    assert running.stop_file.exists()
    assert buttons(app) == {"Stopping …": False}


def test_a_waiting_run_is_removed_from_the_queue(
    show: Show, new_run: Callable[..., RunDir]
) -> None:
    new_run("quick-0001")
    app = show("run")
    assert buttons(app) == {"Remove from queue": True}
    app.button(key="stop.quick-0001").click().run()
    assert queries.run(session.runtime().store, "quick-0001").status == "stopped", "at once"
    assert "Resume" in buttons(show("run"))


def test_stopping_a_finished_run_is_explained(show: Show, running: RunDir) -> None:
    app = show("run")
    journal.append(
        running.trainer_journal(), 1, StatusChange(status="finished", reason="all 15 epochs done")
    )
    app.button(key="stop.quick-0001").click().run()
    assert not app.exception
    assert "is finished already" in app.toast[0].value
