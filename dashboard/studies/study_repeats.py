"""How many repeats a difference needs, by the newest stored study of the same question that shows how far repeats scatter."""

from __future__ import annotations

from dashboard import words
from dashboard.studies import words as study_words
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.studies.statistics import pooled_spread

LOOKED_AT = 3  # so many newest studies of a question are asked


def known_spread(store: Store, question: str) -> tuple[str, float] | None:
    """The study and the standard deviation of its log ratios of time per epoch; None where no study has two repeats."""
    asked = [row for row in queries.studies(store) if row.question == question and row.finished > 1]
    for row in asked[:LOOKED_AT]:
        effects = study_words.effects(queries.study_results(store, row.study_id))
        spread = pooled_spread(list(effects.values()))
        if spread is not None:
            return row.study_id, spread
    return None


def suggestion(store: Store, question: str, size: float, comparisons: int) -> str:
    """The repeats that make a true difference of `size` (0.05: 5 %) in time per epoch clear."""
    known = known_spread(store, question)
    if known is None:
        return (
            f"How many repeats make a difference of {words.share(size)} clear depends on how far they scatter, and no stored study "
            "of this question has two repeats to show it. Three show it, and large differences as well; ask again with more."
        )
    study_id, spread = known
    return (
        f"To make a true difference of {words.share(size)} in the time per epoch clear in 8 of 10 such studies takes "
        f"{study_words.repeats_in_words(spread, size, comparisons)} repeats, if they scatter as in {words.plain(study_id)} "
        f"({words.share(spread, 1)})."
    )
