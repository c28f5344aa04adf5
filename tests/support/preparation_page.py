"""Extracts the preparation of docs/adding-a-data-preparation.md."""

from __future__ import annotations

import re

from gan_runtime.records.home import REPOSITORY

PAGE = (REPOSITORY / "docs" / "adding-a-data-preparation.md").read_text(encoding="utf-8")
FILE, TABLE = "gan_runtime/data/npz_images.py", "gan_runtime/data/preparations.py"
# The code of the file and the row for the table, by path.
BLOCKS: dict[str, str] = dict(
    re.findall(r"```python\n# (\S+?)(?:, in PREPARATIONS)?\n(.*?)```", PAGE, re.DOTALL)
)
