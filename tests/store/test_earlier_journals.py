"""Runs of version 0.2, whose options are one flat list, open unchanged: queries, option names,
resume, bundles.

tests/support/fixtures/0.2 contains a run trained by version 0.2: two epochs of mlp_gan with two
discriminator updates per step. It was exported as a bundle, which omits hosts and folders; its
histograms and images are omitted too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from dashboard import option_words
from dashboard.compare import grouping
from gan_runtime import bundles
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support.asking import ask_of

NewRun = Callable[..., RunDir]
SINCE = {
    "target": "here",
    "job_options": "",
    "loop": "custom",
    "adam_beta_2": 0.999,
    "rmsprop_epsilon": "inside",
    "still_action": "note",
    "resume_lost": "no",
    "pictures_every": 1,
    "quality_every": 5,
    "start_from": "",
    "loss": "cross_entropy",
    "r2_weight": 0.0,
    "penalty_end": 1.0,
    "augmentation": "none",
}  # options added after 0.2
STORED = REPOSITORY / "tests" / "support" / "fixtures" / "0.2" / "run-0001"


@pytest.fixture
def old(home: Home) -> RunDir:
    """The 0.2 run in a current home."""
    return RunDir(Path(shutil.copytree(STORED, home.runs / "run-0001")))


def stored(home: Home) -> Store:
    """A store with everything in the journals of a home."""
    store = Store()
    Ingestor(home, store).catch_up()
    return store


def test_flat_options_are_read_unchanged(old: RunDir) -> None:
    values = json.loads(old.spec_path.read_text(encoding="utf-8"))
    assert "mlp_gan" not in values
    assert old.spec().flat() == {**values, **SINCE}
    assert old.spec().model_dump()["mlp_gan"]["label_smoothing"] == 0.1


def test_images_count_both_discriminator_updates(home: Home, old: RunDir) -> None:
    store = stored(home)
    assert store.rows("SELECT images_per_step, spec->>'discriminator_steps' FROM runs") == [
        (512, "2")
    ]
    [row] = queries.runs(store)
    assert (row.status, row.workload, row.name) == ("finished", "mlp_gan", "before-nesting")
    results = queries.results(store, [old.run_id])
    assert results["images"].tolist() == [6 * 512]


def test_store_keeps_old_and_new_options_in_the_same_form(
    home: Home, old: RunDir, new_run: NewRun
) -> None:
    values = old.spec().flat()
    new_run("run-0002", seconds=1.0, **values)
    specs = [json.loads(row.spec) for row in queries.runs(stored(home))]
    assert [{**SINCE, **spec} for spec in specs] == [values, values]


def test_compare_names_differences_between_old_and_new_runs(
    home: Home, old: RunDir, new_run: NewRun
) -> None:
    changed = {**old.spec().flat(), "label_smoothing": 0.2, "name": "today"}
    new_run("run-0002", seconds=1.0, **changed)
    new_run("run-0003", seconds=2.0, workload="dcgan_mnist")
    rows = {row.run_id: row for row in queries.runs(stored(home))}
    two = [rows["run-0001"], rows["run-0002"]]
    assert [option.name for option in grouping.differing(two)] == ["label_smoothing"]
    assert [grouping.full_spec(row)["label_smoothing"] for row in two] == [0.1, 0.2]
    assert "workload" in [option.name for option in grouping.differing(list(rows.values()))]
    assert "label smoothing 0.1" in option_words.run_changes(json.loads(two[0].spec))


def test_old_reasons_get_current_codes_and_keep_their_text(home: Home, old: RunDir) -> None:
    """Its journals contain sentences only."""
    assert '"code"' not in old.supervisor_journal.read_text(encoding="utf-8")
    store = stored(home)
    rows = store.rows("SELECT status, reason, code FROM ingest.statuses ORDER BY stage, place")
    assert rows == [
        ("queued", "waiting for the accelerator", "waits_for_device"),
        ("starting", "starting a trainer on cpu", "starting"),
        ("compiling", "building the networks and tracing the training step", "building"),
        ("running", "training towards step 6", "training"),
        ("finished", "all 2 epochs done", "epochs_done"),
    ]
    assert store.rows("SELECT note, reason_code FROM runs") == [
        ("all 2 epochs done", "epochs_done")
    ]


def test_resume_writes_options_in_the_current_form(old: RunDir) -> None:
    failed = journal.StatusChange(status="failed", reason="a loss is not finite")
    journal.append(old.supervisor_journal, 2, failed)
    old.checkpoints.mkdir()
    (old.checkpoints / "step-00000006.safetensors").touch()
    ask_of(old).resume(old.run_id, {"learning_rate_generator": "1e-5"})
    assert (
        json.loads(old.spec_path.read_text(encoding="utf-8"))["mlp_gan"]["learning_rate_generator"]
        == 1e-5
    )
    assert old.spec().flat() == {
        **RunSpec.read(STORED / "spec.json").flat(),
        "learning_rate_generator": 1e-5,
    }


@pytest.mark.parametrize("bundle", bundles.examples(), ids=lambda bundle: bundle.stem)
def test_example_bundles_open_with_all_their_options(home: Home, bundle: Path) -> None:
    runs = bundles.unpack(bundle, home)
    store = stored(home)
    images = dict(store.rows("SELECT run_id, images_per_step FROM runs"))
    assert set(images) == set(runs)
    for row in queries.runs(store):
        spec = RunSpec.read(home.run_dir(row.run_id).spec_path)
        assert {**spec.flat(), **json.loads(row.spec)} == spec.flat()
        assert images[row.run_id] == spec.images_per_step
