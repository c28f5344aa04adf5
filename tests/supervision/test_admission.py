"""Whether a host can train a run: all reasons against it, what the run waits for, and what it
needs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from gan_runtime.base.errors import HomeError, SpecError
from gan_runtime.hardware.hosts import Host
from gan_runtime.jobs import core_jobs
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.supervision import admission
from gan_runtime.supervision.admission import TOO_LITTLE_MEMORY, admit

DIGITS = {"workload": "mlp_gan", "dataset": "digits"}


def test_all_reasons_are_reported_together_with_their_options(home: Home, host: Host) -> None:
    spec = RunSpec.parse(
        {**DIGITS, "dataset": "photos", "accelerator": "gpu", "start_from": "quick-0009"}
    )
    with pytest.raises(SpecError) as refused:
        admit(spec, host, home)
    assert list(refused.value.by_field()) == ["accelerator", "dataset", "start_from"]
    assert "this host has no GPU" in refused.value.by_field()["accelerator"]
    assert "there is no data set 'photos'" in refused.value.by_field()["dataset"]
    assert not home.jobs.exists()


def test_admitted_run_keeps_the_engine_chosen_for_auto(host: Host) -> None:
    admitted = admit(RunSpec.parse(DIGITS), host)
    assert (admitted.spec.engine, admitted.accelerator) == ("tensorflow", "cpu")
    assert not admitted.waits_for_data
    assert admitted.data is not None
    assert admitted.data.images == 1_797
    assert admitted.memory_bytes is not None
    assert admitted.memory_bytes > 700e6
    assert admitted.checkpoint_bytes > 0


def test_run_may_start_from_weights_of_the_run_it_waits_for(
    home: Home, host: Host, new_run: Callable[..., RunDir]
) -> None:
    new_run("quick-0001", **DIGITS)
    spec = RunSpec.parse({**DIGITS, "start_from": "quick-0001"})
    with pytest.raises(SpecError) as refused:
        admit(spec, host, home)
    assert list(refused.value.by_field()) == ["start_from"]
    assert admit(spec, host, home, after="quick-0001").accelerator == "cpu"


def test_nothing_is_estimated_for_a_data_set_in_preparation(home: Home, host: Host) -> None:
    job = JobDir(home.jobs / "prepare-data-0001")
    job.path.mkdir(parents=True)
    job.write_request(
        JobRequest(kind=core_jobs.PREPARE, options={"name": "photos"}, asker="a test")
    )
    admitted = admit(RunSpec.parse({"dataset": "photos"}), host, home)
    assert (admitted.waits_for_data, admitted.data, admitted.memory_bytes) == (True, None, None)
    assert admitted.checkpoint_bytes == 0


def test_too_little_memory_is_a_warning(host: Host) -> None:
    small = host.model_copy(update={"memory_bytes": 100_000_000})
    assert TOO_LITTLE_MEMORY in admit(RunSpec.parse(DIGITS), small).warnings
    assert TOO_LITTLE_MEMORY not in admit(RunSpec.parse(DIGITS), host).warnings


def test_space_is_checked_for_all_study_runs_together(
    home: Home, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted = admit(RunSpec.parse(DIGITS), host, home)
    requests: list[tuple[int, str]] = []

    def require(_: Path, needed: int, purpose: str) -> None:
        requests.append((needed, purpose))
        raise HomeError(purpose)

    monkeypatch.setattr(admission.disk, "require", require)
    with pytest.raises(HomeError):
        admission.require_space(home, [admitted] * 3)
    expected = admission.disk.LEAST_BYTES + 3 * admitted.checkpoint_bytes
    assert requests == [(expected, "starting 3 runs with its checkpoints")]
