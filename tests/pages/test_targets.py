"""Targets on the pages: where a run trains, what a target offers, and why a run waits there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.frame import session
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.supervision.submitted_job import KnownJob, SubmittedJob
from gan_runtime.supervision.target_starter import TargetStarter
from gan_runtime.targets import configuration
from gan_runtime.targets.configuration import SlurmTarget, SshTarget
from gan_runtime.targets.target import Seen
from tests.pages.launch_fields import choice_field, text_field
from tests.pages.reading import texts, titles

Show = Callable[..., AppTest]
NewRun = Callable[..., RunDir]
SOON = datetime(2026, 12, 1, 8, 30, tzinfo=UTC)


@pytest.fixture
def atlas(home: Home, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A target whose commands are not installed here."""
    configuration.add(home, "atlas", SlurmTarget(accelerator="gpu"))
    monkeypatch.setenv("PATH", "")
    return


def test_launch_asks_where_only_if_there_is_a_target(show: Show) -> None:
    shown = titles(show("launch"))
    assert "Where" not in shown
    assert "Options of the job" not in shown


@pytest.mark.usefixtures("atlas")
def test_launch_shows_what_the_target_offers_or_why_not(
    show: Show, wait_until: Callable[..., object]
) -> None:
    app = show("launch")

    def has_answered() -> bool:
        targets = session.shared_runtime().targets
        return targets is not None and targets.offer("atlas") is not None

    wait_until(has_answered, "the target's thread has asked")
    app.run()
    assert "sinfo" in texts(app)
    assert not app.exception


@pytest.mark.usefixtures("atlas")
def test_launch_does_not_wait_for_the_answer_of_a_target(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TargetStarter, "offer", lambda *_: None)
    assert "asking it what it has" in texts(show("launch"))


@pytest.mark.usefixtures("atlas")
def test_launch_shows_the_script_of_the_job(show: Show) -> None:
    app = show("launch")
    assert not [each for each in app.code if "#SBATCH" in each.value]
    choice_field(app, "target").select("atlas").run()
    [script] = [each.value for each in app.code if "#SBATCH" in each.value]
    assert "#SBATCH --job-name=gan-NAME-1" in script
    text_field(app, "job_options").set_value("--time=00:20:00").run()
    [script] = [each.value for each in app.code if "#SBATCH" in each.value]
    assert "#SBATCH --time=00:20:00" in script
    assert "/runs/NAME 1 gpu" in script


@pytest.mark.usefixtures("atlas")
def test_launch_estimates_the_memory_of_a_run_there_and_compares_it_with_nothing_here(
    show: Show, monkeypatch: pytest.MonkeyPatch
) -> None:
    estimate = "gan_runtime.supervision.admission.watch.estimated_memory_bytes"
    monkeypatch.setattr(estimate, lambda *_: 7e11)
    app = show("launch")
    assert app.warning
    choice_field(app, "target").select("atlas").run()
    [memory] = [each for each in app.metric if each.label == "Memory, est."]
    assert memory.value == "700.0 GB"
    assert not [each for each in app.warning if "emory" in each.value]


@pytest.mark.usefixtures("atlas")
def test_the_list_of_runs_says_where_each_trains(show: Show, new_run: NewRun) -> None:
    new_run("far-0001", target="atlas")
    new_run("near-0001", 1.0)
    [table] = [each.value for each in show("runs").dataframe if "accelerator" in each.value]
    assert sorted(table["accelerator"]) == ["cpu", "cpu on atlas"]


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


@pytest.mark.parametrize(
    ("seen", "shown"),
    [
        (Seen("waiting", "PENDING", starts_at=SOON), "Expected start 2026-12-01"),
        (Seen("running", "RUNNING", job="7", nodes="n[1-2]", ends_at=SOON), "time limit at"),
        (Seen("running", "RUNNING", job="7", nodes="n1"), "Job 7 · nodes n1"),
        (Seen("running", "SUSPENDED", job="7", nodes="n1"), "Job 7 · nodes n1 · suspended"),
    ],
)
@pytest.mark.usefixtures("atlas")
def test_the_job_of_a_run_is_shown(
    show: Show, new_run: NewRun, monkeypatch: pytest.MonkeyPatch, seen: Seen, shown: str
) -> None:
    run = new_run("far-0001", target="atlas")
    show("home")
    targets = session.shared_runtime().targets
    assert targets is not None
    submission = SubmittedJob(target="atlas", token="gan-far-0001-1-abc", attempt=1)
    monkeypatch.setattr(targets, "job_of", lambda _: KnownJob(submission, seen))
    assert shown in texts(show("run", run=run.run_id))
    if seen.stage == "waiting":
        assert shown in texts(show("home"))


@pytest.mark.parametrize("is_asked", [False, True])
def test_the_checkpoint_of_a_run_on_another_host_is_fetched_by_a_button(
    show: Show, home: Home, new_run: NewRun, is_asked: bool
) -> None:
    configuration.add(home, "box", SshTarget(kind="ssh", host="box.invalid", home="runs-of-mine"))
    run = new_run("far-0001", target="box")
    journal.append(
        run.trainer_journal(),
        1,
        StatusChange(status="running", reason="training"),
        journal.AttemptStart(resume_step=0),
    )
    if is_asked:
        run.fetch_file.touch()
    app = show("run", run=run.run_id, tab="evaluation")
    buttons = [each for each in app.button if each.label == "Fetch it now"]
    if is_asked:
        assert "The newest checkpoint is being fetched." in texts(app)
        assert not buttons
    else:
        assert "This run trains on box. Its checkpoint comes at its end." in texts(app)
        buttons[0].click().run()
        assert run.fetch_file.exists()


@pytest.mark.usefixtures("atlas")
def test_the_job_of_an_ended_run_is_shown(
    show: Show, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("far-0001", target="atlas")
    show("home")
    targets = session.shared_runtime().targets
    assert targets is not None
    over = SubmittedJob(
        target="atlas", token="gan-far-0001-1-abc", attempt=1, job="7", nodes="n1", is_over=True
    )
    monkeypatch.setattr(targets, "job_of", lambda _: KnownJob(over, None))
    assert "Job 7 · nodes n1" in texts(show("run", run=run.run_id))
