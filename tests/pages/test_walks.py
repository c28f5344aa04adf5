"""The walks of docs/architecture.md through the dashboard and the owner follow the calls."""

from __future__ import annotations

from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from dashboard import plots
from dashboard.frame import session
from gan_runtime.records.run_folder import RunDir
from tests.support.called_modules import OF_TRAINERS, calls, not_called, parts


def test_neighbors_of_a_walk_call_each_other(
    show: Callable[..., AppTest], trained: Callable[..., RunDir], running: RunDir
) -> None:
    trained("quick-0002", seconds=1)
    plots.cached_specification.cache_clear()  # of charts that other tests have drawn
    with calls() as pairs:
        launch = show("launch")
        next(button for button in launch.button if button.label == "Add to the queue").click().run()
        show("run", run="quick-0002")
        show("run", run=running.run_id).button(key=f"stop.{running.run_id}").click().run()
        session.runtime().refresh()
    here = [part for part in parts() if not set(part) & set(OF_TRAINERS)]
    assert len(here) == 6
    assert not_called(here, pairs) == []
