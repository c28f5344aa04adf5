"""The checks of `make faults` detect the faults they are meant for.

tests/full/benchmarks/test_faults.py runs the scenarios.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import conditions
from benchmarks.faults import __main__ as faults
from benchmarks.faults import checks, scenario
from benchmarks.faults.fault import Expectation
from benchmarks.faults.kinds import KINDS, ON_SLURM, TOYS, WITH_TENSORFLOW, kind_of
from benchmarks.faults.scenario import Reference, Result
from benchmarks.faults.stage import BrokenGuaranteeError, Stage
from gan_runtime.hardware import machine
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.journal import AttemptStart, Chunk, Scalars, StatusChange
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (
            subprocess.TimeoutExpired("owner", 180.0),
            "TimeoutExpired: Command 'owner' timed out after 180.0",
        ),
        (ValueError("not enough values to unpack"), "ValueError: not enough values to unpack"),
        (BrokenGuaranteeError("the run was lost"), "the run was lost"),
    ],
)
def test_an_error_in_a_scenario_fails_only_that_scenario(
    monkeypatch: pytest.MonkeyPatch, raised: Exception, said: str
) -> None:
    def breaks(stage: Stage) -> Expectation:
        stage.actions.append("began")
        raise raised

    monkeypatch.setitem(KINDS, "breaks", breaks)
    monkeypatch.setattr(
        scenario, "reference", lambda _: Reference({}, calls=0, operations=0, syncs=0)
    )
    result = scenario.play(7, "breaks")
    assert (result.actions, result.ends) == ("began", ())
    [problem] = result.problems
    assert problem.startswith(said)
    assert "FAILED" in result.line


def test_stored_outcomes_record_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "RESULTS", tmp_path / "faults.jsonl")
    faults.store_outcomes(
        [Result(7, "kill_all", "", ("finished",), (), 1.0)], Namespace(scenarios=1), 1.0
    )
    record = json.loads((tmp_path / "faults.jsonl").read_text().splitlines()[0])
    assert record["commit"] == machine.facts()["commit"]
    assert record["uncommitted_changes"] == conditions.changed_since_commit()


def test_kinds_alternate_and_a_seed_always_selects_the_same_kind() -> None:
    kinds = [kind_of(seed) for seed in range(1, 1 + 20 * len(TOYS))]
    assert {kinds.count(kind) for kind in TOYS} == {17}
    assert sum(kinds.count(kind) for kind in WITH_TENSORFLOW) == 2 * len(TOYS), "a tenth of them"
    assert sum(kinds.count(kind) for kind in ON_SLURM) == len(TOYS), "a twentieth"
    assert set(kinds) == set(KINDS)
    assert kind_of(3, ["kill_all"]) == "kill_all"


@pytest.fixture
def resumed(new_run: Callable[..., RunDir]) -> RunDir:
    """A run resumed from step 2: what its first attempt measured after that step is void."""
    run = new_run("quick-0001")
    journal.append(
        run.trainer_journal(),
        1,
        AttemptStart(resume_step=0),
        Scalars(
            epoch=1, first_step=1, wall_s=[1, 2, 3], values={"loss_generator": [0.1, 0.2, 0.3]}
        ),
    )
    journal.append(
        run.trainer_journal(),
        2,
        AttemptStart(resume_step=2),
        Scalars(epoch=1, first_step=3, wall_s=[3, 4], values={"loss_generator": [0.5, 0.6]}),
        StatusChange(status="finished", reason="done"),
    )
    return run


def test_lost_duplicate_invented_or_changed_numbers_are_detected(
    home: Home, resumed: RunDir
) -> None:
    checks.run_next_owner(home)
    rows = checks.stored_rows(home)
    assert checks.step_problems(resumed, rows) == []
    stored = rows["scalar_values"]
    last = next(row for row in stored if row[2] == 4)
    for wrong, sentence in (
        ([row for row in stored if row != last], "1 numbers are journaled and not stored"),
        ([*stored, last], "1 numbers are stored twice"),
        ([*stored, (*last[:2], 5, 0.7)], "1 numbers are stored and not journaled"),
        (
            [row if row != last else (*last[:3], 0.25) for row in stored],
            "1 numbers have another value",
        ),
    ):
        [problem] = checks.step_problems(resumed, {**rows, "scalar_values": wrong})
        assert problem.startswith(sentence)


def test_a_valid_line_dropped_by_the_reader_is_detected(
    home: Home, resumed: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = journal.chunks

    def forgetful(*arguments: Any, **named: Any) -> Iterator[Chunk]:
        for chunk in real(*arguments, **named):
            is_first_attempt = [
                not isinstance(record, Scalars) or record.attempt == 1 for record in chunk.records
            ]
            records = list(itertools.compress(chunk.records, is_first_attempt))
            yield replace(
                chunk,
                records=records,
                places=list(itertools.compress(chunk.places, is_first_attempt)),
            )

    monkeypatch.setattr(journal, "chunks", forgetful)
    checks.run_next_owner(home)
    [problem] = checks.step_problems(resumed, checks.stored_rows(home))
    assert problem.startswith("2 numbers are journaled and not stored")


def test_invalid_lines_are_not_counted_as_journaled(resumed: RunDir) -> None:
    losses = checks.journaled_values(resumed)
    assert losses[("loss_generator", 2)] == 0.2
    assert losses[("loss_generator", 3)] == 0.5, "the first attempt's is void"
    with resumed.trainer_journal().open("ab") as file:
        file.write(
            b'\0\0\n{}\n[1]\n\xff\n{"kind":"attempt"}\n{"kind":"attempt","resume_step":0,"at":"x"}\n'
        )
        file.write(
            b'{"kind":"scalars","epoch":1,"first_step":9,"wall_s":[1],"values":{"loss":[1,2]}}\n'
        )
        file.write(b'{"kind":"attempt","resume_step":0}')  # torn: the line has no end
    assert checks.journaled_values(resumed) == losses


def test_wrong_state_wrong_weights_and_leftover_files_are_detected(
    home: Home, resumed: RunDir, tmp_path: Path
) -> None:
    checks.run_next_owner(home)
    rows = checks.stored_rows(home)
    assert checks.state_problems(resumed, rows, "finished") == []
    assert len(checks.state_problems(resumed, rows, "lost")) == 2
    checkpoints.save(resumed.checkpoints, {"weights": np.ones(3)}, 4, 1.0, retained=1)
    assert checks.end_problems(resumed, {"weights": np.ones(3)}) == []
    assert checks.end_problems(resumed, {"weights": np.array([1.0, 1.0, 1.0 + 2**-52])}) != []
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    assert checks.partial_files(home, scratch) == []
    (resumed.checkpoints / "step-00000004.part").touch()
    (scratch / "gan-scratch-1").mkdir()
    assert len(checks.partial_files(home, scratch)) == 2
    assert checks.rebuild_problems(home, rows) == []
    assert checks.rebuild_problems(home, {**rows, "scalars": rows["scalars"][:-1]}) != []


def test_the_guarantees_page_names_exactly_the_scenario_kinds() -> None:
    page = (REPOSITORY / "docs" / "guarantees.md").read_text(encoding="utf-8")
    assert set(KINDS) == set(re.findall(r"`faults: (\w+)`", page))
