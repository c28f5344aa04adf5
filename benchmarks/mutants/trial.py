"""python -m benchmarks.mutants.trial: the command that cosmic-ray runs, in a copy of the
repository, for each change.

Runs the tests about the changed file, those of `make test` first, until one fails, and prints its
name.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

CONFIG = Path(__file__).with_name("cosmic-ray.toml")
PACKAGE, QUICK, FULL = "gan_runtime/", "tests/", "tests/full/"
NOTICED = "noticed by "


def table(name: str) -> dict[str, Any]:
    """`tests` (about each file of the package) or `meanings` of cosmic-ray.toml."""
    return dict(tomllib.loads(CONFIG.read_text(encoding="utf-8"))[name])


def tests_about(changed: list[str], root: Path) -> list[str]:
    """Those of `make test`, then those that only `make test-all` has; about all files if none
    is changed.
    """
    about = table("tests")
    tests = dict.fromkeys(
        test for path in changed or about for test in about[path.removeprefix(PACKAGE)]
    )
    places = [suite + test for suite in (QUICK, FULL) for test in tests]
    return [place for place in places if (root / place).exists()]


class FirstFailure:
    """A plugin of pytest: runs the files in the given order, not the slowest first, and stores the
    first failed test.
    """

    def __init__(self, files: list[str]) -> None:
        self.test, self._files = "", files

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda test: self._files.index(test.nodeid.partition("::")[0]))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.test:
            self.test = report.nodeid

    pytest_collectreport = pytest_runtest_logreport  # a file that cannot be loaded fails too


def main() -> int:
    """For cosmic-ray: 0 if no test noticed. A test that is only too slow for `make test` does not
    count.
    """
    changed = subprocess.run(
        ["git", "diff", "--name-only"], capture_output=True, text=True, check=True
    )
    files = tests_about(changed.stdout.split(), Path())
    failure = FirstFailure(files)
    code = pytest.main(["-x", "--tb=line", *files], plugins=[failure])
    print(f"\n{NOTICED}{failure.test}")
    return 0 if code == pytest.ExitCode.TESTS_FAILED and not failure.test else int(code)


if __name__ == "__main__":
    sys.exit(main())
