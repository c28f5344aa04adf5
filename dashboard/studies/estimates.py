"""What a study takes before it starts: the repeats that make a difference clear, and its training
time.

Repeats follow from the scatter in the newest stored study of the same question; time from the speed
of similar runs on this host.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from dashboard import actions, words
from dashboard.studies import words as study_words
from gan_runtime.base import formats
from gan_runtime.commands.runtime import Runtime
from gan_runtime.hardware.hosts import Host
from gan_runtime.spec import RunSpec
from gan_runtime.store import queries
from gan_runtime.store.store import Store
from gan_runtime.studies.design import StudyDesign
from gan_runtime.studies.statistics import pooled_spread
from gan_runtime.supervision.admission import admit
from gan_runtime.training import watch

NEWEST_STUDIES = 3  # newest studies of a question that are searched


def stored_spread(store: Store, question: str) -> tuple[str, float] | None:
    """The study and the standard deviation of its log ratios of time per epoch; None if no study
    has two repeats.
    """
    finished = [
        row for row in queries.studies(store) if row.question == question and row.finished > 1
    ]
    for row in finished[:NEWEST_STUDIES]:
        effects = study_words.effects(queries.study_results(store, row.study_id))
        spread = pooled_spread(list(effects.values()))
        if spread is not None:
            return row.study_id, spread
    return None


def repeats_suggestion(store: Store, question: str, size: float, comparisons: int) -> str:
    """The repeats that make a true difference of `size` (0.05: 5%) in time per epoch clear."""
    stored = stored_spread(store, question)
    if stored is None:
        return (
            f"How many repeats make a difference of {formats.percent(size)} clear depends on their"
            " scatter. No stored study of this question shows it: start with three repeats."
        )
    study_id, spread = stored
    return (
        f"With {study_words.repeats_in_words(spread, size, comparisons)} repeats, 8 of 10 studies"
        f" find a true difference of {formats.percent(size)} in the time per epoch. This assumes"
        f" the scatter of {words.plain(study_id)} ({formats.percent(spread, 1)})."
    )


TIME_HELP = "From the speed of similar runs on this host. Unknown before the first such run."


def seconds(runtime: Runtime, host: Host, designs: Iterable[StudyDesign]) -> float | None:
    """Training time of all their runs one after another; None if this host has trained no run like
    one of them.
    """
    by_spec: dict[RunSpec, float | None] = {}
    total = 0.0
    for planned in (run for design in designs for run in design.runs):
        # Repeats differ in these.
        without_seed = planned.spec.model_copy(update={"seed": 0, "name": ""})
        if without_seed not in by_spec:
            by_spec[without_seed] = _seconds(runtime, host, without_seed)
        run_s = by_spec[without_seed]
        if run_s is None:
            return None
        total += run_s
    return total


def _seconds(runtime: Runtime, host: Host, spec: RunSpec) -> float | None:
    admission = actions.attempt(partial(admit, spec, host, runtime.home))
    if admission is None or admission.data is None:
        return None
    rate = queries.typical_images_per_s(runtime.store, spec, admission.accelerator, host.cpu_model)
    return watch.estimated_seconds(spec, admission.data.images, rate) if rate else None
