"""The short version of `make load`: every figure is there and can be true. How fast this machine is decides nothing here."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from benchmarks import load_tables
from benchmarks.load import __main__ as load
from benchmarks.load import client, pixels, training
from benchmarks.load.figures import BY_NAME, PAGES, Figure, p95
from benchmarks.load.scale import SMALL
from dashboard.frame import access
from gan_runtime.home import HOME_VARIABLE, REPOSITORY, Home
from gan_runtime.records import journal
from gan_runtime.records.rundir import RunDir


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("load") / "home")


@pytest.fixture
def own_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    """The question of the queries opens the home in this process."""
    monkeypatch.setenv(HOME_VARIABLE, "set by the question")
    monkeypatch.setattr(access, "_guards", access.Guards())


def answered(question: str, home: Home) -> dict[str, Figure]:
    return {figure.name: figure for figure in load.ask(question, home, SMALL)}


def printed(question: str, home: Home) -> dict[str, dict[str, Any]]:
    """The figures that the command prints, by name: this process may have a browser of another test open."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.load",
        "--small",
        "--only",
        question,
        "--home",
        str(home.path),
    ]
    child = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    records = [json.loads(line) for line in child.stdout.splitlines()]
    assert records, child.stderr
    return {record["name"]: record for record in records}


def test_rows_of_ended_and_of_live_runs_are_taken_in_and_counted(home: Home) -> None:
    found = answered("ingest", home)
    assert set(found) == {"ingest_rows_per_s", "bytes_per_million_rows", "ingest_steps_per_s"}
    assert all(figure.value is not None and figure.value > 0 for figure in found.values())
    assert found["ingest_rows_per_s"].further["rows"] >= SMALL.rows - 10


@pytest.mark.usefixtures("own_runtime")
def test_the_questions_of_pages_are_timed(home: Home) -> None:
    figure = answered("queries", home)["query_p95_ms"]
    assert figure.value is not None
    assert figure.further["median_ms"] <= figure.value <= figure.further["slowest_ms"] + 0.1
    assert figure.further["queries"] > 3 * len(PAGES)


def test_pages_are_seen_by_a_real_browser_and_weighed(home: Home) -> None:
    found = printed("views", home)
    assert set(found) == {
        "start_s",
        "first_view_bare_s",
        *(
            f"{kind}_{page}_{unit}"
            for page in PAGES
            for kind, unit in (("first_view", "s"), ("payload", "mb"))
        ),
    }
    assert all(figure["value"] is not None and figure["value"] > 0 for figure in found.values())
    assert all(figure["views"] == SMALL.visits for name, figure in found.items() if "view" in name)


def test_windows_refresh_while_memory_is_followed(home: Home) -> None:
    found = printed("memory", home)
    assert set(found) == {"memory_visited_mb", "memory_mb", "memory_growth_mb"}
    assert 50 < found["memory_mb"]["value"] < 2_000


def test_a_step_is_seen_on_the_screen_after_it_was_made(home: Home) -> None:
    found = printed("pixels", home)
    assert set(found) == {"pixel_p95_s", "pixel_p95_s_thirty"}
    for figure in found.values():
        assert figure["value"] is not None, figure["reason"]
        assert figure["value"] > 0
        assert figure["steps_seen"] >= 2


def test_a_training_is_timed_with_and_without_windows_beside_it(home: Home) -> None:
    load.make(home, SMALL)
    found = {figure.name: figure for figure in training.measure(home, SMALL, {"workload": "mlp_gan"})}
    assert set(found) == {"one_page_slows", "thirty_pages_slow"}
    for figure in found.values():
        assert figure.value is not None
        assert -2 < figure.value < 1
        assert figure.further["refreshes"] > 0
        assert figure.further["dashboard_cores"] > 0


def test_a_look_at_a_training_lasts_until_its_next_line(tmp_path: Path) -> None:
    run = RunDir(tmp_path)

    def ten_steps(first: int) -> None:
        values = {name: [1.0] * 10 for name in ("loss_generator", "loss_discriminator")}
        line = journal.Scalars(epoch=1, first_step=first, wall_s=[0.1] * 10, values=values)
        journal.append(run.trainer_journal(), 1, line)

    ten_steps(1)
    late = threading.Timer(1.0, ten_steps, (11,))
    late.start()
    assert 0 < training._steps_per_s(run, 0.1) < 11, "ten steps, a second later or more"
    late.join()


def test_a_line_is_seen_with_the_first_step_on_the_screen_that_is_not_before_it() -> None:
    written = [(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)]
    assert pixels.delays(written, [(10, 1.5), (30, 3.25)]) == [1.25, 0.25]
    assert pixels.delays(written, []) == []


@pytest.mark.parametrize(
    ("count", "wanted"), [(1, 1.0), (6, 6.0), (19, 19.0), (20, 19.0), (21, 20.0), (100, 95.0), (101, 96.0)]
)
def test_p95_is_the_smallest_value_that_nineteen_of_twenty_do_not_exceed(count: int, wanted: float) -> None:
    values = [float(value) for value in range(count, 0, -1)]
    assert p95(values) == wanted
    summary = client.summary([client.Visit(seconds=value) for value in values])
    assert summary["refresh_p95_s"] == wanted


def test_windows_that_were_never_refreshed_are_told_as_none() -> None:
    assert client.summary([]) == {
        "refreshes": 0,
        "refresh_p50_s": 0.0,
        "refresh_p95_s": 0.0,
        "bytes_per_refresh": 0,
        "messages_per_refresh": 0.0,
    }


def test_a_figure_says_its_target_and_whether_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load.report, "write", lambda: None)
    kept = tmp_path / "load.jsonl"
    records = [
        {"question": "pixels", **Figure("pixel_p95_s", 1.5, {}).record()},
        {"question": "pixels", **Figure("thirty_pages_slow", 0.25, {}, "too many").record()},
        {"question": "pixels", **Figure("bytes_per_million_rows", 9.0, {}).record()},
    ]
    assert [record["met"] for record in records] == [True, False, None]
    load.keep("pixels", records, 0.1, 3.0, kept)
    load.keep("pixels", records, 0.1, 3.0, kept)
    lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == ["machine", "figure", "figure", "figure"], (
        "an answer replaces the older one"
    )
    page = load_tables.under_load(kept)
    assert "| **25.0 %** | at most 15.0 % | **no**: too many |" in page
    assert BY_NAME["pixel_p95_s"].title in page
