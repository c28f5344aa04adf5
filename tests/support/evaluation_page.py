"""Extracts the evaluation of docs/adding-an-evaluation.md and adds it to a copy of the project."""

from __future__ import annotations

import re
from pathlib import Path

from gan_runtime.records.home import REPOSITORY

PAGE = (REPOSITORY / "docs" / "adding-an-evaluation.md").read_text(encoding="utf-8")
FILE, TABLE = "gan_runtime/evaluation/sharpness.py", "gan_runtime/catalog/evaluations.py"
# The code of the file and the line for the table, by path.
BLOCKS: dict[str, str] = dict(
    re.findall(r"```(?:python)?\n# (\S+?)(?:, in CORE)?\n(.*?)```", PAGE, re.DOTALL)
)


def write_into(project: Path) -> list[str]:
    """Adds the page's file and its line in the table to a copy of the project; returns the paths of
    both.
    """
    (project / FILE).write_text(BLOCKS[FILE], encoding="utf-8")
    table = project / TABLE
    begin, separator, end = table.read_text(encoding="utf-8").partition("\n)\n")
    assert "\nCORE: " in begin, "the first table of the file is the one that the page means"
    table.write_text(f"{begin}\n    {BLOCKS[TABLE].rstrip()}{separator}{end}", encoding="utf-8")
    return [FILE, TABLE]
