"""A part of the equivalence study from end to end, in its smallest size: stopped, continued,
measured, and in the tables.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import batch_study, batch_tables
from gan_runtime import api, bundles
from gan_runtime.bundles.packing import example
from gan_runtime.records.home import REPOSITORY, Home


def started(*words: str, home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.batch_study", *words, str(home), "--smoke"],
        cwd=REPOSITORY,
        env={**os.environ, "GAN_RUNTIME_LOCKS": f"{home}.locks"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.timeout(900)
def test_study_part_is_stopped_resumed_measured_and_tabulated(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (tmp_path / "home.locks").mkdir()
    first = started("run", "modern-images", home=home)
    deadline = time.monotonic() + 120.0
    while not list(home.glob("runs/*/process.json")):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    first.send_signal(signal.SIGINT)
    _, notes = first.communicate(timeout=120)
    assert first.returncode == 1
    assert "repeat the command to resume them" in notes

    second = started("run", "modern-images", home=home)
    said, notes = second.communicate(timeout=500)
    assert second.returncode == 0, notes
    assert said.count("evaluating quality") == 2
    tables, notes = started("tables", home=home).communicate(timeout=120)
    assert notes == ""
    assert "FCD∞, KCD and coverage, and mean device seconds" in tables
    of_batches, _, decisions = tables.partition("### Batch 128 against 64")
    cell = r"[\d.,]+ \([\d.,]+\); [\d.]+ \([\d.]+\); \d+% \(\d+%\); \d+ s"
    assert re.search(rf"^\| modern, images \| {cell} \| {cell} \|$", of_batches, re.MULTILINE)
    assert "| modern, images | – | – | – | – | too few pairs |" in decisions, "one seed"


def test_tables_in_the_docs_match_the_bundled_runs(tmp_path: Path) -> None:
    bundles.unpack(example("batches"), Home(tmp_path / "home").prepare())
    measured = batch_tables.evaluated_epochs(api.open_home(tmp_path / "home"))
    assert batch_tables.ends(measured).shape[0] == 144
    tables = batch_tables.text(measured, batch_study.FULL.batches)
    document = (REPOSITORY / "docs" / "quality.md").read_text(encoding="utf-8")
    assert tables.strip() in document
    later = batch_tables.text(measured[measured.seed.isin(range(4, 9))], batch_study.FULL.batches)
    [decision] = [line for line in later.splitlines() if line.startswith("| modern, longer | 5 |")]
    assert decision in document
