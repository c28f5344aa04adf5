"""From a record of a journal to rows of the tables, the columns in the order of schema.sql."""

from __future__ import annotations

import json
import math
from typing import Any

from gan_runtime.records import journal
from gan_runtime.records.answer import Curve
from gan_runtime.records.journal import Record
from gan_runtime.spec import nesting

Row = tuple[Any, ...]


def rows(run_id: str, record: Record) -> list[tuple[str, Row]]:
    """(table, row) pairs of one record. Records that need more than themselves have functions of their own below."""
    attempt = record.attempt
    match record:
        case journal.Created():
            study = record.study.model_dump_json() if record.study else None
            spec = json.dumps(nesting.flat(record.spec))
            images_per_step = record.images_per_step or nesting.images_per_step(record.spec)
            look = (record.accelerator, record.color, record.preset, study)
            return [("created", (run_id, record.at, spec, *look, images_per_step))]
        case journal.Changed():
            return [("changes", (run_id, attempt, json.dumps(nesting.flat(record.spec))))]
        case journal.HostFacts():
            return [("hosts", (run_id, attempt, json.dumps(record.facts)))]
        case journal.Plan():
            return [("plans", (run_id, attempt, record.images, record.steps_per_epoch, record.epochs))]
        case journal.WorkerTimes():
            last = record.first_step + record.steps - 1
            times = (record.steps, record.step_s, record.compute_s, record.wait_s)
            return [("worker_times", (run_id, attempt, record.rank, last, record.epoch, *times))]
        case journal.EpochDone():
            return [
                (
                    "epochs",
                    (
                        run_id,
                        attempt,
                        record.epoch,
                        record.step,
                        record.seconds,
                        record.images,
                        record.images_per_s,
                    ),
                )
            ]
        case journal.Histogram():
            bins = (record.bin_left, record.bin_right, record.count)
            return [("histograms", (run_id, attempt, record.step, record.epoch, record.name, *bins))]
        case journal.Profile():
            return [
                (
                    "profiles",
                    (
                        run_id,
                        attempt,
                        record.step,
                        record.steps,
                        item.phase,
                        item.network,
                        item.category,
                        item.seconds,
                        item.share,
                    ),
                )
                for item in record.shares
            ]
        case journal.Memory():
            process, device = (
                (record.process_bytes, record.process_peak_bytes),
                (record.device_bytes, record.device_peak_bytes),
            )
            return [("memory", (run_id, attempt, record.step, record.epoch, *process, *device))]
        case journal.Phase():
            return [("phases", (run_id, attempt, record.phase, record.seconds))]
        case journal.Kernels():
            counts = (record.operations, record.kernels_before, record.kernels_after, record.fusions)
            return [("kernels", (run_id, attempt, *counts))]
        case journal.Event():
            return [("events", (run_id, attempt, record.at, record.level, record.topic, record.message))]
    raise TypeError(f"{type(record).__name__} has no rows of its own")


def status(run_id: str, change: journal.StatusChange, standing: journal.Standing) -> Row:
    """Of statuses; the last three columns put the states of an attempt into their order."""
    code = None if change.code is None else change.code.value
    why = (change.reason, code)
    return (run_id, change.attempt, change.at, change.status, *why, change.queue_rank, *standing[1:])


def name(run_id: str, renamed: journal.Renamed, place: int) -> Row:
    """Of names. `place`: of the line in the supervisor's journal; the last one counts."""
    return (run_id, renamed.at, renamed.name, place)


def marks(run_id: str, record: journal.Marked, place: int) -> Row:
    """Of marks. `place`: of the line in the supervisor's journal; of each mark the last one counts."""
    return (run_id, record.tags, record.remark, record.pinned, record.hidden, place)


def answer(run_id: str, record: journal.Answer, place: int) -> dict[str, list[Row]]:
    """Of the tables of evaluations. `place`: of the answer among those of its run; of equal keys the last one counts."""
    key = (run_id, record.evaluation, record.key)
    model = (record.at, record.epoch, record.step, record.checkpoint, _json(record.facts))
    return {
        "evaluations": [(*key, *model, record.metric_prefix, record.precedence, place)],
        "evaluation_scores": [
            (
                *(*key, score.name, score.value, score.error, score.low, score.high, score.floor),
                *(score.floor_error, score.ceiling, score.baselines, score.samples, place),
            )
            for score in record.scores
        ],
        "evaluation_curves": [
            (*key, curve.name, number, curve.x, curve.y, _series(curve), _json(curve.facts), place)
            for number, curve in enumerate(record.curves)
        ],
        "evaluation_arrays": [
            (*key, array.name, number, array.file, array.places, array.values, _json(array.facts), place)
            for number, array in enumerate(record.arrays)
        ],
    }


def _series(curve: Curve) -> list[dict[str, Any]]:
    return [{"name": line.name, "value": line.values, "error": line.error} for line in curve.series]


def _json(facts: dict[str, Any]) -> str:
    """DuckDB takes no NaN in JSON, but makes a number of "NaN"."""
    try:
        return json.dumps(facts, allow_nan=False)
    except ValueError:
        return json.dumps(_spelled(facts))


def _spelled(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | tuple):
        return [_spelled(item) for item in value]
    return {name: _spelled(item) for name, item in value.items()} if isinstance(value, dict) else value


def sample(run_id: str, grid: journal.Sample, png: bytes | None) -> Row:
    """Of samples."""
    return (run_id, grid.attempt, grid.step, grid.epoch, grid.sample_kind, png, json.dumps(grid.meta))


def steps(run_id: str, call: journal.Scalars, metric: str, first: int) -> list[Row]:
    """Of scalars: the numbers of one metric from the call's step number `first` (counted from 0) on."""
    attempt, epoch, begin = call.attempt, call.epoch, call.first_step
    numbers = zip(call.values[metric], call.wall_s, strict=True)
    return [
        (run_id, attempt, begin + index, epoch, metric, value, wall_s)
        for index, (value, wall_s) in enumerate(numbers)
        if index >= first
    ]


def arrival(run_id: str, call: journal.Scalars) -> Row:
    """Of arrivals: when the numbers up to a step were written."""
    return (run_id, call.attempt, call.first_step + len(call.wall_s) - 1, call.at)


def score(run_id: str, scores: journal.EpochScores, metric: str) -> Row:
    """Of scalars: a number that is measured once an epoch."""
    return (run_id, scores.attempt, scores.step, scores.epoch, metric, scores.values[metric], scores.wall_s)
