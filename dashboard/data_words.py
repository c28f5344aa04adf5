"""What a data set is in words, on the Data and the Launch page."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dashboard import words
from gan_runtime.base.fields import IMAGES, LABELS, SOURCE, TARGET, Field, Fields
from gan_runtime.catalog.domains import DOMAINS

MOST_CLASSES = 6  # named in a line
MOST_LETTERS = 24  # of a class
CHANNELS = {1: "grey", 3: "RGB"}
PAIR = "pair"  # what a row of two pictures is called


def row(fields: Fields) -> str:
    """What one row is: "64 × 64 RGB · 2 classes: cat, dog"; "64 × 64 grey → 64 × 64 RGB"."""
    field = fields.get(IMAGES)
    if field is not None:
        return f"{picture(field)} · {classes(fields)}"
    for domain in DOMAINS:
        if described := domain.describe(fields):
            return described
    if SOURCE in fields:
        return f"{picture(fields[SOURCE])} → {picture(fields[TARGET])}"
    return ", ".join(f"{volume(field)} {name}".strip() for name, field in fields.items())


def volume(field: Field) -> str:
    """17 × 17 × 25, without the last axis of a single channel; empty for a single number."""
    shape = field.shape[:-1] if field.shape[-1:] == (1,) else field.shape
    return " × ".join(map(str, shape))


def noun(fields: Collection[str]) -> str:
    """What one row with such fields is called: picture, pair, row, or as a domain calls it, such as frame."""
    for domain in DOMAINS:
        for name in fields:
            if name in domain.nouns:
                return domain.nouns[name]
    if SOURCE in fields:
        return PAIR
    return "picture" if IMAGES in fields or not fields else "row"


def picture(field: Field) -> str:
    """64 × 64 RGB."""
    height, width, channels = field.shape
    return f"{height} × {width} {CHANNELS.get(channels, f'× {channels}')}"


def classes(fields: Fields) -> str:
    """2 classes: cat, dog."""
    names = fields[LABELS].classes if LABELS in fields else ()
    if not names:
        return "no labels"
    return f"{words.count(len(names))} {'class' if len(names) == 1 else 'classes'}: {listed(names)}"


def listed(names: Sequence[str]) -> str:
    """The first names of a list, with dots for the rest."""
    shown = [words.plain(name if len(name) <= MOST_LETTERS else f"{name[:MOST_LETTERS]}…") for name in names]
    return ", ".join(shown[:MOST_CLASSES]) + (" …" if len(names) > MOST_CLASSES else "")
