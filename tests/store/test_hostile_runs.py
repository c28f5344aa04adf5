"""One bad run folder never takes the home down: bad lines are skipped, unreadable runs are
quarantined by name, all others continue.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gan_runtime.base.errors import RunStateError, UnknownRunError
from gan_runtime.commands.runtime import Runtime
from gan_runtime.records import journal, run_files
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Sample, StatusChange
from gan_runtime.records.record import Origin
from gan_runtime.records.run_folder import RunDir, latest_status
from gan_runtime.spec import RunSpec
from gan_runtime.store import ingest, ingest_batch, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from gan_runtime.supervision.store_recovery import rebuild
from tests.support.asking import ask_of
from tests.support.measured_flows import iteration
from tests.support.small_pictures import png

NewRun = Callable[..., RunDir]
SUBMITTED = {
    "kind": "created",
    "attempt": 1,
    "at": "2026-01-01T12:00:00Z",
    "accelerator": "cpu",
    "color": 0,
    "preset": "quick",
}
STUDY = {
    "study_id": "study-0001",
    "question": "q",
    "title": "t",
    "variant": "v",
    "variant_index": 0,
    "repeat": 1,
}
OPTIONS = RunSpec().model_dump()
DONE = {"kind": "status", "status": "finished", "reason": "done"}
HUGE = 2**40
MANY_BINS = 600_000  # 10 MB in the tables
HUGE_HISTOGRAM = journal.Histogram(
    epoch=1, step=1, name="w", bin_left=[0.0] * MANY_BINS, bin_right=1.0, count=[0] * MANY_BINS
)


def created(**changes: Any) -> dict[str, Any]:
    return {**SUBMITTED, "spec": OPTIONS, **changes}


def with_option(**changes: Any) -> dict[str, Any]:
    return created(spec={**OPTIONS, **changes})


def write(path: Path, *records: dict[str, Any] | str) -> None:
    """Writes lines without validation."""
    path.parent.mkdir(exist_ok=True)
    lines = [
        (
            record
            if isinstance(record, str)
            else json.dumps({"attempt": 1, "at": "2026-01-01T12:00:00Z", **record})
        )
        for record in records
    ]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)


@pytest.fixture
def good(new_run: NewRun) -> RunDir:
    """A valid run among the bad ones."""
    return new_run("quick-0001")


def run_ids(store: Store) -> list[str]:
    return [row.run_id for row in queries.runs(store)]


# ---- unreadable runs -----------------------------------------------------------------------------


BAD_SUBMISSIONS: list[tuple[dict[str, Any] | str, str]] = [
    (with_option(replicas="x"), "replicas is not a whole number from 1 to 1024"),
    (with_option(replicas=[1]), "replicas is not a whole number"),
    (with_option(replicas=HUGE), "replicas is not a whole number"),
    (with_option(epochs=0), "epochs is not a whole number"),
    (with_option(seed=1.5), "seed is not a whole number"),
    (with_option(batch_size_global=True), "batch_size_global is not a whole number"),
    (with_option(learning_rate_generator={"a": 1}), "learning_rate_generator is not"),
    (with_option(workload=7), "workload is not"),
    ({**SUBMITTED, "spec": {}}, "workload is missing"),
    ({**SUBMITTED, "spec": []}, "spec"),
    (created(color=HUGE), "color"),
    (created(color=-1), "color"),
    (created(accelerator="abacus"), "accelerator"),
    (created(at="0001-01-01T00:00:00Z"), "at: the year must be from 1970 to 2199"),
    (created(study={**STUDY, "repeat": "x"}), "study.repeat"),
    (created(study={**STUDY, "variant_index": HUGE}), "study.variant_index"),
    (json.dumps(created())[:100], ""),
    ("[1, 2, 3]", ""),
    ('{"kind": "status", "status": "finished", "reason": "done"}', "must be the submission"),
    ("\ufffd" * 100, ""),
]


def test_each_bad_submission_quarantines_its_run_and_others_continue(
    home: Home, good: RunDir
) -> None:
    expected = {f"quick-{number:04d}": case for number, case in enumerate(BAD_SUBMISSIONS, start=2)}
    for run_id, (submission, _) in expected.items():
        write(RunDir(home.runs / run_id).supervisor_journal, submission, DONE)
    store = Store()
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    assert run_ids(store) == [good.run_id]
    reasons = queries.set_aside(store)
    assert reasons.keys() == expected.keys()
    for run_id, (_, what) in expected.items():
        reason = reasons[run_id]
        assert reason.startswith(
            "the first line of journal-supervisor.jsonl must be the submission"
        )
        assert what in reason
    assert ingestor.catch_up() == 0
    with pytest.raises(
        UnknownRunError, match=r"^run quick-0002 cannot be read: the first line of "
    ):
        queries.run(store, "quick-0002")


def test_quarantined_run_returns_when_readable_and_is_dropped_when_deleted(
    home: Home, good: RunDir
) -> None:
    bad, store = RunDir(home.runs / "quick-0002"), Store()
    ingestor = Ingestor(home, store)
    write(bad.supervisor_journal, with_option(replicas="x"))
    ingestor.catch_up()
    assert list(queries.set_aside(store)) == [bad.run_id]
    bad.supervisor_journal.unlink()
    write(
        bad.supervisor_journal,
        created(),
        {"kind": "status", "status": "finished", "reason": "done"},
    )
    assert ingestor.catch_up() == 3
    assert (queries.set_aside(store), sorted(run_ids(store))) == ({}, [good.run_id, bad.run_id])
    write(bad.trainer_journal(), {"kind": "phase", "phase": "build", "seconds": 1.0})
    bad.supervisor_journal.unlink()
    ingestor.catch_up()
    assert queries.set_aside(store) == {bad.run_id: "journal-supervisor.jsonl is missing"}
    assert store.rows("SELECT count(*) FROM phases") == [(0,)]
    bad.trainer_journal().unlink()
    bad.path.rmdir()
    ingestor.catch_up()
    assert queries.set_aside(store) == {}


def test_run_without_a_state_is_quarantined_and_cannot_be_stopped(home: Home) -> None:
    bad = RunDir(home.runs / "quick-0002")
    write(bad.supervisor_journal, created())
    assert queries.set_aside(ingest.store_of(home)) == {bad.run_id: "its journals contain no state"}
    with pytest.raises(
        RunStateError,
        match="run quick-0002 cannot be read, as its journals contain no state",
    ):
        ask_of(bad).stop(bad.run_id)


def test_folders_with_invalid_run_names_are_reported(home: Home, good: RunDir) -> None:
    Path(os.fsdecode(os.fsencode(home.runs) + b"/quick-\xff\xfe")).mkdir()
    for name in ("two words", "ü-0001", "-0001", ".hidden", "x" * 101):
        (home.runs / name).mkdir()
    (home.runs / "a file").write_text("nothing")
    store = ingest.store_of(home)
    assert run_ids(store) == [good.run_id]
    reason = "its folder has a name that no run can have"
    assert queries.set_aside(store) == dict.fromkeys(
        ["quick-\\xff\\xfe", "two words", "ü-0001", "-0001", "x" * 101], reason
    )


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda run: run.trainer_journal().mkdir(), "journal-0.jsonl is not a regular file"),
        (lambda run: os.mkfifo(run.trainer_journal()), "journal-0.jsonl is not a regular file"),
        (
            lambda run: run.trainer_journal().symlink_to("/dev/zero"),
            "journal-0.jsonl is not a regular file",
        ),
    ],
)
def test_journal_that_is_not_a_regular_file_quarantines_its_run(
    home: Home, good: RunDir, new_run: NewRun, spoil: Callable[[RunDir], None], reason: str
) -> None:
    spoil(new_run("quick-0002", seconds=1))
    store = ingest.store_of(home)
    assert (run_ids(store), queries.set_aside(store)) == ([good.run_id], {"quick-0002": reason})


def test_unexpected_error_in_one_run_quarantines_only_that_run(
    home: Home, good: RunDir, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that record validation missed: the tables refuse the row, or reading it fails."""
    bad, worse = new_run("quick-0002", seconds=1), new_run("quick-0003", seconds=2)

    def spoiled(record: journal.Record, origin: Origin) -> Any:
        if origin.run_id == worse.run_id:
            raise KeyError("nobody thought of this")
        rows = original(record, origin)
        return (
            rows if origin.run_id == good.run_id else [(*row[:1], HUGE, *row[2:]) for row in rows]
        )

    store = Store()
    statuses = store.tables.by_name["statuses"]
    original = statuses.rows
    monkeypatch.setattr(statuses, "rows", spoiled)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    assert run_ids(store) == [good.run_id]
    reasons = queries.set_aside(store)
    assert reasons[bad.run_id].startswith("it cannot be stored (ConversionException: ")
    assert reasons[worse.run_id] == "it cannot be stored (KeyError: 'nobody thought of this')"
    assert ingestor.catch_up() == 0


