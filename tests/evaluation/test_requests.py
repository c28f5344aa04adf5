"""Requests for evaluations: which apply to a run and why others do not, invalid options, and
requests of earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gan_runtime.base.errors import JobError, RunStateError, SpecError
from gan_runtime.catalog.evaluations import evaluation
from gan_runtime.evaluation import jobs
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from tests.evaluation.hand_made import ended, keep_three
from tests.support.asking import ask

TESTER = operator("a test")


def reason_of(home: Home, run: RunDir, name: str) -> str:
    [reason] = [refusal for each, refusal in jobs.evaluations_of(home, run) if each.name == name]
    return reason


def test_evaluation_explains_why_it_cannot_be_requested_now(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run = new_run("quick-0001")
    keep_three(run)
    assert (
        reason_of(home, run, "loss_surface")
        == "run quick-0001 is queued: compute its loss surface once it has ended."
    )
    assert reason_of(home, ended(new_run("quick-0002")), "loss_surface") == ""


def test_all_invalid_options_are_reported_before_anything_is_written(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run = ended(new_run("quick-0001"))
    with pytest.raises(SpecError) as refused:
        ask(home, actor=TESTER).evaluate(run.run_id, "loss_surface", {"size": "four", "points": 3})
    assert [error.message for error in refused.value.errors] == [
        (
            "Grid (size) is 'four', but allowed is a whole number from 5 to 41: use 21, or fewer"
            " for a faster and coarser surface."
        ),
        "'points' is not an option of evaluation loss_surface: its options are size.",
    ]
    assert not home.jobs.exists()


def test_refused_request_gives_the_reason_of_the_disabled_button(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run = new_run("quick-0001")
    with pytest.raises(RunStateError) as refused:
        ask(home, actor=TESTER).evaluate(run.run_id, "loss_surface")
    assert str(refused.value) == reason_of(home, run, "loss_surface")


def test_request_of_an_earlier_version_is_the_newest_one(home: Home) -> None:
    job = JobDir(home.jobs / "compute-surface-0003")
    job.path.mkdir(parents=True)
    job.write_request(
        JobRequest(
            kind="compute_surface", options={"run_id": "quick-0001", "size": 21}, asker="a test"
        )
    )
    newest = jobs.newest_request(home, "quick-0001", "loss_surface")
    assert newest is not None
    assert (newest.job.job_id, newest.state) == ("compute-surface-0003", "waiting")
    assert jobs.newest_request(home, "quick-0002", "loss_surface") is None


def test_an_unknown_evaluation_is_refused_with_the_names() -> None:
    with pytest.raises(
        JobError, match="'surfaces' is not an evaluation: choose one of loss_surface"
    ):
        evaluation("surfaces")
