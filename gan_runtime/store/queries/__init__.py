"""One function per question that a page asks, by noun: `queries.curves(store, …)`. Pages get frames and small records.

SQL stays in the package `store`. Times are UTC.
"""

from gan_runtime.store.queries.comparing import group_curves, results
from gan_runtime.store.queries.distributions import (
    histogram_names,
    histogram_overlay,
    histogram_ridges,
    loss_overlay,
    loss_ridges,
)
from gan_runtime.store.queries.measuring import PeakMemory, peak_memory, profile
from gan_runtime.store.queries.metrics import (
    ACCURACIES,
    GRADIENT_NORMS,
    LOSS_SCALES,
    LOSSES,
    PENALTIES,
    RATES,
    SCORES,
    SPREADS,
    UPDATE_RATIOS,
    XAxis,
    changing_curves,
    curves,
    epoch_scores,
    not_finite,
    points_each,
    recorded,
)
from gan_runtime.store.queries.probes import SampleGrid, histogram, same_latents, sample, sample_epochs, score_histograms
from gan_runtime.store.queries.run_rows import RunRow, queue, run, run_table, runs
from gan_runtime.store.queries.speed import Progress, progress, typical_images_per_s
from gan_runtime.store.queries.studies import (
    StudyProgress,
    StudyRow,
    loss_quartiles,
    rates_by_device,
    studies,
    study_progress,
    study_results,
    study_runs,
)
from gan_runtime.store.queries.timeline import epoch_times, events, phases, worker_times

__all__ = [
    "ACCURACIES",
    "GRADIENT_NORMS",
    "LOSSES",
    "LOSS_SCALES",
    "PENALTIES",
    "RATES",
    "SCORES",
    "SPREADS",
    "UPDATE_RATIOS",
    "PeakMemory",
    "Progress",
    "RunRow",
    "SampleGrid",
    "StudyProgress",
    "StudyRow",
    "XAxis",
    "changing_curves",
    "curves",
    "epoch_scores",
    "epoch_times",
    "events",
    "group_curves",
    "histogram",
    "histogram_names",
    "histogram_overlay",
    "histogram_ridges",
    "loss_overlay",
    "loss_quartiles",
    "loss_ridges",
    "not_finite",
    "peak_memory",
    "phases",
    "points_each",
    "profile",
    "progress",
    "queue",
    "rates_by_device",
    "recorded",
    "results",
    "run",
    "run_table",
    "runs",
    "same_latents",
    "sample",
    "sample_epochs",
    "score_histograms",
    "studies",
    "study_progress",
    "study_results",
    "study_runs",
    "typical_images_per_s",
    "worker_times",
]
