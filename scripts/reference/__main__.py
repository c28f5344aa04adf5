"""python -m scripts.reference: writes the pages of docs/reference/."""

from __future__ import annotations

from scripts.reference import pages

for name, text in pages.pages().items():
    (pages.FOLDER / name).write_text(text, encoding="utf-8")
