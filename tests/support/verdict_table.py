"""The table of docs/metrics.md: known generators, their scores, and the verdict on them."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.records.home import REPOSITORY
from gan_runtime.training.verdict import TITLES

HEADER = "| Generator | Coverage | Precision | FCD∞ | Rarest class | Copies | Verdict |"
COLUMNS = ("coverage", "precision", "fcd_infinite", "rarest_class", "copies")
# Between two trainings of the classifier.
TOLERANCES = dict(zip(COLUMNS, (0.06, 0.1, 12.0, 0.15, 0.03), strict=True))


@dataclass(frozen=True)
class DocumentedVerdict:
    """`scores`: by name. `finding`: the stored name of the verdict."""

    scores: dict[str, float]
    finding: str


def rows_of_document() -> dict[str, DocumentedVerdict]:
    """The rows of the table, by generator."""
    text = (REPOSITORY / "docs" / "metrics.md").read_text(encoding="utf-8")
    table = text.partition(HEADER)[2].partition("\n\n")[0].strip().splitlines()[1:]
    findings = {title: finding.value for finding, (title, _) in TITLES.items()}
    rows = {}
    for line in table:
        name, *cells, title = (cell.strip() for cell in line.strip("|").split("|"))
        scores = dict(zip(COLUMNS, map(_number, cells), strict=True))
        rows[name] = DocumentedVerdict(scores, findings[title])
    return rows


def _number(cell: str) -> float:
    text = cell.replace("−", "-").replace(",", "")
    return float(text.removesuffix("%")) / 100.0 if text.endswith("%") else float(text)
