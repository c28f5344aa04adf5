"""The meaning of columns of the public SQL views. Names and types come from the database."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class View:
    """`rows`: what a row is. `meanings`: column names, separated by spaces → their meaning."""

    rows: str
    meanings: Mapping[str, str] = field(default_factory=dict)


VIEWS: dict[str, View] = {
    "runs": View(
        "One row per run.",
        {
            "run_id": "name of its folder; never changes",
            "name": "the newest name; else the option `name`; else `run_id`",
            "status": "queued, starting, compiling, running, finished, stopped, failed, lost",
            "replicas workers": "copies per worker; processes",
            "spec": "all options of the newest attempt by their plain names",
            "started_at": "first start, over all attempts; NULL before",
            "finished_at": "end of the newest attempt; NULL while it waits or trains",
            "host": "facts of the newest attempt's host and program",
            "note reason_code": "why it is in its state: words; a code of `records/states.py`",
            "queue_rank": "order of waiting runs, smallest first",
            "preset": "preset, or question of its study",
            "study_id variant repeat": "NULL without a study",
            "images_per_step": "training images per step",
            "tags remark pinned hidden": "set by users; pinned runs cannot be deleted",
        },
    ),
    "studies": View(
        "One row per study.",
        {
            "question": "a key of `studies/design.py`",
            "runs finished waiting training": "how many of its runs",
        },
    ),
    "scalars": View(
        "One row per step and metric.",
        {
            "metric": "a name of [metrics](metrics.md); `score/<judgement>/<class>` with labels",
            "wall_s": "training seconds at the end of the step, over all attempts",
        },
    ),
    "numbers": View(
        "The rows of `scalars`, and the scores of evaluations as `<prefix><score>`.",
        {"error": "one standard deviation; NULL if unknown"},
    ),
    "epochs": View(
        "One row per finished epoch.",
        {
            "step": "its last step",
            "seconds": "training calls only, s",
            "images": "trained on by this attempt",
        },
    ),
    "metrics": View(
        "One row per workload and declared metric.",
        {
            "axis": "title with unit",
            "panel": "chart that draws it",
            "better": "lower, higher or empty",
            "place": "order of declaration",
        },
    ),
    "worker_times": View(
        "One row per worker and host call, without the first call of an attempt.",
        {
            "rank": "the worker, from 0",
            "step steps": "last step of the call; how many it had",
            "step_s compute_s wait_s": "s per step: all, computing, in collectives",
        },
    ),
    "histograms": View(
        "One row per probe and name.",
        {
            "name": "`score/…`, `weight/<network>[/<layer>]`, `gradient[@<phase>]/…`",
            "bin_left bin_right count": "left edges, last right edge, values per bin",
        },
    ),
    "samples": View(
        "One row per image file.",
        {
            "kind": "the image kind of the workload, such as `samples`",
            "png": "the file, at most 20 MB; NULL if missing or damaged",
            "meta": "`renderer`; `inputs`, equal where images can be compared",
        },
    ),
    "profiles": View(
        "One row per phase, network and category of profiled steps.",
        {
            "step steps": "last profiled step; how many",
            "category": "as in [metrics](../metrics.md)",
            "seconds share": "of all profiled steps; shares add up to 1",
        },
    ),
    "memory": View(
        "One row per finished epoch, in bytes.",
        {"device_bytes device_peak_bytes": "NULL on CPUs"},
    ),
    "phases": View(
        "Seconds of parts of an attempt.",
        {"phase": ("as in [metrics](../metrics.md#time)")},
    ),
    "kernels": View(
        "One row per attempt.",
        {"kernels_before kernels_after fusions": "with `count_kernels` and XLA, else NULL"},
    ),
    "evaluations": View(
        "One row per answer of an evaluation.",
        {
            "evaluation": "`loss_surface`, `physics`, `rollout`, …",
            "key": "of answers with equal keys only the newest is here",
            "checkpoint": "newest, best, or `epoch 3`",
            "facts": "further facts by name",
            "metric_prefix precedence": "name in `numbers`; which answer of an epoch counts",
        },
    ),
    "evaluation_scores": View(
        "One row per score of an answer.",
        {
            "error low high": "standard deviation; 95% interval; NaN if unknown",
            "floor floor_error ceiling": "held-out against other rows; noise",
            "baselines": "simpler predictions, by name",
            "samples": "rows compared",
        },
    ),
    "evaluation_curves": View(
        "One row per curve and series.",
        {
            "number": "place in the answer",
            "series": "real, generated, prediction, …",
            "x y value error": "coordinates (`y` of maps only) and numbers",
        },
    ),
    "evaluation_arrays": View(
        "One row per array of an answer.",
        {
            "file": "in the run's folder; or",
            "places value": "non-zero places of the flat array, and their values",
        },
    ),
    "surfaces": View(
        "One row per network: the loss around its descent.",
        {
            "x y": "axes, in norms of filters",
            "loss": "row by row, `x` fastest",
            "path_epoch path_x path_y path_loss": "the path",
            "share_x share_y": "share of all movement along each axis",
        },
    ),
    "physics": View(
        "One row per score and measured checkpoint of showers.",
        {
            "showers": "generated, and as many simulated",
            "floor floor_error": "simulated against other simulated showers",
        },
    ),
    "physics_curves": View(
        "One row per curve and bin.",
        {
            "energy_low energy_high": "GeV; NULL for all",
            "angle_low angle_high": "rad; NULL for all",
        },
    ),
    "physics_showers": View(
        "One row per stored shower.",
        {
            "pair side": "equal energy and angle; real or generated",
            "grid cells mev": "cells along x, y, z; places, z fastest; MeV",
            "share": "of the energy in these cells",
        },
    ),
    "flow": View(
        "One row per rollout and way.",
        {
            "iteration way": "the job; naive, map_reduce or whole",
            "tile overlap blend tiles": "pixels, pixels, none or hann, count",
            "trajectory start": "held-out flow and its first frame, from 0",
            "is_usual": "the default question",
            "steps solver_steps": "predicted frames; solver steps between two",
            "frames": "file in the run's folder",
            "film replay": "the flow; the training film used as baseline",
        },
    ),
    "flow_scores": View(
        "One row per score of a rollout.",
        {"reference replay": "copied frame or ground truth; the replay; NaN if none"},
    ),
    "flow_steps": View(
        "One row per score and predicted frame.",
        {"value persistence truth replay": "prediction, copied frame, ground truth, replay"},
    ),
    "flow_stages": View(
        "One row per stage of a rollout.",
        {
            "stage number": "preparation, transfer_in, trace, compile, execute, …, merge",
            "seconds times median_s": "all calls, count, one call",
        },
    ),
    "jobs": View(
        "One row per background job; the newest 100 are retained.",
        {
            "state": "waiting, running, finished, failed, cancelled, lost",
            "asked_by": "dashboard, command line, or a run that needs it",
            "message": "how it ended",
        },
    ),
    "events": View(
        "One row per event of a run.",
        {
            "level": "info, warning, error",
            "kind": "a state, or a topic such as `checkpoint`, `journal`, `alarm_collapse`",
        },
    ),
    "set_aside": View("Folders that cannot be read as runs.", {"reason": "why"}),
}
