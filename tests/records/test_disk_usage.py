"""Disk usage of a home: counted once, measured again only after changes, freed with the trash."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dashboard.runs import columns
from gan_runtime.base import disk
from gan_runtime.cli.app import app
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import RunDir
from gan_runtime.store import database_file
from gan_runtime.store.store import Store
from gan_runtime.supervision.maintenance import DiskUsage, Maintenance
from tests.support.asking import ask, ask_of

ASKER = operator("a test")
NewRun = Callable[..., RunDir]


def filled(run: RunDir, size: int) -> RunDir:
    """Adds a checkpoint of this many bytes."""
    run.checkpoints.mkdir(exist_ok=True)
    (run.checkpoints / f"step-{size:08d}.safetensors").write_bytes(b"x" * size)
    return run


@pytest.fixture
def full(new_run: NewRun, home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Two runs, one of them in the trash, a data set, a job, an upload and a database; Keras has
    downloaded nothing.
    """
    filled(new_run("quick-0001"), 70_000)
    ask(home, actor=ASKER).delete(filled(new_run("quick-0002"), 50_000).run_id)
    for name, size in (
        ("data/shapes/train.npy", 30_000),
        ("jobs/generate-0001/out/a.png", 7_000),
        ("jobs/.uploads/a/b", 900),
    ):
        path = home.path / name
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * size)
    home.database.write_bytes(b"x" * 11_000)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    return home


def test_everything_in_a_home_folder_is_counted_once(full: Home) -> None:
    space = DiskUsage(full).space()
    assert space.runs == {"quick-0001": disk.used_bytes(full.runs / "quick-0001")}
    assert 70_000 < space.all_runs < 75_000
    assert (space.data, space.jobs, space.database) == (30_000, 7_900, 11_000)
    assert 50_000 < space.bin < 55_000
    everything = space.all_runs + space.data + space.jobs + space.database + space.bin
    small = sum(path.stat().st_size for path in full.runs.glob(".*") if path.is_file())
    assert everything == pytest.approx(disk.used_bytes(full.path), abs=small)


def test_caches_are_counted_by_their_content(full: Home, tmp_path: Path) -> None:
    empty = DiskUsage(full).space()
    assert (empty.spill, empty.keras_cache) == (0, 0), "neither folder is there"
    for path, size in (
        (full.path / "results.duckdb.tmp" / "duckdb_temp_storage-0.tmp", 8_000),
        (full.path / "results.duckdb.wal", 500),
        (tmp_path / "keras" / "datasets" / "mnist.npz", 11_000),
        (tmp_path / "keras" / "datasets" / "fashion-mnist" / "train-images-idx3-ubyte.gz", 2_000),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * size)
    space = DiskUsage(full).space()
    assert (space.spill, space.keras_cache, space.database) == (8_000, 13_000, 11_500)


def test_duckdb_spills_into_the_counted_folder(home: Home) -> None:
    store = Store(home.database)
    try:
        [(folder,)] = store.rows("SELECT current_setting('temp_directory')")
    finally:
        store.close()
    assert (
        Path(folder)
        == database_file.spill_folder(home.database)
        == home.path / "results.duckdb.tmp"
    )


def test_a_separate_disk_for_runs_is_measured_too(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert DiskUsage(home).space().runs_disk is None, "there is one disk"
    monkeypatch.setattr(
        disk, "is_other", lambda folder, than: (folder, than) == (home.runs, home.path)
    )
    free = {home.runs: 42_000_000, home.path: 900_000_000_000}
    monkeypatch.setattr(disk, "free_bytes", free.__getitem__)
    space = DiskUsage(home).space()
    assert not space.is_low
    assert space.runs_disk is not None
    assert space.runs_disk.is_low
    assert "42 MB free on the disk of runs" in columns.space_in_words(space)


def test_disks_are_distinguished_by_device(tmp_path: Path) -> None:
    assert not disk.is_other(tmp_path, tmp_path.parent)
    assert not disk.is_other(tmp_path / "missing", tmp_path)
    assert disk.is_other(Path("/proc"), tmp_path)


def test_only_changed_folders_are_measured_again(full: Home) -> None:
    measure = DiskUsage(full)
    before = measure.space()
    walked = measure.walked
    assert measure.space().runs == before.runs
    assert measure.walked == walked, "nothing has changed"
    run = full.run_dir("quick-0001")
    filled(run, 1_000)
    assert measure.space().all_runs == before.all_runs + 1_000
    assert measure.walked == walked + 1
    journal.append(run.supervisor_journal, 1, journal.Renamed(name="longer"))
    assert measure.space().all_runs > before.all_runs + 1_000
    ask_of(run, actor=ASKER).delete(run.run_id)
    assert measure.space().runs == {}


def test_an_empty_home_folder_uses_no_space_and_reports_free_space(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "free_bytes", lambda _: 99_000_000)
    space = DiskUsage(home).space()
    assert (space.all_runs, space.data, space.jobs, space.database) == (0, 0, 0, 0)
    assert space.free == 99_000_000
    assert space.is_low


@pytest.mark.parametrize(
    ("total", "low"), [(10**9, 10**8), (20 * 10**9, 10**9), (10**12, 5 * 10**9)]
)
def test_low_space_limit_is_a_twentieth_of_the_disk_within_bounds(
    home: Home, monkeypatch: pytest.MonkeyPatch, total: int, low: int
) -> None:
    monkeypatch.setattr(
        "shutil.disk_usage", lambda _: type("Usage", (), {"total": total, "free": 0})
    )
    assert disk.low_bytes(home.path) == low


def test_view_only_maintenance_measures_but_removes_nothing(full: Home) -> None:
    viewer = Maintenance(full, is_owned=False)
    before = sorted(full.path.rglob("*"))
    viewer.run_round()
    assert viewer.space is not None
    assert sorted(full.path.rglob("*")) == before


def test_disk_usage_is_measured_shortly_after_opening(
    full: Home, monkeypatch: pytest.MonkeyPatch, wait_until: Callable[..., Any]
) -> None:
    monkeypatch.setattr("gan_runtime.supervision.maintenance.FIRST_SECONDS", 0.05)
    housekeeping = Maintenance(full)
    housekeeping.begin()
    try:
        space = wait_until(lambda: housekeeping.space, "the space is measured")
    finally:
        housekeeping.end()
    assert space.runs == DiskUsage(full).space().runs


def test_the_command_line_reports_disk_usage(full: Home) -> None:
    full.database.unlink()

    def call(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--home", str(full.path)])
        assert done.exit_code == 0, done.output
        return done.output

    usage = json.loads(call("space", "--json"))
    assert usage["data"] == 30_000
    assert usage["runs"].keys() == {"quick-0001"}
    assert usage["keras_cache"] == usage["spill"] == 0
    assert usage["runs_disk"] is None
    assert "run quick-0001" in call("space")
    assert "Keras' cache" in call("space")
    [row] = json.loads(call("runs", "--json"))
    assert row["bytes"] == usage["runs"]["quick-0001"]
    assert " 0.1 " in call("runs")
