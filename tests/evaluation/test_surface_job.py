"""The loss surface job: refusal and cancellation.

tests/full/evaluation/test_surface_job.py covers training and computation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gan_runtime.base.errors import JobError, RunStateError
from gan_runtime.evaluation import jobs
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir, latest_status
from tests.evaluation.hand_made import ended
from tests.support.asking import ask


def test_run_that_is_queued_or_lacks_snapshots_is_refused(
    home: Home, new_run: Callable[..., RunDir]
) -> None:
    run = new_run("quick-0001")
    with pytest.raises(
        RunStateError, match="is queued: compute its loss surface once it has ended"
    ):
        ask(home).evaluate(run.run_id, "loss_surface")
    journal.append(run.trainer_journal(), 1, StatusChange(status="finished", reason="all done"))
    with pytest.raises(
        RunStateError, match="stores 0 weight snapshots, but a loss surface needs 3"
    ):
        ask(home).evaluate(run.run_id, "loss_surface")
    assert not home.jobs.exists()


def test_running_surface_job_is_not_duplicated_and_can_be_cancelled(
    home: Home, new_run: Callable[..., RunDir], wait_until: Callable[..., Any]
) -> None:
    run = ended(new_run("quick-0001"))
    job = ask(home).evaluate(run.run_id, "loss_surface")
    with pytest.raises(JobError, match="surfaces of run quick-0001 are being computed already"):
        ask(home, actor=operator("another")).evaluate(run.run_id, "loss_surface")
    ask(home).cancel_job(job.job_id)

    def ended_as() -> tuple[str, str] | None:
        look = jobs.newest_request(home, run.run_id, "loss_surface")
        return (look.state, look.end.reason) if look is not None and look.end is not None else None

    wait_until(ended_as, "the job ends")
    assert ended_as() == ("cancelled", "cancelled on request; nothing was stored.")
    assert not run.evaluations_journal.exists()
    assert latest_status(run).status == "finished"
