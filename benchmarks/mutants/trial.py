"""python -m benchmarks.mutants.trial: the command that cosmic-ray runs for each mutant, in a clone.

Runs the tests of the changed file, those of `make test` first, until one fails. Prints its name.
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
    """`tests` (of each file) or `meanings` (of survivors), from cosmic-ray.toml."""
    return dict(tomllib.loads(CONFIG.read_text(encoding="utf-8"))[name])


def tests_about(changed: list[str], root: Path) -> list[str]:
    """The test files of `make test`, then those that only `make test-all` has. Without a changed
    file, all of them.
    """
    tests_of = table("tests")
    tests = dict.fromkeys(
        test for path in changed or tests_of for test in tests_of[path.removeprefix(PACKAGE)]
    )
    paths = [suite + test for suite in (QUICK, FULL) for test in tests]
    return [path for path in paths if (root / path).exists()]


class FirstFailure:
    """A pytest plugin: runs the files in the given order, and stores the name of the first failed
    test.
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
    """Returns 0 if the mutant survived. A test that is only too slow for `make test` does not
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
