"""The time of each page's script on a large database, in the process that owns the database.

take_in_s         ingest of all journals into results.duckdb
rows, megabytes   size of the database
cold, pages       page → seconds of the first and of the second visit of a session

python -m benchmarks.pages [--runs 200] [--rows 5000000]        prints one JSON line
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import large_home, measured_flows, measured_showers

COMPARED_RUNS = 4


def measure(runs: int, rows: int) -> dict[str, Any]:
    """Writes the home, ingests it, and visits every page twice."""
    with tempfile.TemporaryDirectory() as folder:
        home = large_home.create(Path(folder), runs, rows)
        measured_showers.write(home, newest_runs(runs))
        measured_flows.write(home, newest_runs(runs)[:1])
        os.environ["GAN_RUNTIME_HOME"] = str(home.path)
        from dashboard.frame import session

        begin = time.perf_counter()
        # As app.py does at its start; the first page then loads the others.
        session.open_early()
        store = session.runtime().store
        take_in_s = time.perf_counter() - begin
        stored = store.rows("SELECT count(*) FROM scalars")[0][0]
        cold, warm = {}, {}
        for name, query in visits(runs).items():
            cold[name], warm[name] = visit(page_of(name), query)
        megabytes = home.database.stat().st_size / 1e6
        session.close()
    return {
        "runs": runs,
        "rows": stored,
        "take_in_s": take_in_s,
        "megabytes": megabytes,
        "cold": cold,
        "pages": warm,
    }


def newest_runs(runs: int) -> list[str]:
    """The newest runs, which several pages show."""
    return [f"run-{number:04d}" for number in range(max(1, runs - COMPARED_RUNS + 1), runs + 1)]


def visits(runs: int) -> dict[str, dict[str, str]]:
    """Page, or page and tab → the query of its address, with typical contents."""
    run_ids = ",".join(newest_runs(runs))
    run_id = f"run-{runs:04d}"
    return {
        "home": {},
        "launch": {},
        "launch/study": {"tab": "study"},
        "launch/paper": {"tab": "paper"},
        "data": {},
        "run": {"run": run_id},
        "run/samples": {"run": run_id, "tab": "samples"},
        "run/histograms": {"run": run_id, "tab": "histograms"},
        "run/log": {"run": run_id, "tab": "log"},
        "run/options": {"run": run_id, "tab": "options"},
        "runs": {},
        "compare": {"runs": run_ids},
        "compare/curves": {"runs": run_ids, "tab": "curves"},
        "compare/samples": {"runs": run_ids, "tab": "samples"},
        "compare/histograms": {"runs": run_ids, "tab": "histograms"},
        "studies": {"study": "study-0001"},
        "studies/xla": {"tab": "xla"},
        "studies/precision": {"tab": "precision"},
        "studies/paper": {"tab": "paper"},
        "run/evaluation": {
            "run": newest_runs(runs)[0],
            "tab": "evaluation",
            "with": ",".join(newest_runs(runs)[1:4]),
        },
        "tpu": {},
        "gpu": {},
        "stage": {},
    }


def page_of(name: str) -> str:
    """The page of a visit, which can be one of its tabs."""
    return name.partition("/")[0]


def visit(page: str, query: dict[str, str], times: int = 2) -> list[float]:
    """Seconds of each of `times` runs of the page's script, for the whole page. Raises
    RuntimeError if the page shows an exception.
    """
    from streamlit.testing.v1 import AppTest

    from dashboard.frame import places
    from gan_runtime.records.home import REPOSITORY

    app = AppTest.from_file(str(REPOSITORY / "dashboard" / "navigation.py"), default_timeout=300)
    for name, value in query.items():
        app.query_params[name] = value
    app.switch_page(str(getattr(places, page.upper())))
    seconds = []
    for _ in range(times):
        begin = time.perf_counter()
        app.run()
        seconds.append(time.perf_counter() - begin)
        if app.exception:
            raise RuntimeError(f"{page}: {app.exception[0].value}")
    return seconds


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Times every page on a large database.")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    print(json.dumps(measure(options.runs, options.rows)))
