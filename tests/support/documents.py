"""Code blocks, commands and links of README.md and docs/."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.sources import ROOT, text

PAGES = [
    Path("README.md"),
    Path("examples/README.md"),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "docs").glob("*.md")),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "docs" / "reference").glob("*.md")),
]
ALL = [
    *PAGES,
    *(Path(name) for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(path.relative_to(ROOT) for path in (ROOT / "docs" / "decisions").glob("*.md")),
]
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PROGRAM = re.compile(r"(?:\.venv/bin/)?python -m gan_runtime |gan-dashboard ")


class Block(NamedTuple):
    """A code block of a page; `language` is "" for commands and drawings."""

    page: Path
    language: str
    code: str


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for language, code in _BLOCK.findall(text(page)):
        yield Block(page, language, code)


def lines(block: Block) -> Iterator[str]:
    """The commands of a block, without their comments; continued lines are joined."""
    for line in block.code.replace("\\\n", " ").splitlines():
        if line.strip():
            yield re.sub(r"\s+#\s.*$", "", line).strip()


def program_words(line: str) -> list[str] | None:
    """Arguments of `python -m gan_runtime` in a command; None for other lines."""
    match = _PROGRAM.match(line)
    return shlex.split(line[match.end() :]) if match else None


def links(page: Path) -> list[str]:
    """Targets of the links and images of a page, outside its code."""
    return _LINK.findall(re.sub(r"`[^`\n]*`", "", _BLOCK.sub("", text(page))))


def anchors(page: Path) -> set[str]:
    """Anchors of a page: those that GitHub generates, and explicit ones."""
    plain = _BLOCK.sub("", text(page))
    titles = re.findall(r"^#+ (.+)$", plain, re.MULTILINE)
    generated = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return generated | set(re.findall(r'<a id="([^"]+)">', plain))
