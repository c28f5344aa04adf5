"""Bundles: ended runs in one file, loaded into another home without anything of their owner."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from gan_runtime import bundles, commands, journal
from gan_runtime.errors import BundleError, RunStateError
from gan_runtime.home import Home
from gan_runtime.hosts import Host
from gan_runtime.rundir import RunDir
from gan_runtime.store import queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.studies.design import StudyDesign

NewRun = Callable[..., RunDir]


@pytest.fixture
def ended(new_run: NewRun) -> RunDir:
    """A finished run with numbers, an image, a checkpoint, a log, and private things in its host's facts."""
    run = new_run("quick-0001")
    run.samples.mkdir()
    run.checkpoints.mkdir()
    (run.samples / "epoch-00001.png").write_bytes(b"picture")
    (run.checkpoints / "step-00000010.safetensors").write_bytes(b"weights")
    run.log.write_text("trained in /home/jane/gan", encoding="utf-8")
    facts = {"cores": 8, "hostname": "janes-laptop", "data_origin": "IDX files in /home/jane/data/mnist"}
    journal.append(
        run.trainer_journal(),
        1,
        journal.HostFacts(facts=facts),
        journal.Event(level="info", topic="data", message="read /home/jane/data/mnist/t10k.gz: 38 images/s"),
        journal.Scalars(
            epoch=1, first_step=1, wall_s=[1.0], values={"loss_generator": [0.5], "loss_discriminator": [float("nan")]}
        ),
        journal.Sample(epoch=1, step=1, sample_kind="fixed_latents", file="samples/epoch-00001.png", meta={}),
        journal.StatusChange(status="finished", reason="all epochs done"),
    )
    return run


@pytest.fixture
def other(tmp_path: Path) -> Home:
    return Home(tmp_path / "other")


def test_a_bundle_brings_numbers_images_and_options_into_another_home(ended: RunDir, other: Home, tmp_path: Path) -> None:
    size = bundles.pack([ended], tmp_path / "one.zip", prefix="example-")
    assert size == (tmp_path / "one.zip").stat().st_size
    assert bundles.unpack(tmp_path / "one.zip", other) == ["example-quick-0001"]
    store = Store()
    Ingestor(other, store).catch_up()
    assert queries.run(store, "example-quick-0001").status == "finished"
    assert store.rows("SELECT metric, isnan(value) FROM scalars ORDER BY metric") == [
        ("loss_discriminator", True),
        ("loss_generator", False),
    ]
    grid = queries.sample(store, "example-quick-0001", 1)
    assert grid is not None
    assert grid.png == b"picture"


def test_a_bundle_says_nothing_of_its_owner(ended: RunDir, tmp_path: Path) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    with zipfile.ZipFile(tmp_path / "one.zip") as bundle:
        names = bundle.namelist()
        text = b"".join(bundle.read(name) for name in names).decode(errors="replace")
    assert sorted(names) == [
        "quick-0001/journal-0.jsonl",
        "quick-0001/journal-supervisor.jsonl",
        "quick-0001/samples/epoch-00001.png",
        "quick-0001/spec.json",
    ]
    assert "jane" not in text
    assert '"data_origin":"IDX files in mnist"' in text
    assert "read t10k.gz: 38 images/s" in text  # what is no folder stays
    assert '"cores":8' in text


def test_loading_twice_changes_nothing(ended: RunDir, other: Home, tmp_path: Path) -> None:
    bundles.pack([ended], tmp_path / "one.zip")
    bundles.unpack(tmp_path / "one.zip", other)
    journal.append(other.run_dir("quick-0001").supervisor_journal, 1, journal.Renamed(name="mine now"))
    assert bundles.unpack(tmp_path / "one.zip", other) == []
    assert "mine now" in other.run_dir("quick-0001").supervisor_journal.read_text(encoding="utf-8")


def test_a_study_stays_a_study_under_its_new_name(home: Home, host: Host, other: Home, tmp_path: Path) -> None:
    runs = commands.submit_study(home, StudyDesign.parse("batch_size", {"workload": "mlp_gan"}, ["64", "128"]), host)
    for run in runs:
        journal.append(run.supervisor_journal, 1, journal.StatusChange(status="stopped", reason="taken from the queue"))
    bundles.pack(runs, tmp_path / "study.zip", prefix="example-")
    bundles.unpack(tmp_path / "study.zip", other)
    store = Store()
    Ingestor(other, store).catch_up()
    assert [(row.study_id, row.runs) for row in queries.studies(store)] == [("example-study-0001", 2)]


def test_a_run_that_has_not_ended_is_not_bundled(new_run: NewRun, tmp_path: Path) -> None:
    with pytest.raises(RunStateError, match=r"run quick-0001 is queued: only ended runs can be bundled\."):
        bundles.pack([new_run("quick-0001")], tmp_path / "one.zip")
    assert not (tmp_path / "one.zip").exists()


def test_a_bundle_that_cannot_be_written_is_explained(ended: RunDir, tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"none/one\.zip cannot be written \(No such file or directory\): choose another file"):
        bundles.pack([ended], tmp_path / "none" / "one.zip")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("../evil/spec.json", b"{}"),
        ("run-0001/../../spec.json", b"{}"),
        ("/etc/passwd", b""),
        ("run-0001/process.json", b"{}"),
        ("run-0001/checkpoints/step-1.safetensors", b""),
    ],
)
def test_files_that_belong_into_no_bundle_are_refused(other: Home, tmp_path: Path, name: str, content: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "odd.zip", "w") as odd:
        odd.writestr(name, content)
    with pytest.raises(BundleError, match="which belongs into no bundle"):
        bundles.unpack(tmp_path / "odd.zip", other)
    assert other.run_dirs() == []


@pytest.mark.parametrize("damage", ["no zip", "cut", "half a run", "no file"])
def test_a_damaged_bundle_loads_nothing(ended: RunDir, other: Home, tmp_path: Path, damage: str) -> None:
    path = tmp_path / "one.zip"
    bundles.pack([ended], path)
    if damage == "no zip":
        path.write_bytes(b"what?")
    elif damage == "cut":
        path.write_bytes(path.read_bytes()[:-40])
    elif damage == "no file":
        path.unlink()
    else:
        with zipfile.ZipFile(path, "w") as half:
            half.writestr("run-0001/spec.json", "{}")
    with pytest.raises(BundleError):
        bundles.unpack(path, other)
    assert other.run_dirs() == []
    assert [one.name for one in other.runs.iterdir()] == []
