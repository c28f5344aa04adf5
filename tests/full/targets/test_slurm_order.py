"""Runs of a Slurm target that wait for each other: chains, and studies with few jobs at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gan_runtime.commands.runtime import Runtime
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.studies.design import StudyDesign
from gan_runtime.supervision.admission import Dependency
from gan_runtime.targets import configuration
from tests.full.targets.slurm_runs import LONG, TARGET, TOY, reaches, row
from tests.support.cluster.rig import Rig

Wait = Callable[..., Any]


def test_a_chained_run_is_submitted_after_the_end_of_the_other(
    rig: Rig, on_rig: Runtime, wait_until: Wait
) -> None:
    first = on_rig.commands.submit(RunSpec.parse(LONG))
    reaches(on_rig, first, "running", wait_until)
    wait_until(lambda: first.has_checkpoint, "it saves")
    weights = {**TOY, "epochs": 1, "start_from": first.run_id}
    second = on_rig.commands.submit(RunSpec.parse(weights), after=Dependency(first.run_id))
    assert f"starts when run {first.run_id} ends" in row(on_rig, second).note
    assert len(rig.run("squeue", "-h").splitlines()) == 1
    on_rig.commands.stop(first.run_id)
    reaches(on_rig, second, "finished", wait_until)
    assert row(on_rig, first).status == "stopped"
    assert first.run_id in second.trainer_journal().read_text(encoding="utf-8")


def test_a_study_has_at_most_as_many_jobs_as_its_target_allows(
    rig: Rig, on_rig: Runtime, home: Home, wait_until: Wait
) -> None:
    settings = configuration.target(home, TARGET).model_copy(update={"most_jobs": 1})
    configuration.add(home, TARGET, settings)
    base = {name: str(value) for name, value in {**TOY, "epochs": 1}.items()}
    runs = on_rig.commands.submit_study(StudyDesign.parse("batch_size", base, ["64", "128"], 1))
    at_once = 0

    def are_finished() -> bool:
        nonlocal at_once
        at_once = max(at_once, len(rig.run("squeue", "-h").splitlines()))
        return all(row(on_rig, run).status == "finished" for run in runs)

    wait_until(are_finished, "both are finished", 180.0)
    assert at_once == 1
