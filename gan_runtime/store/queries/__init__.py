"""One function per question that a page asks, by noun: `queries.curves(store, …)`. Pages get frames and small records.

SQL stays in the package `store`. Times are UTC.
"""

from gan_runtime.store.queries.comparing import group_curves, results
from gan_runtime.store.queries.declaring import declared_of, metric_table
from gan_runtime.store.queries.distributions import (
    histogram_names,
    histogram_overlay,
    histogram_ridges,
    loss_overlay,
    loss_ridges,
)
from gan_runtime.store.queries.measuring import PeakMemory, peak_memory, profile
from gan_runtime.store.queries.metrics import (
    EVERYTHING,
    Window,
    XAxis,
    best_epochs,
    changing_curves,
    curves,
    epoch_scores,
    not_finite,
    once_an_epoch,
    points_each,
    recorded,
)
from gan_runtime.store.queries.paper import Conditions, conditions, loss_quartiles, rates_by_device
from gan_runtime.store.queries.physics import (
    ShowerRow,
    means_of_epoch,
    physics_bins,
    physics_curves,
    physics_epochs,
    physics_scores,
    physics_showers,
    runs_with_physics,
    shower_of,
)
from gan_runtime.store.queries.probes import histogram, score_histograms
from gan_runtime.store.queries.run_rows import RunRow, queue, run, run_table, runs, set_aside
from gan_runtime.store.queries.samples import (
    SampleGrid,
    same_inputs,
    sample,
    sample_epochs,
    sample_kinds,
)
from gan_runtime.store.queries.speed import Progress, progress, typical_images_per_s
from gan_runtime.store.queries.studies import (
    StudyProgress,
    StudyRow,
    studies,
    study_progress,
    study_results,
    study_runs,
)
from gan_runtime.store.queries.surfaces import SurfaceRow, runs_with_descent, surfaces
from gan_runtime.store.queries.timeline import epoch_times, events, phases, worker_times
from gan_runtime.store.queries.variants import (
    ComparableSet,
    Parity,
    Variants,
    comparable_sets,
    parity,
    variant_kernels,
    variant_medians,
    variant_profiles,
)

__all__ = [
    "EVERYTHING",
    "ComparableSet",
    "Conditions",
    "Parity",
    "PeakMemory",
    "Progress",
    "RunRow",
    "SampleGrid",
    "ShowerRow",
    "StudyProgress",
    "StudyRow",
    "SurfaceRow",
    "Variants",
    "Window",
    "XAxis",
    "best_epochs",
    "changing_curves",
    "comparable_sets",
    "conditions",
    "curves",
    "declared_of",
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
    "means_of_epoch",
    "metric_table",
    "not_finite",
    "once_an_epoch",
    "parity",
    "peak_memory",
    "phases",
    "physics_bins",
    "physics_curves",
    "physics_epochs",
    "physics_scores",
    "physics_showers",
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
    "runs_with_descent",
    "runs_with_physics",
    "same_inputs",
    "sample",
    "sample_epochs",
    "sample_kinds",
    "score_histograms",
    "set_aside",
    "shower_of",
    "studies",
    "study_progress",
    "study_results",
    "study_runs",
    "surfaces",
    "typical_images_per_s",
    "variant_kernels",
    "variant_medians",
    "variant_profiles",
    "worker_times",
]
