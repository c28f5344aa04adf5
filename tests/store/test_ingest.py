"""The journal is the source of truth: its rows are stored exactly once despite interruptions, and a
rebuild gives the same rows.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

import pytest

from gan_runtime.records import journal
from gan_runtime.records.earlier_records import Physics, PhysicsCurve, PhysicsScore, PhysicsShower
from gan_runtime.records.home import Home
from gan_runtime.records.journal import (
    Answer,
    AttemptPlan,
    AttemptStart,
    Changed,
    EpochDone,
    Event,
    Histogram,
    HostFacts,
    KernelCounts,
    Marked,
    MemoryUse,
    PhaseSeconds,
    Profile,
    Record,
    Renamed,
    Sample,
    Scalars,
    StatusChange,
    Surface,
    TimeShare,
    WorkerTimes,
)
from gan_runtime.records.run_folder import RunDir, Stamp
from gan_runtime.store import scalar_blocks
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store, Writer
from tests.support import measured_flows
from tests.support.small_pictures import png

NewRun = Callable[..., RunDir]
KERNELS = KernelCounts(operations=900, kernels_before=120, kernels_after=40, fusions=30)
TABLES = (
    "arrivals",
    "changes",
    "created",
    "epochs",
    "evaluation_arrays",
    "evaluation_curves",
    "evaluation_scores",
    "evaluations",
    "events",
    "histograms",
    "hosts",
    "kernels",
    "last_scalars",
    "marks",
    "memory",
    "names",
    "offsets",
    "phases",
    "plans",
    "profiles",
    "samples",
    "scalar_blocks",
    "scalars",
    "statuses",
    "worker_times",
)


@pytest.fixture
def store() -> Store:
    return Store()


def scalars(first_step: int, steps: int, epoch: int = 1) -> Scalars:
    """Scalars of one call; step n ends after n seconds with loss n/10."""
    numbers = range(first_step, first_step + steps)
    losses = [number / 10 for number in numbers]
    return Scalars(
        epoch=epoch,
        first_step=first_step,
        wall_s=[float(number) for number in numbers],
        values={"loss_generator": losses},
    )


def profile(step: int) -> Profile:
    """A profile of the two steps up to `step`."""
    shares = [("generator", "backward", 0.15, 0.75), ("", "idle", 0.05, 0.25)]
    keys = ("network", "category", "seconds", "share")
    return Profile(
        step=step,
        steps=2,
        seconds=0.2,
        shares=[TimeShare(**dict(zip(keys, row, strict=True))) for row in shares],
    )


def epoch_end(epoch: int, step: int) -> Iterable[Record]:
    yield EpochDone(epoch=epoch, step=step, seconds=2.0, images=64, images_per_s=32.0)
    yield Histogram(
        epoch=epoch, step=step, name="score/real", bin_left=[0.0, 0.5], bin_right=1.0, count=[3, 5]
    )
    file = f"samples/epoch-{epoch:05d}.png"
    yield Sample(epoch=epoch, step=step, sample_kind="fixed_latents", file=file, meta={"seed": 1})
    yield MemoryUse(
        epoch=epoch,
        step=step,
        process_bytes=2,
        process_peak_bytes=3,
        device_bytes=None if epoch == 1 else 4,
        device_peak_bytes=5,
    )
    yield PhaseSeconds(phase="probe", seconds=0.25)


@pytest.fixture(autouse=True)
def every_run_has_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scalar_blocks, "LONG", 0)


def write_everything(run: RunDir) -> None:
    """Writes records of every kind: a run torn by a crash at step 6 and resumed from step 4."""
    run.samples.mkdir()
    for epoch in (1, 2):
        (run.samples / f"epoch-{epoch:05d}.png").write_bytes(png(8 * epoch))
    path = run.trainer_journal()
    host = HostFacts(facts={"cores": 8})
    plan = AttemptPlan(images=128, steps_per_epoch=4, epochs=2)
    started = StatusChange(status="running", reason="training")
    journal.append(
        path,
        1,
        host,
        AttemptStart(resume_step=0),
        plan,
        KERNELS,
        started,
        scalars(1, 4),
        profile(4),
        *epoch_end(1, 4),
    )
    journal.append(
        path, 1, scalars(5, 2, epoch=2), profile(6), worker_times(0, 4), worker_times(0, 6)
    )
    with path.open("ab") as file:
        file.write(b'{"attempt":1,"at":"2026-01-01T12:00:07Z","kind":"scal')
    journal.append(
        run.supervisor_journal,
        1,
        StatusChange(status="lost", reason="gone"),
        Renamed(name="Seven"),
        Marked(tags=["a"], pinned=True),
    )
    journal.append(
        run.supervisor_journal, 2, Changed(spec={**run.spec().model_dump(), "clip_norm": 1.0})
    )
    journal.append(
        path,
        2,
        AttemptStart(resume_step=4),
        plan,
        Event(level="info", topic="resume", message="Resumed."),
    )
    journal.append(path, 2, scalars(5, 4, epoch=2), *epoch_end(2, 8), worker_times(0, 8))
    journal.append(path, 2, StatusChange(status="finished", reason="done"))
    journal.append(run.earlier_journal("surface"), 1, surface([0, 1, 2]))
    journal.append(run.earlier_journal("physics"), 1, physics())
    journal.append(run.evaluations_journal, 1, quality())
    journal.append(run.earlier_journal("flow"), 1, measured_flows.iteration(steps=2))
    journal.append(
        run.trainer_journal(1),
        1,
        AttemptStart(resume_step=0),
        worker_times(1, 4),
        worker_times(1, 6),
    )
    journal.append(run.trainer_journal(1), 2, AttemptStart(resume_step=4), worker_times(1, 8))


def quality() -> Answer:
    """An answer without scores, curves or arrays."""
    return Answer(
        evaluation="quality", key="epoch 1", epoch=1, step=4, checkpoint="best", scores=[]
    )


def physics() -> Physics:
    """One score, one curve and one shower of two cells."""
    numbers = {"real": [1.0], "real_error": [0.5], "generated": [2.0], "generated_error": [0.25]}
    return Physics(
        epoch=1,
        step=4,
        checkpoint="best",
        showers=100,
        grid=(2, 1, 3),
        scores=[PhysicsScore(name="fpd", value=12.5, floor=3.0)],
        curves=[PhysicsCurve(name="hits", energy=(10.0, 20.0), x=[1.0], **numbers)],
        pictures=[
            PhysicsShower(
                pair=0,
                side="real",
                energy_gev=50.0,
                angle=None,
                cells=[0, 5],
                mev=[1.0, 2.0],
                share=1.0,
            )
        ],
    )


def surface(epochs: list[int]) -> Surface:
    """A surface of two by two points and a path on its diagonal."""
    places = [float(epoch) for epoch in epochs]
    grid, path = (
        {"x": [0.0, 2.0], "y": [0.0, 1.0]},
        {"path_epoch": epochs, "path_x": places, "path_y": places, "path_loss": places},
    )
    return Surface(
        network="generator",
        **grid,
        loss=[1.0, 2.0, 3.0, 4.0],
        **path,
        share_x=0.75,
        share_y=0.125,
        images=256,
    )


def worker_times(rank: int, step: int) -> WorkerTimes:
    return WorkerTimes(
        rank=rank, epoch=1, first_step=step, steps=1, step_s=0.4, compute_s=0.1, wait_s=0.3
    )


def content(store: Store) -> dict[str, list[str]]:
    """All rows of each table, sorted."""
    return {
        table: sorted(map(repr, store.rows(f"SELECT * FROM ingest.{table}"))) for table in TABLES
    }


def steps(store: Store) -> list[tuple[Any, ...]]:
    return store.rows("SELECT attempt, step, value FROM scalars ORDER BY step, attempt")


def test_every_table_is_checked_here(store: Store) -> None:
    """Tables of runs; test_job_rows.py checks the table of jobs."""
    names = store.rows(
        "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'ingest' ORDER BY table_name"
    )
    assert [name for (name,) in names] == sorted([*TABLES, "jobs", "set_aside", "version"])


def test_every_record_kind_is_stored_in_its_table(
    home: Home, store: Store, new_run: NewRun
) -> None:
    write_everything(new_run("quick-0001"))
    Ingestor(home, store).catch_up()
    rollout = measured_flows.iteration(steps=2)
    assert {table: len(rows) for table, rows in content(store).items()} == {
        "arrivals": 2,
        "changes": 1,
        "created": 1,
        "epochs": 2,
        "evaluation_arrays": 1,  # a shower
        # hits; by step and stages; grid and path of a surface
        "evaluation_curves": 1 + len(rollout.by_step) + 1 + 2,
        "evaluation_scores": 1 + len(rollout.scores),
        "evaluations": 4,
        "events": 2,
        "histograms": 2,
        "hosts": 1,
        "kernels": 1,
        "last_scalars": 1,
        "marks": 1,
        "memory": 2,
        "names": 1,
        "offsets": 7,
        "phases": 2,
        "plans": 2,
        "profiles": 2,  # those of step 6 are void
        "samples": 2,
        "scalar_blocks": 2,  # one metric in two attempts
        "scalars": 8,
        "statuses": 4,
        "worker_times": 4,
    }
    assert store.rows("SELECT spec->>'clip_norm', spec->>'epochs' FROM runs") == [("1.0", "30")]
    assert store.rows("SELECT * FROM kernels") == [("quick-0001", 1, 900, 120, 40, 30)]
    assert store.rows("SELECT network, x, loss, path_y, share_x, images FROM surfaces") == [
        ("generator", [0.0, 2.0], [1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0], 0.75, 256)
    ]
    assert store.rows("SELECT score, value, floor, isnan(error), grid FROM physics") == [
        ("fpd", 12.5, 3.0, True, [2, 1, 3])
    ]
    assert store.rows("SELECT curve, energy_high, angle_low, generated FROM physics_curves") == [
        ("hits", 20.0, None, [2.0])
    ]
    assert store.rows("SELECT side, cells, mev FROM physics_showers") == [
        ("real", [0, 5], [1.0, 2.0])
    ]
    assert store.rows("SELECT iteration, way, cores, tile, reynolds, steps FROM flow") == [
        ("iterate-0001", "map_reduce", 2, [16, 16], 110.0, 2)
    ]
    assert store.rows(
        "SELECT step, value, persistence, truth FROM flow_steps WHERE score = 'probe' ORDER BY 1"
    ) == [
        (0, 0.0, None, 0.0),
        (1, 0.5, None, 0.25),
        (2, 1.0, None, 0.5),
    ]
    assert store.rows(
        "SELECT stage, times FROM flow_stages WHERE number IN (2, 4) ORDER BY number"
    ) == [
        ("trace", 1),
        ("execute", 2),
    ]
    assert store.rows("SELECT rank, step, attempt FROM worker_times ORDER BY ALL") == [
        (0, 4, 1),
        (0, 8, 2),
        (1, 4, 1),
        (1, 8, 2),
    ]
    assert store.rows("SELECT png, meta FROM samples WHERE epoch = 2") == [(png(16), '{"seed": 1}')]
    assert store.rows(
        "SELECT step, steps, network, category, seconds, share FROM profiles ORDER BY share"
    ) == [
        (4, 2, "", "idle", 0.05, 0.25),
        (4, 2, "generator", "backward", 0.15, 0.75),
    ]
    assert store.rows(
        "SELECT epoch, process_bytes, process_peak_bytes, device_bytes, device_peak_bytes FROM"
        " memory"
    ) == [
        (1, 2, 3, None, 5),
        (2, 2, 3, 4, 5),
    ]
    assert store.rows("SELECT bin_left, bin_right, count FROM ingest.histograms LIMIT 1") == [
        ([0.0, 0.5], 1.0, [3, 5])
    ]


def test_rows_are_stored_once_however_often_journals_are_read(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    ingestor = Ingestor(home, store)
    journal.append(run.trainer_journal(), 1, scalars(1, 2))
    assert [ingestor.catch_up(), ingestor.catch_up()] == [3, 0]
    journal.append(run.trainer_journal(), 1, scalars(3, 1))
    assert [ingestor.catch_up(), ingestor.catch_up()] == [1, 0]
    assert steps(store) == [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3)]


def test_new_ingestor_continues_where_the_last_one_stopped(home: Home, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, scalars(1, 2))
    store = Store(home.database)
    Ingestor(home, store).catch_up()
    store.close()
    journal.append(run.trainer_journal(), 1, scalars(3, 1))
    store = Store(home.database)
    assert Ingestor(home, store).catch_up() == 1
    assert steps(store) == [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3)]
    store.close()


def test_a_crash_between_rows_and_offset_leaves_nothing(
    home: Home, store: Store, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = new_run("quick-0001")
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    before = content(store)
    journal.append(run.trainer_journal(), 1, scalars(1, 2))

    def crash(writer: Writer, table: str, rows: Any) -> None:
        if table == "offsets":
            raise KeyboardInterrupt
        append(writer, table, rows)

    append = Writer.append
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", crash)
        with pytest.raises(KeyboardInterrupt):
            ingestor.catch_up()
    assert content(store) == before
    ingestor.catch_up()
    assert steps(store) == [(1, 1, 0.1), (1, 2, 0.2)]


def test_half_written_line_is_stored_once_complete(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    ingestor = Ingestor(home, store)
    journal.append(run.trainer_journal(), 1, scalars(1, 2))
    whole = run.trainer_journal().read_bytes()
    run.trainer_journal().write_bytes(whole[:-20])
    ingestor.catch_up()
    assert steps(store) == []
    run.trainer_journal().write_bytes(whole)
    assert ingestor.catch_up() == 1
    assert steps(store) == [(1, 1, 0.1), (1, 2, 0.2)]


def test_second_attempt_voids_rows_beyond_its_resume_step(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    ingestor = Ingestor(home, store)
    journal.append(
        run.trainer_journal(),
        1,
        AttemptStart(resume_step=0),
        scalars(1, 4),
        *epoch_end(1, 4),
        scalars(5, 4),
        *epoch_end(2, 8),
    )
    ingestor.catch_up()
    assert [step for _, step, _ in steps(store)] == [1, 2, 3, 4, 5, 6, 7, 8]
    journal.append(run.trainer_journal(), 2, AttemptStart(resume_step=4), scalars(5, 1, epoch=2))
    ingestor.catch_up()
    assert steps(store) == [(1, 1, 0.1), (1, 2, 0.2), (1, 3, 0.3), (1, 4, 0.4), (2, 5, 0.5)]
    for view in ("epochs", "histograms", "samples"):
        assert store.rows(f"SELECT epoch, step FROM {view}") == [(1, 4)]


def test_an_attempt_leaves_the_rows_of_other_runs_alone(
    home: Home, store: Store, new_run: NewRun
) -> None:
    first, second = new_run("quick-0001"), new_run("quick-0002")
    journal.append(first.trainer_journal(), 1, scalars(1, 4))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    journal.append(second.trainer_journal(), 1, AttemptStart(resume_step=0), scalars(1, 1))
    ingestor.catch_up()
    assert store.rows("SELECT run_id, count(*) FROM scalars GROUP BY run_id ORDER BY run_id") == [
        ("quick-0001", 4),
        ("quick-0002", 1),
    ]


def test_a_rebuild_gives_the_same_rows(home: Home, store: Store, new_run: NewRun) -> None:
    """One store ingests the run line by line, torn line included; the other reads the finished
    journals at once.
    """
    run, watched = new_run("quick-0001"), Ingestor(home, store)
    other = RunDir(home.path / "written-aside")
    shutil.copytree(run.path, other.path)
    write_everything(other)
    shutil.copytree(other.samples, run.samples)
    for name in (other.supervisor_journal.name, other.trainer_journal().name):
        (run.path / name).write_bytes(b"")
        for line in (other.path / name).read_bytes().splitlines(keepends=True):
            with (run.path / name).open("ab") as file:
                file.write(line)
            watched.catch_up()
    rebuilt = Store()
    Ingestor(home, rebuilt).catch_up()
    assert content(rebuilt) == content(store)
    assert len(content(store)["scalars"]) == 8


def test_a_torn_line_is_reported_with_the_time_it_was_written(
    home: Home, store: Store, new_run: NewRun, at: Callable[[float], datetime]
) -> None:
    write_everything(new_run("quick-0001"))
    Ingestor(home, store).catch_up()
    events = store.rows("SELECT logged_at, level, message FROM events WHERE kind = 'journal'")
    assert events == [
        (at(7), "warning", "A line of journal-0.jsonl cannot be read and was skipped.")
    ]


def test_a_torn_line_without_a_time_is_dated_by_the_submission(
    home: Home, store: Store, new_run: NewRun, at: Callable[[float], datetime]
) -> None:
    new_run("quick-0001", seconds=5).trainer_journal().write_bytes(b"{\n")
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT logged_at FROM events WHERE kind = 'journal'") == [(at(5),)]


def test_missing_image_does_not_stop_the_rest(home: Home, store: Store, new_run: NewRun) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, *epoch_end(1, 4), scalars(5, 1))
    Ingestor(home, store).catch_up()
    assert store.rows("SELECT png FROM samples") == [(None,)]
    assert len(steps(store)) == 1


def test_deleting_a_run_folder_deletes_its_rows(home: Home, store: Store, new_run: NewRun) -> None:
    run, remaining = new_run("quick-0001"), new_run("quick-0002")
    write_everything(run)
    write_everything(remaining)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    shutil.rmtree(run.path)
    assert [ingestor.catch_up(), ingestor.catch_up()] == [1, 0]
    for table in TABLES:
        assert {run_id for (run_id,) in store.rows(f"SELECT run_id FROM ingest.{table}")} == {
            "quick-0002"
        }, table


def test_run_recreated_under_an_old_number_starts_empty(
    home: Home, store: Store, new_run: NewRun
) -> None:
    write_everything(new_run("quick-0001"))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    shutil.rmtree(home.runs / "quick-0001")
    ingestor.catch_up()
    journal.append(new_run("quick-0001").trainer_journal(), 1, scalars(1, 1))
    ingestor.catch_up()
    assert steps(store) == [(1, 1, 0.1)]


def rows_of_a_rebuild(home: Home) -> dict[str, list[str]]:
    rebuilt = Store()
    Ingestor(home, rebuilt).catch_up()
    return content(rebuilt)


@pytest.mark.parametrize("steps_of_the_new_run", [0, 1, 100])
def test_run_recreated_between_two_rounds_starts_empty(
    home: Home, store: Store, new_run: NewRun, steps_of_the_new_run: int
) -> None:
    """Its trainer journal may be shorter or longer than the old one; its supervisor journal has the
    same length.
    """
    old = new_run("quick-0001")
    journal.append(old.trainer_journal(), 1, scalars(1, 4))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    length = old.supervisor_journal.stat().st_size
    shutil.rmtree(old.path)
    new = new_run("quick-0001", seconds=5)
    assert new.supervisor_journal.stat().st_size == length
    journal.append(new.trainer_journal(), 1, scalars(1, steps_of_the_new_run))
    os.utime(
        new.supervisor_journal, (5.0, 5.0)
    )  # file system clocks tick in milliseconds, this test is faster
    ingestor.catch_up()
    assert len(steps(store)) == steps_of_the_new_run
    assert content(store) == rows_of_a_rebuild(home)
    assert ingestor.catch_up() == 0


def test_run_recreated_without_an_owner_starts_empty(
    home: Home, store: Store, new_run: NewRun
) -> None:
    journal.append(new_run("quick-0001").trainer_journal(), 1, scalars(1, 4))
    Ingestor(home, store).catch_up()
    shutil.rmtree(home.runs / "quick-0001")
    journal.append(new_run("quick-0001", seconds=5).trainer_journal(), 1, scalars(1, 100))
    Ingestor(home, store).catch_up()
    assert content(store) == rows_of_a_rebuild(home)


def test_run_restored_from_an_older_copy_is_read_again(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, scalars(1, 4))
    shutil.copytree(run.path, home.path / "copy")
    journal.append(run.trainer_journal(), 1, scalars(5, 4))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    shutil.rmtree(run.path)
    shutil.copytree(home.path / "copy", run.path)
    ingestor.catch_up()
    assert [step for _, step, _ in steps(store)] == [1, 2, 3, 4]
    assert content(store) == rows_of_a_rebuild(home)


def test_manually_removed_journal_takes_its_rows_with_it(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    journal.append(run.trainer_journal(), 1, scalars(1, 4))
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    run.trainer_journal().unlink()
    assert ingestor.catch_up() > 0
    assert content(store) == rows_of_a_rebuild(home)


class Vanishing(RunDir):
    """A run that another process deletes right after its journals are listed."""

    def journal_stats(self) -> dict[str, Stamp]:
        stats = super().journal_stats()
        shutil.rmtree(self.path)
        return stats


def test_folder_that_vanishes_during_a_read_is_left_to_the_next_round(
    home: Home, store: Store, new_run: NewRun
) -> None:
    run = new_run("quick-0001")
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    journal.append(run.trainer_journal(), 1, scalars(1, 4))
    assert ingestor.catch_up_run(Vanishing(run.path)) == 0
    ingestor.catch_up()
    assert content(store)["created"] == []
