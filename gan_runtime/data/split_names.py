"""Folders whose names say which part of a set they hold: train, val, test, holdout, dev, eval, fold 3, in any case."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

TRAIN, FOLD = "train", "fold"
_SHORT = {
    "training": TRAIN,
    "trainval": TRAIN,
    "valid": "val",
    "validation": "val",
    "testing": "test",
    "evaluation": "eval",
    "heldout": "holdout",
}
_WORD = re.compile(
    r"(?<![^\W\d_])"  # not within a word, as in invalid
    r"(train(?:ing|val)?|val(?:id(?:ation)?)?|test(?:ing)?|(?:hold|held)[ _-]?out|dev|eval(?:uation)?|(fold)[ _-]?(\d+))"
    r"(?:[ _-]?(?:set|data))?"
    r"(?=[ _-]?[ab]\b|[\W\d_]|$)",
    re.IGNORECASE,
)
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class Split:
    """`name`: train, val, test, holdout, dev, eval, fold 3, or a folder's own name where somebody has chosen it.

    `rest`: of the folder's name, such as A of trainA; empty without letters.
    """

    name: str
    rest: str
    held_out: bool

    @property
    def is_fold(self) -> bool:
        """Whether it is a fold that nobody has named as held out."""
        return self.name.startswith(FOLD) and not self.held_out

    @property
    def is_plain(self) -> bool:
        """Whether the folder's name says nothing else; A and B are the two sides of pairs."""
        return self.rest.casefold() in ("", "a", "b")


@lru_cache(maxsize=10_000)
def split_of(folder: str) -> Split | None:
    """None where the name is not that of a split, or of more than one (train_test)."""
    words = list(_WORD.finditer(unicodedata.normalize("NFKC", folder)))
    if len(words) != 1:
        return None
    [word] = words
    rest = re.sub(r"[\W_]+", "_", f"{word.string[: word.start()]} {word.string[word.end() :]}").strip("_")
    rest = rest if _LETTER.search(rest) else ""
    if word[2]:
        return Split(f"{FOLD} {int(word[3])}", rest, held_out=False)
    given = re.sub("[ _-]", "", word[1].lower())
    name = _SHORT.get(given, given)
    return Split(name, rest, held_out=name != TRAIN)
