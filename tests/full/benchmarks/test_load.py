"""Output of the short version of `make load`, with a real browser and real training."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from benchmarks.load import __main__ as load
from benchmarks.load import training
from benchmarks.load.figures import PAGES
from benchmarks.load.scale import SMALL
from gan_runtime.records.home import REPOSITORY, Home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home(tmp_path_factory.mktemp("load") / "home")


def printed(question: str, home: Home) -> dict[str, dict[str, Any]]:
    """Returns the printed figures by name; a subprocess, because this process may have a browser of
    another test open.
    """
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


def test_page_queries_are_timed(home: Home) -> None:
    figure = printed("queries", home)["query_p95_ms"]
    assert figure["value"] is not None
    assert figure["median_ms"] <= figure["value"] <= figure["slowest_ms"] + 0.1
    assert figure["queries"] > 3 * len(PAGES)


def test_pages_are_loaded_in_a_browser_with_times_and_payloads(home: Home) -> None:
    figures = printed("views", home)
    assert set(figures) == {
        "start_s",
        "first_view_bare_s",
        *(kind for page in PAGES for kind in (f"first_view_{page}", f"payload_{page}_mb")),
    }
    assert all(figure["value"] is not None and figure["value"] > 0 for figure in figures.values())
    assert all(
        figure["views"] == SMALL.visits for name, figure in figures.items() if "view" in name
    )


def test_steps_reach_the_screen_in_a_measured_time(home: Home) -> None:
    figures = printed("pixels", home)
    assert set(figures) == {"pixel_p95_s", "pixel_p95_s_thirty"}
    for figure in figures.values():
        assert figure["value"] is not None, figure["reason"]
        assert figure["value"] > 0
        assert figure["steps_seen"] >= 2


def test_training_is_timed_with_and_without_windows(home: Home) -> None:
    load.build_home(home, SMALL)
    figures = {
        figure.name: figure for figure in training.measure(home, SMALL, {"workload": "mlp_gan"})
    }
    assert set(figures) == {"one_page_slows", "thirty_pages_slow"}
    for figure in figures.values():
        assert figure.value is not None
        assert -2 < figure.value < 1
        assert figure.facts["refreshes"] > 0
        assert figure.facts["dashboard_cores"] > 0
