"""Modules that the dashboard's processes load: no framework, and nothing heavy before the first
page. Each test starts a process.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.sources import ROOT, file_of, imported, packages, python_files

LOAD_ALL = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
from gan_runtime.studies.statistics import mean_interval
assert mean_interval([1.0, 2.0]).is_known
loaded = [name for name in ("tensorflow", "keras", "jax", "sklearn", "scipy") if name in sys.modules]
sys.exit(f"loaded: {loaded}" if loaded else 0)
"""  # noqa: E501


def test_importing_all_dashboard_modules_loads_no_framework() -> None:
    names = set().union(*(imported(path) for path in python_files("app.py", "pages", "dashboard")))
    ours = {
        name for name in names if packages({name}) <= {"dashboard", "gan_runtime"} and file_of(name)
    }
    command = [sys.executable, "-c", LOAD_ALL, "gan_runtime.commands.runtime", *sorted(ours)]
    child = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr


LOAD_HOME = """
import importlib, sys
for name in sys.argv[1:]:
    importlib.import_module(name)
loaded = [name for name in ("pandas", "altair", "pyarrow") if name in sys.modules]
sys.exit(f"loaded: {loaded}" if loaded else 0)
"""


def test_home_page_loads_no_table_or_chart_libraries() -> None:
    names = set().union(
        *(imported(Path(path)) for path in ("app.py", "dashboard/navigation.py", "pages/home.py"))
    )
    ours = {
        name for name in names if packages({name}) <= {"dashboard", "gan_runtime"} and file_of(name)
    }
    assert "dashboard.home_view" in ours
    command = [sys.executable, "-c", LOAD_HOME, *sorted(ours), "dashboard.widgets"]
    child = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert child.returncode == 0, child.stderr


def test_the_server_starts_before_loading_pages_and_runtime() -> None:
    """A thread loads them while the browser fetches its own part of the page."""
    program = "import app, sys; print(*sys.modules)"
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = set(child.stdout.split())
    assert "streamlit" in loaded
    assert loaded & {"numpy", "pandas", "duckdb", "altair", "gan_runtime.commands.runtime"} == set()
