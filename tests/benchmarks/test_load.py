"""A short `make load` without a browser: every figure is present and plausible.

No test depends on the speed of this machine.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from benchmarks import load_tables
from benchmarks.load import __main__ as load
from benchmarks.load import client, pixels, training
from benchmarks.load.figures import BY_NAME, Figure, p95
from benchmarks.load.scale import SMALL
from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir


def test_rows_of_ended_and_live_runs_are_ingested_and_counted(home: Home) -> None:
    figures = {figure.name: figure for figure in load.figures_of("ingest", home, SMALL)}
    assert set(figures) == {
        "ingest_rows_per_s",
        "bytes_per_million_rows",
        "ingest_steps_per_s",
        "long_curve_ms",
    }
    assert all(figure.value is not None and figure.value > 0 for figure in figures.values())
    assert figures["ingest_rows_per_s"].facts["rows"] >= SMALL.rows - 10


def test_steps_per_s_waits_for_the_next_journal_line(tmp_path: Path) -> None:
    run = RunDir(tmp_path)

    def ten_steps(first: int) -> None:
        values = {name: [1.0] * 10 for name in ("loss_generator", "loss_discriminator")}
        line = journal.Scalars(epoch=1, first_step=first, wall_s=[0.1] * 10, values=values)
        journal.append(run.trainer_journal(), 1, line)

    ten_steps(1)
    late = threading.Timer(0.25, ten_steps, (11,))
    late.start()
    assert 0 < training.steps_per_s(run, 0.01) < 41, (
        "ten steps, a quarter of a second later or more"
    )
    late.join()


def test_delays_count_to_the_first_shown_step_at_or_after_a_line() -> None:
    written = [(10, 1.0), (20, 2.0), (30, 3.0), (40, 4.0)]
    assert pixels.delays(written, [(10, 1.5), (30, 3.25)]) == [1.25, 0.25]
    assert pixels.delays(written, []) == []


@pytest.mark.parametrize(
    ("count", "expected"),
    [(1, 1.0), (6, 6.0), (19, 19.0), (20, 19.0), (21, 20.0), (100, 95.0), (101, 96.0)],
)
def test_p95_is_the_smallest_value_that_95_percent_do_not_exceed(
    count: int, expected: float
) -> None:
    values = [float(value) for value in range(count, 0, -1)]
    assert p95(values) == expected
    summary = client.summary([client.Visit(seconds=value) for value in values])
    assert summary["refresh_p95_s"] == expected


def test_a_summary_without_refreshes_is_all_zeros() -> None:
    assert client.summary([]) == {
        "refreshes": 0,
        "refresh_p50_s": 0.0,
        "refresh_p95_s": 0.0,
        "bytes_per_refresh": 0,
        "messages_per_refresh": 0.0,
    }


def test_a_figure_shows_its_target_and_whether_it_is_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load.report, "write", lambda: None)
    stored = tmp_path / "load.jsonl"
    records = [
        {"question": "pixels", **Figure("pixel_p95_s", 1.5, {}).record()},
        {"question": "pixels", **Figure("thirty_pages_slow", 0.25, {}, "too many").record()},
        {"question": "pixels", **Figure("bytes_per_million_rows", 9.0, {}).record()},
    ]
    assert [record["met"] for record in records] == [True, False, None]
    load.store("pixels", records, 0.1, 3.0, stored)
    load.store("pixels", records, 0.1, 3.0, stored)
    lines = [json.loads(line) for line in stored.read_text(encoding="utf-8").splitlines()]
    assert [line["kind"] for line in lines] == [
        "machine",
        "figure",
        "figure",
        "figure",
    ], "an answer replaces the older one"
    page = load_tables.under_load(stored)
    assert "| **25.0%** | **≤ 15.0%, missed**: too many |" in page
    assert BY_NAME["pixel_p95_s"].title in page
