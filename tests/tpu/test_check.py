"""A compile check before and after its job: canceled, already stored, refused, crashed.

tests/full/tpu/test_check.py compiles.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from gan_runtime.base.errors import AcceleratorError
from gan_runtime.jobs.folder import End, JobDir, JobProgress, JobRequest, JobSnapshot
from gan_runtime.jobs.job import jobs
from gan_runtime.records.home import Home
from gan_runtime.tpu import check as checks
from gan_runtime.tpu import plan as planning
from gan_runtime.tpu.check import COMPILE_ONLY
from tests.support.asking import ask
from tests.tpu.examples import keep_all

SMALL = {"workload": "mlp_gan", "dataset": "digits", "batch_size_global": 64}


@pytest.mark.skipif(bool(planning.missing_library()), reason=planning.missing_library())
def test_cancelled_check_is_killed_immediately_and_reports_it(
    home: Home, wait_until: Callable[..., Any]
) -> None:
    plan = planning.make(SMALL, "v3:2x2")
    job = ask(home).check_on_tpu(plan)
    assert job is not None
    assert checks.newest_progress(home, plan).running
    ask(home).cancel_job(job.job_id)
    wait_until(
        lambda: not checks.newest_progress(home, plan).running,
        "the check ends, with no owner to see to it",
    )
    said = "cancelled on request; its answers so far are stored."
    assert checks.newest_progress(home, plan).trouble == said


def test_stored_answers_need_no_compiler(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planning.make(SMALL, "v3:2x2")
    keep_all(home, plan)
    monkeypatch.setattr(planning, "missing_library", lambda: "libtpu is not installed here.")
    assert ask(home).check_on_tpu(plan) is None
    progress = checks.newest_progress(home, plan)
    assert (len(progress.answers), progress.running, progress.trouble) == (
        len(plan.points),
        False,
        "",
    )


def test_new_check_without_the_compiler_is_refused(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "missing_library", lambda: "libtpu is not installed here.")
    with pytest.raises(AcceleratorError, match="libtpu is not installed here"):
        ask(home).check_on_tpu(planning.make(SMALL, "v3:2x2"))


def test_sweep_answers_do_not_replace_the_runs_own_answer(home: Home) -> None:
    plan = planning.make(SMALL, "v3:2x2")
    keep_all(home, plan)
    (home.path / checks.FOLDER / f"{planning.key(plan, plan.point)}.json").unlink()
    progress = checks.newest_progress(home, plan)
    assert (len(progress.answers), progress.first) == (len(plan.points) - 1, None)


def test_torn_answer_counts_as_missing(home: Home) -> None:
    plan = planning.make(SMALL, "v3:2x2", sweep=False)
    keep_all(home, plan)
    (answer,) = (home.path / checks.FOLDER).iterdir()
    answer.write_text('{"point": ')
    assert checks.newest_progress(home, plan).answers == ()


def test_a_crashed_compiler_is_reported_with_its_last_line(
    home: Home, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    monkeypatch.setattr(planning, "missing_library", lambda: "")
    broken = {**COMPILE_ONLY, "KERAS_BACKEND": "nonsense"}
    monkeypatch.setitem(jobs(), checks.CHECK, replace(jobs()[checks.CHECK], environment=broken))
    plan = planning.make(SMALL, "v3:2x2", sweep=False)
    ask(home).check_on_tpu(plan)
    wait_until(lambda: not checks.newest_progress(home, plan).running, "the end of the job")
    trouble = checks.newest_progress(home, plan).trouble
    assert trouble.startswith("the compiler exited unexpectedly: ")
    assert "nonsense" in trouble


def test_a_host_with_too_little_memory_says_so(home: Home) -> None:
    said = "compiling takes about 11 GB of memory, and 8 GB is free on this host."
    end = End(state="finished", reason="done", result={"answers": 0, "refusal": said})
    request = JobRequest(kind=checks.CHECK, options={}, asker="command line")
    job = JobDir(home.path / "jobs" / "check-tpu-0001")
    snapshot = JobSnapshot(job, request, "finished", JobProgress(), end)
    plan = planning.make(SMALL, "v3:2x2", sweep=False)
    assert checks.progress(home, plan, snapshot).trouble == said


def test_a_killed_compiler_names_the_memory(
    home: Home, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    monkeypatch.setattr(planning, "missing_library", lambda: "")
    plan = planning.make(SMALL, "v3:2x2", sweep=False)
    ask(home).check_on_tpu(plan)
    job = checks.newest(home, plan)
    assert job is not None
    process = wait_until(job.job.process, "the process of the job")
    os.killpg(process.pid, signal.SIGKILL)
    wait_until(lambda: not checks.newest_progress(home, plan).running, "the end of the job")
    trouble = checks.newest_progress(home, plan).trouble
    assert trouble.startswith(
        "the compiler was killed without a message, most likely by the system"
    )
