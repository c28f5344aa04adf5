"""docs/python.md lists all public names, its code is short, and `import gan_runtime` is cheap."""

from __future__ import annotations

import re
import subprocess
import sys

import gan_runtime
from gan_runtime.records.home import REPOSITORY
from tests.support import python_page

LOADED = """
import sys, gan_runtime
assert dir(gan_runtime) == gan_runtime.__all__
print(*(name for name in sys.modules if name.partition(".")[0] in ("gan_runtime", "numpy", "pydantic", "duckdb")))
gan_runtime.RunSpec, gan_runtime.train
print(*sorted({"tensorflow", "keras", "jax", "duckdb", "pandas", "numpy", "streamlit"} & set(sys.modules)))
"""  # noqa: E501


def test_importing_the_package_loads_no_heavy_library() -> None:
    child = subprocess.run(
        [sys.executable, "-c", LOADED],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert child.stdout.splitlines() == ["gan_runtime", ""], child.stderr


def test_the_page_lists_every_public_name() -> None:
    names = re.findall(
        r"^\| `(\w+)[.(`]", python_page.PAGE.partition("## Install it")[0], re.MULTILINE
    )
    assert {*names, "__version__"} == set(gan_runtime.__all__)


def test_every_public_name_has_a_docstring() -> None:
    for name in gan_runtime.__all__:
        assert getattr(gan_runtime, name).__doc__, name


def test_the_program_of_the_page_is_short() -> None:
    assert len(python_page.PROGRAM.splitlines()) <= 15


def test_the_page_shows_all_files_of_a_package() -> None:
    assert list(python_page.FILES) == [
        "pyproject.toml",
        "spots_gan/entry.py",
        "spots_gan/rows.py",
        "spots_gan/networks.py",
        "spots_gan/domain.py",
        "spots_gan/brightness.py",
    ]
