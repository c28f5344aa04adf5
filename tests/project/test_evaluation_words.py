"""Rule 11 of docs/architecture.md: no file outside of evaluations and domains names a score or the
evaluation of images. They read what the evaluation declares (gan_runtime/catalog/evaluation.py).

Names, strings, comments and docstrings of every file count.
"""

from __future__ import annotations

import re

import pytest

from tests.project.test_domain_words import shared_files
from tests.support.sources import ROOT

OF_EVALUATIONS = ("gan_runtime/evaluation/", "dashboard/evaluation/")
# How often a file still names one. Only lower these numbers; an unlisted file has none.
STILL: dict[str, int] = {
    "gan_runtime/catalog/evaluations.py": 2,  # one place: module and name
}
WORDS = re.compile(
    r"(?:f[ci]|kc|ki)d(?:_infinite)?\b|f[ci]d_|evaluation\.quality|quality_(?:of_images|scores|verdict)"
    r"|class_distance|rarest_class",
    re.IGNORECASE,
)


def score_words(text: str) -> list[str]:
    """Every word of a text that belongs to an evaluation of images."""
    return [word.lower() for word in WORDS.findall(text)]


def test_the_core_names_no_score() -> None:
    files = [name for name in shared_files() if not name.startswith(OF_EVALUATIONS)]
    assert len(files) > 200, "this rule looks in the wrong place"
    counts = {name: len(score_words((ROOT / name).read_text(encoding="utf-8"))) for name in files}
    named = {name: count for name, count in counts.items() if count}
    assert {name: count for name, count in named.items() if count > STILL.get(name, 0)} == {}


@pytest.mark.parametrize(
    "text", ["FCD∞", "quality_kcd", "the FID", "evaluation.quality", "fcd_infinite"]
)
def test_a_word_of_a_score_is_found(text: str) -> None:
    assert score_words(text)


@pytest.mark.parametrize("text", ["quality_every", "the quality", "provided", "a kidney"])
def test_words_of_no_score_are_allowed(text: str) -> None:
    assert score_words(text) == []
