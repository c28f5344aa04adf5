"""From a record of a journal to rows of the tables, the columns in the order of schema.sql."""

from __future__ import annotations

import json
from typing import Any

from gan_runtime.records import journal
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
    return (run_id, change.attempt, change.at, change.status, change.reason, change.queue_rank, *standing[1:])


def name(run_id: str, renamed: journal.Renamed, place: int) -> Row:
    """Of names. `place`: of the line in the supervisor's journal; the last one counts."""
    return (run_id, renamed.at, renamed.name, place)


def marks(run_id: str, record: journal.Marked, place: int) -> Row:
    """Of marks. `place`: of the line in the supervisor's journal; of each mark the last one counts."""
    return (run_id, record.tags, record.remark, record.pinned, record.hidden, place)


def surface(run_id: str, record: journal.Surface, place: int) -> Row:
    """Of surfaces. `place`: of the line in its journal; of each network the last one counts."""
    path = (record.path_epoch, record.path_x, record.path_y, record.path_loss)
    grid = (run_id, record.at, record.network, record.x, record.y, record.loss, *path)
    return (*grid, record.share_x, record.share_y, record.images, place)


def physics(run_id: str, record: journal.Physics, place: int) -> dict[str, list[Row]]:
    """Of physics, physics_curves and physics_showers. `place`: of the line in its journal; of each epoch the last one counts."""
    where, grid = (run_id, record.epoch, record.step), list(record.grid)
    head = (run_id, record.at, record.epoch, record.step, record.checkpoint, record.showers, grid)
    none = (None, None)
    return {
        "physics": [
            (*head, one.name, one.value, one.error, one.floor, one.floor_error, place)
            for one in record.scores
        ],
        "physics_curves": [
            (
                *(*where, one.name, *(one.energy or none), *(one.angle or none)),
                *(one.x, one.y, one.real, one.real_error, one.generated, one.generated_error, place),
            )
            for one in record.curves
        ],
        "physics_showers": [
            (
                *(*where, one.pair, one.side, one.energy_gev, one.angle),
                *(grid, one.cells, one.mev, one.share, place),
            )
            for one in record.pictures
        ],
    }


def flow(run_id: str, record: journal.Flow, place: int) -> dict[str, list[Row]]:
    """Of the flow tables. `place`: of the line in its journal; of equal iterations the last one counts."""
    key = (run_id, record.iteration, record.way)
    model = (record.at, record.epoch, record.step, record.checkpoint, record.engine)
    division = (
        record.cores,
        list(record.tile),
        record.overlap,
        record.blend,
        record.tiles,
        list(record.grid),
    )
    begin = (
        record.reynolds,
        record.trajectory,
        record.start,
        record.steps,
        record.is_usual,
        record.solver_steps,
        record.frames,
        record.film,
        record.obstacle_width,
        record.replay,
    )
    return {
        "flow": [(*key, *model, *division, *begin, place)],
        "flow_scores": [
            (*key, one.name, one.value, one.reference, one.replay, place) for one in record.scores
        ],
        "flow_steps": [
            (*key, one.name, one.first, one.values, one.persistence, one.truth, one.replay, place)
            for one in record.by_step
        ],
        "flow_stages": [
            (*key, one.name, number, one.seconds, one.times, one.median_s, place)
            for number, one in enumerate(record.stages)
        ],
    }


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
