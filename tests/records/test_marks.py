"""Tags, notes, pinned and hidden runs: stored in the journal, unchanged by a rebuild, refused if no
list could show them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gan_runtime import bundles
from gan_runtime.base.errors import RunStateError, SpecError
from gan_runtime.cli.app import app
from gan_runtime.records import journal, run_folder
from gan_runtime.records.home import Home
from gan_runtime.records.journal import Marked, StatusChange
from gan_runtime.records.record import operator
from gan_runtime.records.run_folder import Marks, RunDir
from gan_runtime.store import ingest, queries
from gan_runtime.store.ingest import Ingestor
from gan_runtime.store.store import Store
from tests.support.asking import ask, ask_of

ASKER = operator("a test")
NewRun = Callable[..., RunDir]
COLUMNS = "SELECT run_id, tags, remark, pinned, hidden FROM runs ORDER BY run_id"


def test_the_newest_value_of_each_mark_counts(new_run: NewRun) -> None:
    run = new_run("quick-0001")
    assert run_folder.marks_of(run) == Marks()
    ask_of(run, actor=ASKER).mark([run.run_id], tags=["good", " to show "])
    ask_of(run, actor=operator("another")).mark(
        [run.run_id], remark="line one\nline two", pinned=True
    )
    ask_of(run, actor=ASKER).mark([run.run_id], tags=["good"], hidden=True)
    ask_of(run, actor=ASKER).mark([run.run_id], hidden=False)
    assert run_folder.marks_of(run) == Marks(
        ("good",), "line one\nline two", pinned=True, hidden=False
    )
    assert run_folder.marks_of(new_run("quick-0002")) == Marks()


def test_a_rebuilt_database_has_the_same_marks(new_run: NewRun, home: Home) -> None:
    store = Store(home.database)
    ingestor = Ingestor(home, store)
    run = new_run("quick-0001")
    new_run("quick-0002")
    ingestor.catch_up()
    ask_of(run, actor=ASKER).mark([run.run_id], tags=["a", "b"], remark="über alles", pinned=True)
    ingestor.catch_up_news()
    ask_of(run, actor=ASKER).mark([run.run_id], tags=[], hidden=True)
    ingestor.catch_up_news()
    expected = [("quick-0001", [], "über alles", True, True), ("quick-0002", [], "", False, False)]
    assert store.rows(COLUMNS) == expected
    assert ingest.store_of(home).rows(COLUMNS) == expected
    assert queries.run(store, "quick-0001").pinned
    store.close()


def test_pinned_runs_are_first_in_the_table(new_run: NewRun, home: Home) -> None:
    for number in (1, 2, 3):
        new_run(f"quick-000{number}", seconds=number)
    ask(home, actor=ASKER).mark(["quick-0001"], pinned=True)
    table = queries.run_table(ingest.store_of(home))
    assert list(table["run_id"]) == ["quick-0001", "quick-0003", "quick-0002"]


@pytest.mark.parametrize(
    "tag",
    [
        "",
        " ",
        "-x",
        "a" * 41,
        "two\nlines",
        "<b>",
        "a,b",
        "![x](http://x)",
        "\u202eabc",
        "ü",
        "a\x00",
        "\ud800",
    ],
)
def test_an_undisplayable_tag_is_refused(new_run: NewRun, tag: str) -> None:
    run = new_run("quick-0001")
    before = run.supervisor_journal.read_bytes()
    with pytest.raises(SpecError, match="but allowed are up to 20 tags, each of up to 40 letters"):
        ask_of(run, actor=ASKER).mark([run.run_id], tags=["good", tag], pinned=True)
    assert run.supervisor_journal.read_bytes() == before


@pytest.mark.parametrize(
    ("marks", "named"),
    [
        ({"tags": [f"t{number}" for number in range(21)]}, "tags are"),
        ({"remark": "x" * 2_001}, "note is"),
        ({"remark": "bell \x07"}, "note is"),
        ({"remark": "turned \u202e"}, "note is"),
        ({"remark": "half \ud800"}, "note is"),
    ],
)
def test_too_many_tags_and_invalid_notes_are_refused(
    new_run: NewRun, marks: dict[str, Any], named: str
) -> None:
    run = new_run("quick-0001")
    with pytest.raises(SpecError, match=named):
        ask_of(run, actor=ASKER).mark([run.run_id], **marks)
    assert run_folder.marks_of(run) == Marks()


@pytest.mark.parametrize("name", ["journal-0.jsonl", "journal-supervisor.jsonl"])
def test_a_mark_edited_into_a_journal_is_validated(new_run: NewRun, home: Home, name: str) -> None:
    run = new_run("quick-0001")
    with (run.path / name).open("a") as file:
        file.write(
            json.dumps({"kind": "marked", "tags": ["<script>"], "at": "2026-01-01T12:00:00Z"})
            + "\n"
        )
        if name == "journal-0.jsonl":
            file.write(
                json.dumps({"kind": "marked", "pinned": True, "at": "2026-01-01T12:00:00Z"}) + "\n"
            )
    store = ingest.store_of(home)
    assert store.rows(COLUMNS) == [("quick-0001", [], "", False, False)]
    assert store.rows("SELECT count(*) > 0 FROM events WHERE kind = 'journal'") == [(True,)]


def test_a_pinned_run_is_not_deleted_until_it_is_unpinned(new_run: NewRun, home: Home) -> None:
    run = new_run("quick-0001")
    ask_of(run, actor=ASKER).mark([run.run_id], pinned=True)
    with pytest.raises(
        RunStateError, match=r"^run quick-0001 is pinned: unpin it first, then delete it\.$"
    ):
        ask_of(run, actor=ASKER).delete(run.run_id)
    assert home.run_dirs() == [run]
    ask_of(run, actor=ASKER).mark([run.run_id], pinned=False)
    ask_of(run, actor=ASKER).delete(run.run_id)
    assert home.run_dirs() == []


def test_a_bundle_contains_tags_and_notes_but_not_pins_or_hides(
    new_run: NewRun, tmp_path: Path
) -> None:
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, StatusChange(status="stopped", reason="on request"))
    ask_of(run, actor=ASKER).mark(
        [run.run_id], tags=["good"], remark="in /home/anna/data/x", pinned=True, hidden=True
    )
    bundles.pack([run], tmp_path / "b.zip")
    other = Home(tmp_path / "other").prepare()
    ask(other, actor=ASKER).import_bundle(tmp_path / "b.zip")
    assert run_folder.marks_of(other.run_dir("quick-0001")) == Marks(("good",), "in x")
    with zipfile.ZipFile(tmp_path / "b.zip") as bundle:
        assert b"anna" not in b"".join(map(bundle.read, bundle.namelist()))


def test_the_command_line_sets_and_reports_marks(new_run: NewRun, home: Home) -> None:
    new_run("quick-0001")
    new_run("quick-0002", seconds=1)

    def call(*words: str) -> str:
        done = CliRunner().invoke(app, [*words, "--home", str(home.path)])
        assert done.exit_code == 0, done.output
        return done.output

    assert (
        call("mark", "quick-0001", "--tag", "a", "--tag", "b", "--note", "fine", "--pin")
        == "quick-0001: pinned, #a, #b – fine\n"
    )
    assert (
        call("mark", "quick-0001", "quick-0002", "--untag", "a", "--hide")
        == "quick-0001: pinned, hidden, #b – fine\nquick-0002: hidden\n"
    )
    assert call("mark", "quick-0002") == "quick-0002: hidden\n"
    call("mark", "quick-0001", "--unhide")
    assert "quick-0002" not in call("runs").replace("--hidden lists them too", "")
    assert "quick-0002" in call("runs", "--hidden")
    assert {row["run_id"]: row["hidden"] for row in json.loads(call("runs", "--json"))} == {
        "quick-0001": False,
        "quick-0002": True,
    }


def test_a_mark_omits_unset_fields() -> None:
    assert Marked(pinned=True).model_dump(exclude_none=True).keys() == {
        "kind",
        "attempt",
        "at",
        "pinned",
        "asker",
    }
