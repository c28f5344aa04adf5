"""A waiting trainer takes a run, and trains the same numbers as one that is started for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.records import journal, processes
from gan_runtime.records.home import Home
from gan_runtime.records.journal import HostFacts
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.supervision import standby
from gan_runtime.supervision.standby import Standby
from gan_runtime.training import checkpoints
from tests.support.engines.small_engines import assert_equal
from tests.support.step_losses import losses
from tests.support.trainers import end_trainers

Wait = Callable[..., Any]
OPTIONS = {
    "workload": "mlp_gan",
    "dataset": "digits",
    "epochs": 2,
    "replicas": 2,
    "precision": "float32",
}


@pytest.fixture
def waiting(wait_until: Wait) -> Iterator[Standby]:
    """Its process has ended before the next test."""
    created = Standby()
    yield created
    created.end()
    wait_until(lambda: not processes_that_wait(), "its end")


@pytest.fixture
def runtime(
    home: Home, host: Host, waiting: Standby, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Runtime]:
    monkeypatch.setattr("gan_runtime.hardware.hosts.probe", lambda: host)
    opened = Runtime.open(home, standby=waiting)
    yield opened
    end_trainers(home)
    opened.close()


def processes_that_wait() -> list[psutil.Process]:
    own = os.getpid()
    return [found for found in processes.started_for(standby.MODULE) if found.ppid() == own]


def trained(runtime: Runtime, wait_until: Wait, **options: object) -> RunDir:
    run_id = runtime.commands.submit(RunSpec.parse({**OPTIONS, **options})).run_id
    row = wait_until(
        lambda: (
            (row := queries.run(runtime.store, run_id)).status in ("finished", "failed", "lost")
            and row
        ),
        "the end of the run",
        300.0,
    )
    assert row.status == "finished", row
    return runtime.home.run_dir(run_id)


def test_a_waiting_trainer_trains_the_same_numbers_and_looks_like_any_other(
    runtime: Runtime, wait_until: Wait
) -> None:
    runtime.expect_a_run()
    [process] = wait_until(processes_that_wait, "its start")
    runtime.expect_a_run()
    assert processes_that_wait() == [process], "one is enough"
    run_id = runtime.commands.submit(RunSpec.parse(OPTIONS)).run_id
    run = runtime.home.run_dir(run_id)
    wait_until(lambda: processes.started_for(str(run.path), "1", "cpu"), "the trainer")
    assert processes.started_for(str(run.path), "1", "cpu") == [process]
    wait_until(lambda: queries.run(runtime.store, run_id).status == "finished", "the end", 300.0)
    assert "digits: 1,797 rows" in run.log_tail()
    assert run.process().began > run.process().started + 1.0, "its attempt began later than it"

    cold = trained(runtime, wait_until)
    np.testing.assert_array_equal(losses(runtime, cold), losses(runtime, run))
    assert_equal(weights(cold), weights(run))
    assert facts(cold) == facts(run)


def weights(run: RunDir) -> dict[str, np.ndarray]:
    return checkpoints.load(run.checkpoints, "newest").arrays


def facts(run: RunDir) -> dict[str, object]:
    records = journal.read_all(run.trainer_journal(0))
    [recorded] = [record.facts for record in records if isinstance(record, HostFacts)]
    return recorded


def test_a_run_starts_as_usual_if_the_waiting_trainer_hangs(
    runtime: Runtime, wait_until: Wait
) -> None:
    runtime.expect_a_run()
    [process] = wait_until(processes_that_wait, "its start")
    process.suspend()
    run = trained(runtime, wait_until, epochs=1)
    assert not process.is_running()
    assert run.process() is not None
    assert run.process().pid != process.pid


def test_a_waiting_trainer_ends_with_its_owner_and_leaves_no_files(
    wait_until: Wait, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    owner = (
        "import os, psutil; from gan_runtime.supervision.standby import Standby;"
        " waiting = Standby(); waiting.begin(); print(psutil.Process().children()[0].pid,"
        " flush=True); os._exit(0)"
    )
    ended = subprocess.run([sys.executable, "-c", owner], check=True, capture_output=True)
    wait_until(lambda: not psutil.pid_exists(int(ended.stdout)), "its end")
    assert list(tmp_path.glob(f"{processes.SCRATCH_PREFIX}*")) == []


def test_it_can_be_switched_off(waiting: Standby, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, standby.SWITCH, "off")
    waiting.begin()
    assert processes_that_wait() == []


def test_it_does_not_begin_while_memory_is_short(
    waiting: Standby, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standby, "LEAST_MEMORY", 10**15)
    waiting.begin()
    assert processes_that_wait() == []