def limit_memory(store: Store, most: str) -> None:
    with store.transaction() as writer:
        writer.execute(f"SET GLOBAL memory_limit = '{most}'")


def test_run_that_needs_too_much_memory_does_not_block_others(
    home: Home, good: RunDir, new_run: NewRun
) -> None:
    """With a real database file and little memory, the error names the run and a remedy, and the
    run is read again once there is more memory.
    """
    store, large = Store(home.database), new_run("quick-0000", seconds=1)
    limit_memory(store, "10MB")
    journal.append(large.trainer_journal(), 1, HUGE_HISTOGRAM)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    assert run_ids(store) == [good.run_id]
    [(name, reason)] = queries.set_aside(store).items()
    assert name == large.run_id
    assert reason.startswith("it cannot be stored (OutOfMemoryException: ")
    assert reason.endswith(
        "), and the next try is within a minute: free some memory, or delete the run"
    )
    later = new_run("quick-0002", seconds=2)
    ingestor.catch_up()
    assert sorted(run_ids(store)) == [good.run_id, later.run_id]
    limit_memory(store, "1GB")
    ingestor.catch_up()
    assert sorted(run_ids(store)) == [large.run_id, good.run_id, later.run_id]
    assert queries.set_aside(store) == {}
    store.close()


def test_run_quarantined_halfway_through_its_journals_leaves_no_rows(
    home: Home, good: RunDir, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "BATCH_ROWS", 2)
    store, large = Store(home.database), new_run("quick-0000", seconds=1)
    limit_memory(store, "10MB")
    later = [journal.Event(level="info", topic="t", message="later")] * 6
    journal.append(large.trainer_journal(), 1, HUGE_HISTOGRAM, *later)
    ingestor = Ingestor(home, store)
    ingestor.catch_up()
    assert run_ids(store) == [good.run_id]
    assert list(queries.set_aside(store)) == [large.run_id]
    limit_memory(store, "1GB")
    ingestor.catch_up()
    assert (
        list(queries.events(store, large.run_id).query("kind == 't'")["message"]) == ["later"] * 6
    )
    assert store.rows("SELECT count(*) FROM ingest.histograms") == [(1,)]
    store.close()


