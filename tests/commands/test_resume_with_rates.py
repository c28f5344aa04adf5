"""Resuming with other rates: what may change, where it is reported, and that a refusal changes
nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from gan_runtime.base.errors import RunStateError, SpecError
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Created, StatusChange, StudyPlace
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support.asking import ask_of


@pytest.fixture
def failed(new_run: Callable[..., RunDir]) -> RunDir:
    """A run that failed in its first attempt."""
    run = new_run("quick-0001", learning_rate_generator=2e-4)
    journal.append(
        run.supervisor_journal, 1, StatusChange(status="failed", reason="loss_generator became NaN")
    )
    return run


def content(run: RunDir) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.path.iterdir()}


def test_a_run_resumes_with_other_rates_and_reports_them(failed: RunDir, home: Home) -> None:
    ask_of(failed).resume(failed.run_id, {"learning_rate_generator": "5e-5", "clip_norm": 1.0})
    assert failed.spec().learning_rate("generator") == 5e-5
    store = Store()
    Ingestor(home, store).catch_up()
    row = queries.run(store, "quick-0001")
    assert (row.status, row.attempt) == ("queued", 2)
    assert (
        row.note
        == "resumed with learning_rate_generator 5e-05 instead of 0.0002, clip_norm 1 instead of 0:"
        " waiting for the accelerator"
    )
    stored = json.loads(row.spec)
    assert (
        stored["learning_rate_generator"],
        stored["clip_norm"],
        stored["learning_rate_discriminator"],
    ) == (5e-5, 1.0, 1e-4)
    assert row.note in list(queries.events(store, "quick-0001")["message"])


def test_the_options_of_the_newest_resume_apply(failed: RunDir, home: Home) -> None:
    for attempt, rate in ((2, 1e-4), (3, 2.5e-5)):
        ask_of(failed).resume(failed.run_id, {"learning_rate_generator": rate})
        journal.append(
            failed.supervisor_journal, attempt, StatusChange(status="failed", reason="again")
        )
    ask_of(failed).resume(failed.run_id)
    store = Store()
    Ingestor(home, store).catch_up()
    assert json.loads(queries.run(store, "quick-0001").spec)["learning_rate_generator"] == 2.5e-5
    assert queries.run(store, "quick-0001").note == "resumed: waiting for the accelerator"


def test_resuming_with_the_same_rates_records_no_change(failed: RunDir) -> None:
    ask_of(failed).resume(failed.run_id, {"learning_rate_generator": 2e-4})
    assert [record.kind for record in journal.read_all(failed.supervisor_journal)] == [
        "created",
        "status",
        "status",
        "status",
    ]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"batch_size_global": "64"},
            (
                "batch_size_global cannot change at a resume, only learning_rate_generator,"
                " learning_rate_discriminator, clip_norm can: start a new run."
            ),
        ),
        ({"momentum": 0.9}, "momentum cannot change at a resume"),
        ({"mlp_gan.r1_weight": 1.0}, "mlp_gan.r1_weight cannot change at a resume"),
        ({"rate": 1}, "rate cannot change at a resume"),
        (
            {"learning_rate_generator": "-1"},
            "Learning rate, generator (learning_rate_generator) is '-1', but allowed is",
        ),
    ],
)
def test_other_changes_are_refused_by_name_and_nothing_is_written(
    failed: RunDir, changes: dict[str, object], sentence: str
) -> None:
    failed.request_stop("a test")
    before = content(failed)
    with pytest.raises(SpecError) as refused:
        ask_of(failed).resume(failed.run_id, changes)
    assert str(refused.value).startswith(sentence)
    assert content(failed) == before


def test_a_run_of_a_study_keeps_its_options(failed: RunDir) -> None:
    place = StudyPlace(
        study_id="study-0001",
        question="batch_size",
        title="",
        variant="32",
        variant_index=0,
        repeat=1,
    )
    created = journal.read_all(failed.supervisor_journal)[0]
    assert isinstance(created, Created)
    failed.supervisor_journal.unlink()
    journal.append(
        failed.supervisor_journal,
        1,
        created.model_copy(update={"study": place}),
        StatusChange(status="failed", reason="NaN"),
    )
    with pytest.raises(
        RunStateError,
        match="quick-0001 belongs to a study, whose runs differ in one option only: start a",
    ):
        ask_of(failed).resume(failed.run_id, {"learning_rate_generator": 1e-5})
    ask_of(failed).resume(failed.run_id)
    assert latest_status(failed).status == "queued"
