"""Every child process that runs a module is started by `processes.command`."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support import sources

STARTS = Path("gan_runtime/records/processes.py")


def test_no_other_module_writes_the_option_that_runs_a_module() -> None:
    """`python -m` would import modules of the user's current folder first."""
    writing = {
        path
        for path in sources.python_files("gan_runtime", "dashboard", "pages")
        for node in sources.nodes(path)
        if isinstance(node, ast.Constant) and node.value == "-m"
    }
    assert writing == {STARTS}