def test_owner_and_rebuild_continue_despite_bad_runs(home: Home, good: RunDir) -> None:
    journal.append(good.supervisor_journal, 1, StatusChange(status="finished", reason="done"))
    write(RunDir(home.runs / "quick-0002").supervisor_journal, with_option(replicas="x"))
    runtime = Runtime.open(home)
    try:
        assert (runtime.trouble, run_ids(runtime.store)) == ("", [good.run_id])
        assert list(queries.set_aside(runtime.store)) == ["quick-0002"]
    finally:
        runtime.close()
    assert rebuild(home).rows["runs"] == 1


def test_owner_that_cannot_store_reports_it_and_logs_it_once(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk stays full for hours; four tracebacks a second would fill it further."""

    def refuse(_: Ingestor, **_of: bool) -> int:
        raise OSError("No space left on device")

    runtime = Runtime.open(home)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Ingestor, "catch_up_news", refuse)
            for _ in range(5):
                runtime.refresh()
            assert runtime.trouble == "OSError: No space left on device"
        assert [record.message for record in caplog.records] == [
            "the owner could not act: OSError: No space left on device"
        ]
        runtime.refresh()
        assert runtime.trouble == ""
    finally:
        runtime.close()


# ---- skipped lines -------------------------------------------------------------------------------

CALL = {
    "kind": "scalars",
    "epoch": 1,
    "first_step": 1,
    "wall_s": [1.0, 2.0],
    "values": {"loss_generator": [1.0, 2.0]},
}
BINS = {
    "kind": "histogram",
    "epoch": 1,
    "step": 4,
    "name": "score/real",
    "bin_left": [0.0, 0.5],
    "bin_right": 1.0,
    "count": [1, 2],
}
EPOCH = {"kind": "epoch", "epoch": 1, "step": 4, "seconds": 1.0, "images": 8, "images_per_s": 8.0}
PICTURE = {
    "kind": "sample",
    "epoch": 1,
    "step": 4,
    "sample_kind": "fixed_latents",
    "file": "samples/epoch-00001.png",
    "meta": {},
}
MEMORY = {
    **{"kind": "memory", "epoch": 1, "step": 4, "process_bytes": 1, "process_peak_bytes": 1},
    **{"device_bytes": None, "device_peak_bytes": None},
}
SURFACE = {
    **{
        "kind": "surface",
        "network": "generator",
        "x": [0.0],
        "y": [0.0],
        "loss": [1.0],
        "path_epoch": [0],
        "path_x": [0.0],
    },
    **{"path_y": [0.0], "path_loss": [1.0], "share_x": 1.0, "share_y": 0.0, "images": 1},
}
ANSWER = {
    **{"kind": "answer", "evaluation": "quality", "key": "epoch 1", "epoch": 1, "step": 1},
    **{"checkpoint": "best", "scores": []},
}
CURVE: dict[str, Any] = {"name": "stages", "x": [], "series": []}
IDLE = {"network": "", "category": "idle", "seconds": 1, "share": 1}
TIMES = {
    **{"kind": "worker_times", "rank": 0, "epoch": 1, "first_step": 1, "steps": 1},
    **{"step_s": 1, "compute_s": 1, "wait_s": 0},
}


INVALID_LINES: list[dict[str, Any] | str] = [
    *({**CALL, name: HUGE**2} for name in ("epoch", "first_step", "attempt")),
    *({**CALL, name: -1} for name in ("epoch", "first_step", "attempt")),
    {**CALL, "wall_s": [1.0]},
    {**CALL, "values": {"loss_generator": [1.0]}},
    {**CALL, "values": {"x" * 201: [1.0, 2.0]}},
    {**CALL, "at": "9999-12-31T23:59:59Z"},
    {**CALL, "at": "0001-01-01T00:00:00+14:00"},
    *(
        {**EPOCH, name: value}
        for name, value in (
            ("images", HUGE**2),
            ("epoch", -1),
            ("step", "x"),
            ("seconds", None),
        )
    ),
    *(
        {**BINS, name: value}
        for name, value in (
            ("count", [1]),
            ("count", [1, -1]),
            ("count", [1, HUGE**2]),
            ("name", 7),
        )
    ),
    *(
        {**PICTURE, name: value}
        for name, value in (
            *(("file", None), ("meta", []), ("sample_kind", {}), ("step", HUGE**2)),
            *(("sample_kind", kind) for kind in ("", "../../x", "a/b", "A", "x" * 41, "samples\n")),
        )
    ),
    *({**MEMORY, name: value} for name, value in (("process_bytes", 2**70), ("device_bytes", -1))),
    *(
        {**SURFACE, name: value}
        for name, value in (
            ("loss", []),
            ("path_x", []),
            ("images", -1),
            ("path_epoch", [HUGE**2]),
        )
    ),
    *({**TIMES, name: value} for name, value in (("rank", HUGE), ("steps", HUGE), ("rank", -1))),
    {"kind": "plan", "images": -1, "steps_per_epoch": 1, "epochs": 1},
    {"kind": "attempt", "resume_step": -1},
    {
        "kind": "kernels",
        "operations": HUGE**2,
        "kernels_before": None,
        "kernels_after": None,
        "fusions": None,
    },
    {"kind": "profile", "step": 1, "steps": 1, "seconds": 1, "shares": [1]},
    {
        "kind": "profile",
        "step": 1,
        "steps": 0,
        "seconds": 1,
        "shares": [IDLE],
    },  # pages divide by these
    iteration().model_dump_json().replace('"solver_steps":24', '"solver_steps":0'),
    {"kind": "status", "status": "asleep", "reason": ""},
    {"kind": "status", "status": "finished", "reason": "", "attempt": HUGE},
    {"kind": "host", "facts": []},
    *({**ANSWER, "facts": {name: []}} for name in ("protocol", "features", "accuracy")),
    {**ANSWER, "evaluation": "rollout", "facts": {"cores": "two"}},
    {**ANSWER, "evaluation": "rollout", "curves": [{**CURVE, "facts": {"names": [7]}}]},
    {**ANSWER, "evaluation": "physics", "facts": {"grid": [3, 3]}},
    {**ANSWER, "evaluation": "physics", "curves": [{**CURVE, "facts": {"energy": 1.0}}]},
    {**ANSWER, "evaluation": "physics", "arrays": [{"name": "real", "facts": {"pair": {}}}]},
    {"kind": "hologram"},
    '{"kind": "host", "facts": ' + '{"a": ' * 300 + "1" + "}" * 301,
    '{"kind": "event", "level": "info", "topic": "\\ud800", "message": ""}',
    '{"kind": "event", "level": "info", "topic": "a", "message": ' + "9" * 5_000 + "}",
    "\0\0\0\0",
]


def test_each_invalid_line_is_skipped_with_an_event(home: Home, new_run: NewRun) -> None:
    lines = {f"quick-{number:04d}": line for number, line in enumerate(INVALID_LINES)}
    for run_id, line in lines.items():
        run = new_run(run_id)
        write(run.trainer_journal(), line, {"kind": "phase", "phase": "build", "seconds": 1.5})
    store = ingest.store_of(home)
    assert set(run_ids(store)) == lines.keys()
    assert dict(store.rows("SELECT run_id, seconds FROM phases")) == dict.fromkeys(lines, 1.5)
    events = store.rows("SELECT run_id, level, message FROM events WHERE kind = 'journal'")
    assert sorted((run_id, level, message[:26]) for run_id, level, message in events) == [
        (run_id, "warning", "A line of journal-0.jsonl ") for run_id in lines
    ]
    assert len(queries.run_table(store)) == len(lines)


def test_facts_of_a_host_with_another_type_are_dropped(home: Home, good: RunDir) -> None:
    facts = {"cores": "٣", "cpu_model": ["x"], "devices": 3, "memory_bytes": {}, "python": "3.11"}
    write(good.trainer_journal(), {"kind": "host", "facts": facts})
    store = ingest.store_of(home)
    assert store.rows("SELECT facts FROM ingest.hosts") == [('{"python": "3.11"}',)]
    [measured] = queries.conditions(store, [good.run_id])
    assert (measured.cpu_model, measured.cores) == ("", None)


@pytest.mark.parametrize("line", [CALL, BINS, EPOCH, MEMORY, {"kind": "attempt", "resume_step": 0}])
def test_trainer_records_are_skipped_in_other_journals(
    home: Home, good: RunDir, line: dict[str, Any]
) -> None:
    write(good.supervisor_journal, line)
    store = ingest.store_of(home)
    [(message,)] = store.rows("SELECT message FROM events WHERE kind = 'journal'")
    assert message.startswith("A line of journal-supervisor.jsonl was skipped: only ")
    assert store.rows("SELECT count(*) FROM scalars") == [(0,)]


def test_skipped_line_event_explains_the_problem(home: Home, good: RunDir) -> None:
    write(
        good.trainer_journal(),
        {**CALL, "wall_s": [1.0]},
        {**EPOCH, "images": -1},
        {"kind": "hologram"},
    )
    messages = [
        row[0]
        for row in ingest.store_of(home).rows(
            "SELECT message FROM events WHERE kind = 'journal' ORDER BY ALL"
        )
    ]
    assert messages == [
        (
            "A line of journal-0.jsonl was skipped: images: Input should be greater than or equal"
            " to 0."
        ),
        "A line of journal-0.jsonl was skipped: its lists must have the same length.",
        "A line of journal-0.jsonl was skipped: this version does not know its kind.",
    ]


def test_unrelated_file_content_creates_few_events(home: Home, good: RunDir) -> None:
    write(good.trainer_journal(), *["what is this?"] * 1_000)
    assert ingest.store_of(home).rows("SELECT count(*) FROM events WHERE kind = 'journal'") == [
        (20,)
    ]


@pytest.mark.parametrize("line", ["what is this?", "", "[]", '{"kind": "status"}'])
def test_journal_with_too_many_invalid_lines_is_quarantined_until_changed(
    home: Home, good: RunDir, new_run: NewRun, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    bad = new_run("quick-0002")
    write(bad.trainer_journal(), *[line] * (run_files.MAX_BAD_LINES + 1))
    ingestor = Ingestor(home, store := Store())
    ingestor.catch_up()
    assert run_ids(store) == [good.run_id]
    reason = f"journal-0.jsonl has more than {run_files.MAX_BAD_LINES:,} invalid lines"
    assert queries.set_aside(store) == {bad.run_id: reason}
    with monkeypatch.context() as patch:
        patch.setattr(run_files, "pieces", None)  # nothing is read again
        assert ingestor.catch_up() == 0
    bad.trainer_journal().write_text("")
    ingestor.catch_up()
    assert (sorted(run_ids(store)), queries.set_aside(store)) == ([good.run_id, bad.run_id], {})


def test_run_with_partly_unreadable_journal_can_still_be_stopped(
    good: RunDir,
) -> None:
    journal.append(good.trainer_journal(), 1, StatusChange(status="running", reason="trains"))
    write(good.trainer_journal(), *['"status"'] * (run_files.MAX_BAD_LINES + 1))
    ask_of(good).stop(good.run_id)
    assert good.stop_file.exists()


def test_overlong_texts_are_cut_and_overlong_names_refused(home: Home, good: RunDir) -> None:
    """Messages may be shortened; names may not."""
    journal.append(good.supervisor_journal, 1, StatusChange(status="failed", reason="no " * 10**6))
    write(good.supervisor_journal, {"kind": "renamed", "name": "n" * 10**6})
    write(
        good.trainer_journal(),
        {"kind": "event", "level": "info", "topic": "t", "message": "m" * 10**6},
    )
    store = ingest.store_of(home)
    row = queries.run(store, good.run_id)
    assert (row.name, row.note[:6], len(row.note), row.note[-1]) == (
        good.run_id,
        "no no ",
        10_000,
        "…",
    )
    assert max(len(message) for message in queries.events(store, good.run_id)["message"]) == 10_000


@pytest.mark.parametrize(
    "changes",
    [{"name": "n" * 201}, {"dataset": "d" * 10**6}, {"of_a_newer_version": ["x" * 10] * 10_000}],
    ids=["name", "dataset", "an unknown option"],
)
def test_submission_with_megabytes_of_text_quarantines_its_run(
    home: Home, good: RunDir, changes: dict[str, Any]
) -> None:
    write(RunDir(home.runs / "quick-0002").supervisor_journal, with_option(**changes), DONE)
    store = ingest.store_of(home)
    assert run_ids(store) == [good.run_id]
    assert list(queries.set_aside(store)) == ["quick-0002"]


def test_times_without_a_zone_are_utc(home: Home, good: RunDir) -> None:
    write(
        good.supervisor_journal,
        {"kind": "status", "status": "starting", "reason": "by hand", "at": "2026-01-01T12:00:07"},
    )
    assert latest_status(good).status == "starting"
    ask_of(good).stop(good.run_id)
    assert (
        str(ingest.store_of(home).rows("SELECT started_at FROM runs")[0][0])
        == "2026-01-01 12:00:07+00:00"
    )


# ---- duplicate lines -----------------------------------------------------------------------------


def test_a_second_submission_in_a_journal_is_ignored(home: Home, good: RunDir) -> None:
    first = json.loads(good.supervisor_journal.read_text(encoding="utf-8").splitlines()[0])
    write(good.supervisor_journal, {**first, "color": 3}, json.dumps(first))
    write(good.trainer_journal(), json.dumps(first))
    store = ingest.store_of(home)
    assert [row.color for row in queries.runs(store)] == [0]
    assert store.rows(
        "SELECT count(*) FROM events WHERE message LIKE '%a run is submitted once%'"
    ) == [(3,)]


def test_numbers_recorded_twice_are_stored_once(home: Home, good: RunDir) -> None:
    scores = {
        "kind": "epoch_scores",
        "epoch": 1,
        "step": 4,
        "wall_s": 4.0,
        "values": {"spread_real": 0.5},
    }
    overlapping = {
        **CALL,
        "first_step": 2,
        "wall_s": [2.0, 3.0],
        "values": {"loss_generator": [2.0, 3.0]},
    }
    lines = [CALL, EPOCH, BINS, MEMORY, scores]
    store = Store()
    ingestor = Ingestor(home, store)
    write(good.trainer_journal(), *lines, *lines)
    ingestor.catch_up()
    write(good.trainer_journal(), overlapping)
    Ingestor(home, store).catch_up()  # another owner, which knows only what is stored
    counts = {
        view: store.rows(f"SELECT count(*) FROM {view}")[0][0]
        for view in ("epochs", "histograms", "memory")
    }
    assert counts == {"epochs": 1, "histograms": 1, "memory": 1}
    assert store.rows("SELECT metric, step, value FROM scalars ORDER BY ALL") == [
        *(("loss_generator", step, float(step)) for step in (1, 2, 3)),
        ("spread_real", 4, 0.5),
    ]
    assert store.rows("SELECT count(*) FROM events WHERE message LIKE '%is stored already.'") == [
        (5,)
    ]


# ---- pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "reason"),
    [
        ("/etc/passwd", "its name is not that of a PNG file in the run's samples folder"),
        ("../../secret.png", "its name is not that of a PNG file in the run's samples folder"),
        (
            "samples/" + "x" * 5_000,
            "its name is not that of a PNG file in the run's samples folder",
        ),
        ("samples/link.png", "it cannot be read (Too many levels of symbolic links)"),
        ("samples/damaged.png", "it is a damaged PNG image"),
        ("samples/text.png", "it is not a PNG image"),
        ("samples/none.png", "the file is missing"),
    ],
)
def test_only_intact_images_from_the_run_folder_are_stored(
    home: Home, good: RunDir, file: str, reason: str
) -> None:
    (home.path / "secret.png").write_bytes(png())
    good.samples.mkdir()
    (good.samples / "link.png").symlink_to(home.path / "secret.png")
    (good.samples / "damaged.png").write_bytes(png()[:-20])
    (good.samples / "text.png").write_text("no picture")
    (good.samples / "whole.png").write_bytes(png())
    grids = [
        Sample(epoch=epoch, step=epoch, sample_kind="fixed_latents", file=name, meta={})
        for epoch, name in ((1, "samples/whole.png"), (2, file))
    ]
    journal.append(good.trainer_journal(), 1, *grids)
    store = ingest.store_of(home)
    assert store.rows("SELECT epoch, png FROM samples ORDER BY epoch") == [(1, png()), (2, None)]
    sample = queries.sample(store, good.run_id, 2)
    assert sample is not None
    assert (sample.epoch, sample.png) == (1, png())
    assert queries.sample_epochs(store, [good.run_id]) == [1]
    messages = store.rows("SELECT message FROM events WHERE kind = 'journal'")
    assert messages == [(f"The image of epoch 2 was skipped: {reason}.",)]


def test_an_image_named_by_many_records_is_read_and_stored_once(home: Home, good: RunDir) -> None:
    good.samples.mkdir()
    (good.samples / "whole.png").write_bytes(png())
    records = [
        Sample(epoch=epoch, step=epoch, sample_kind=kind, file="samples/whole.png", meta={})
        for epoch in range(1, 301)
        for kind in ("samples", "by_class")
    ]
    journal.append(good.trainer_journal(), 1, *records)
    store = ingest.store_of(home)
    assert store.rows("SELECT count(*), count(png), min(png) FROM samples") == [(600, 1, png())]
    messages = store.rows("SELECT message FROM events WHERE kind = 'journal' ORDER BY message")
    assert messages[0] == (
        "The image of epoch 1 was skipped: an earlier record names the same file.",
    )
    assert len(messages) == ingest_batch.MAX_EVENTS


def test_a_new_attempt_reads_its_images_again(home: Home, good: RunDir) -> None:
    good.samples.mkdir()
    names = [f"samples/samples-{epoch:05d}.png" for epoch in (1, 2, 3)]
    grids = [
        Sample(epoch=epoch, step=10 * epoch, sample_kind="samples", file=name, meta={})
        for epoch, name in enumerate(names, 1)
    ]
    for name in names:
        (good.path / name).write_bytes(png())
    journal.append(good.trainer_journal(), 1, *grids)
    journal.append(good.trainer_journal(), 2, journal.AttemptStart(resume_step=10), *grids[1:])
    store = ingest.store_of(home)
    assert store.rows("SELECT attempt, epoch, png FROM samples ORDER BY epoch") == [
        (1, 1, png()),
        (2, 2, png()),
        (2, 3, png()),
    ]


# ---- attempts ------------------------------------------------------------------------------------


def test_thousands_of_attempts_void_each_workers_rows_in_one_pass(
    home: Home, good: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attempt goes back one step from the last row, and writes it again."""
    passes = []
    once = ingest_batch.IngestBatch.drop_void_rows
    monkeypatch.setattr(
        ingest_batch.IngestBatch,
        "drop_void_rows",
        lambda batch: passes.append(batch.size) or once(batch),
    )
    rows = [journal.MemoryUse.model_validate({**MEMORY, "step": step}) for step in range(1, 101)]
    journal.append(good.trainer_journal(), 1, *rows)
    journal.append(good.trainer_journal(1), 1, journal.WorkerTimes.model_validate(TIMES))
    journal.append(
        good.trainer_journal(),
        2,
        *(part for _ in range(3_000) for part in (journal.AttemptStart(resume_step=99), rows[-1])),
    )
    store = ingest.store_of(home)
    assert store.rows("SELECT count(*), max(step), max(attempt) FROM memory") == [(100, 100, 2)]
    assert store.rows("SELECT count(*) FROM worker_times") == [(1,)]
    assert len(passes) == 1
    assert passes[0] > 3_000
