"""Output to terminals, pipes and other destinations."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import Result

from gan_runtime.cli import output, runs
from gan_runtime.cli.app import app
from gan_runtime.records import journal
from gan_runtime.records.home import REPOSITORY, Home
from gan_runtime.records.run_folder import RunDir
from tests.support.command_line import answer, run


def test_devices_command_names_missing_devices_and_why(
    known_host: None,  # noqa: ARG001
    command: Callable[..., Result],
) -> None:
    devices = answer(command("devices", "--json"))["devices"]
    assert (devices["cpu"]["count"], devices["gpu"]["available"]) == (8, False)
    assert "this host has no TPU." in command("devices").stdout


def test_the_command_line_imports_neither_frameworks_nor_streamlit() -> None:
    code = (
        "import sys, gan_runtime.cli.app; print(sorted({'tensorflow', 'keras', 'sklearn',"
        " 'streamlit'} & set(sys.modules)))"
    )
    assert (
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )


def test_the_version_matches_pyproject() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert run("--version").stdout == f"{project['name']} {project['version']}\n"


@pytest.fixture
def hostile(new_run: Callable[..., RunDir]) -> RunDir:
    """A run with hostile text: its name rings the bell, clears the screen and reverses the text
    direction.
    """
    run = new_run("quick-0001")
    journal.append(run.supervisor_journal, 1, journal.Renamed(name="\x1b[2J\x07\u202eé\x9b1m"))
    reason = "=HYPERLINK(1) \x1b]0;owned\x07"
    journal.append(run.supervisor_journal, 1, journal.StatusChange(status="failed", reason=reason))
    return run


def test_control_characters_in_names_do_not_reach_the_terminal(
    command: Callable[..., Result], home: Home, hostile: RunDir
) -> None:
    output = (
        command("runs", home=home.path).stdout
        + command("show", hostile.run_id, home=home.path).stdout
    )
    output += command("sql", "SELECT name, note FROM runs", home=home.path).stdout
    assert r"\x1b[2J\x07\u202eé\x9b1m" in output
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", output)
    (run,) = answer(command("runs", "--json", home=home.path))
    assert run["name"] == "\x1b[2J\x07\u202eé\x9b1m"
    assert "\x9b" not in command("runs", "--json", home=home.path).stdout


@pytest.mark.usefixtures("hostile")
def test_non_ascii_text_is_escaped_on_ascii_output(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words, expected in ((["runs"], rb"1 \xd7 cpu"), (["runs", "--json"], rb"\u00e9")):
        content = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(content, encoding="ascii"))
        app([*words, "--home", str(home.path)], standalone_mode=False)
        assert expected in content.getvalue()


@pytest.mark.usefixtures("hostile")
@pytest.mark.parametrize("words", [["runs"], ["runs", "--json"]], ids=["table", "json"])
def test_a_full_output_device_gives_a_one_line_error(
    home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123
        monkeypatch.setattr(sys, "stdout", full)
        assert app([*words, "--home", str(home.path)], standalone_mode=False) == 2
    sentence = (
        "the answer cannot be written (No space left on device): check where the output goes.\n"
    )
    assert capsys.readouterr().err == sentence


@pytest.mark.usefixtures("hostile")
def test_a_closed_stdout_is_not_an_error(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert app(["runs", "--home", str(home.path)], standalone_mode=False) is None


def test_run_tables_are_limited_for_huge_journals() -> None:
    event = {
        "logged_at": datetime.now(UTC),
        "attempt": 1,
        "level": "info",
        "kind": "t",
        "message": "x" * 10**6,
    }
    parts = {
        "spec": {},
        "phases": {},
        "memory": None,
        "profile": [],
        "progress": {"newest": {}},
        "run": {},
    }
    [events] = runs.run_tables(
        {**parts, "events": [{**event, "attempt": number} for number in range(100_000)]}
    )
    assert events.row_count == runs.MOST_EVENTS
    assert str(events.title) == "events (99,000 earlier ones are not shown: use --json)"
    *_, (_, newest) = enumerate(events.columns[1].cells)
    assert newest == "99999"
    assert max(map(len, events.columns[4].cells)) == output.MOST_LETTERS


def test_an_import_of_many_runs_names_a_few(command: Callable[..., Result], tmp_path: Path) -> None:
    bundle = REPOSITORY / "examples" / "paper.zip"
    result = command("import", str(bundle), home=tmp_path / "other")
    assert result.exit_code == 0
    assert result.stdout.startswith("imported 36 runs: example-batch-size-0002, ")
    assert result.stdout.count("example-") == 8
    assert "and 28 more" in " ".join(result.stdout.split())


def test_a_row_of_a_table_is_one_line_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """A script reads it with grep and cut."""
    columns = [f"a column with a long title, number {number}" for number in range(20)]
    wide = output.table(*columns)
    wide.add_row(*(f"value {number} of a run with a long name" for number in range(20)))
    output.answers().print(wide)
    header, row = capsys.readouterr().out.splitlines()
    assert (header.count("a column"), row.count("value")) == (20, 20)
