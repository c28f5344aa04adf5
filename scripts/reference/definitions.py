"""The definitions of metrics in the documents: rows of tables with the columns Name or Score,
Definition, Range and Source.

The scores of an evaluation have no prefix there; the section says it: "`quality_<score>`". A part
such as `<network>` is any name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gan_runtime import catalog
from gan_runtime.records.home import REPOSITORY

DOCUMENTS = REPOSITORY / "docs"
SHARED = "metrics.md"
OWN = {"shower_3dgan": "3dgan.md", "pix2pix": "pix2pix.md"}  # read before the shared page
COLUMNS = 4
_TABLE = re.compile(r"^\| (?:Name|Score) \| Definition \| Range.*\n\|[-|]+\n((?:\|.*\n)+)", re.M)
_CELLS = re.compile(r"(?<!\\)\|")
_PREFIX = re.compile(r"`(\w+_)<score>`")
_ANY = re.compile(r"<\w+>")


@dataclass(frozen=True)
class Definition:
    """`name`: as stored, maybe with parts such as <network>. `address`: page and heading."""

    name: str
    address: str
    formula: str
    range: str
    source: str

    def defines(self, metric: str) -> bool:
        """Whether a stored number has this definition."""
        parts = map(re.escape, _ANY.split(self.name))
        return re.fullmatch(r"[^/@]+".join(parts), metric) is not None


def of_page(text: str, page: str) -> list[Definition]:
    """The definitions in the text of a page."""
    return [
        definition
        for section in re.split(r"^(?=## )", text, flags=re.M)
        for definition in _of_section(section, page)
    ]


def _of_section(section: str, page: str) -> Iterator[Definition]:
    prefix = match[1] if (match := _PREFIX.search(section)) else ""
    heading = section.partition("\n")[0].lstrip("# ")
    anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")  # as GitHub makes it
    address = f"{page}#{anchor}"
    for table in _TABLE.findall(section):
        for line in table.splitlines():
            names, *cells = (cell.strip() for cell in _CELLS.split(line)[1:-1])
            cells += [""] * (COLUMNS - 1 - len(cells))
            for name in re.findall(r"`([^`]+)`", names):
                yield Definition(f"{prefix}{name}", address, *cells)


def of_workloads() -> dict[str, list[Definition]]:
    """The definitions of each workload's numbers; those of its own page come first."""
    pages = {
        page: of_page((DOCUMENTS / page).read_text(encoding="utf-8"), page)
        for page in (SHARED, *OWN.values())
    }
    return {
        workload: [*pages.get(OWN.get(workload, ""), []), *pages[SHARED]]
        for workload in catalog.WORKLOADS
    }


def of_metric(name: str, definitions: list[Definition]) -> Definition | None:
    """The first definition of a stored number; None without one."""
    return next((each for each in definitions if each.defines(name)), None)
