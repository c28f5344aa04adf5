"""Targets on the pages: where a run trains, what a target offers, and why a run waits there."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget, SshTarget
from tests.pages.launch_fields import choice_field
from tests.pages.reading import texts, titles

Show = Callable[..., AppTest]
NewRun = Callable[..., RunDir]


@pytest.fixture
def atlas(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A target whose commands are not installed here."""
    configuration.add(home, "atlas", SlurmTarget(accelerator="gpu"))
    monkeypatch.setenv("PATH", "")
    return


def test_launch_asks_where_only_if_there_is_a_target(show: Show) -> None:
    assert "Where" not in titles(show("launch"))


@pytest.mark.usefixtures("atlas")
def test_launch_shows_what_the_target_offers_or_why_not(
    show: Show, wait_until: Callable[..., object]
) -> None:
    app = show("launch")
    choice_field(app, "target").select("atlas").run()

    def has_answered() -> bool:
        targets = session.shared_runtime().targets
        return targets is not None and targets.offer("atlas") is not None

    wait_until(has_answered, "the target's thread has asked")
    app.run()
    assert "sinfo" in texts(app)
    assert not app.exception


@pytest.mark.usefixtures("atlas")
def test_a_waiting_run_says_where_and_why(show: Show, new_run: NewRun) -> None:
    run = new_run("far-0001", target="atlas")
    for page in ("home", "run"):
        shown = texts(show(page, **({"run": run.run_id} if page == "run" else {})))
        assert "ubmitting a job to atlas" in shown, page
        assert "CPU on atlas" in shown, page


def test_launch_leads_to_a_form_for_another_machine(show: Show) -> None:
    app = show("launch")
    next(each for each in app.button if each.label == "Train on another machine …").click().run()
    assert {"Name", "Host", "Folder of the clone"} <= {each.label for each in app.text_input}
    assert not app.exception


def test_a_host_can_have_a_tpu_and_a_cluster_cannot(show: Show, home: Home) -> None:
    configuration.add(home, "atlas", SlurmTarget(partition="gpu"))
    configuration.add(home, "box", SshTarget(kind="ssh", host="box.invalid", home="runs-of-mine"))
    app = show("launch")
    for target, is_offered in (("atlas", False), ("box", True)):
        choice_field(app, "target").select(target).run()
        tpu = next(each for each in app.button if each.key == "accelerator.tpu")
        assert tpu.disabled is not is_offered
