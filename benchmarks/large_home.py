"""A home after months of use: hundreds of ended runs and millions of numbers, written as journals.

The numbers are random; nothing is trained. Half of the runs belong to studies of four variants.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from PIL import Image

from gan_runtime.records import journal
from gan_runtime.records.home import Home
from gan_runtime.records.journal import StudyPlace
from gan_runtime.records.run_folder import RunDir, write_json
from gan_runtime.spec import RunSpec

METRICS = (
    "loss_generator",
    "loss_discriminator",
    "d_real",
    "d_fake",
    "learning_rate_generator",
    "learning_rate_discriminator",
)
EPOCH_METRICS = ("spread_real", "spread_fake", "d_accuracy_real", "d_accuracy_fake")
HISTOGRAMS = (
    "score/real",
    "score/fake",
    "weight/generator",
    "weight/discriminator",
    "gradient/generator",
    "gradient/discriminator",
)
EPOCHS = 30
STEPS_PER_CALL = 50
BATCHES = (64, 128, 256, 512)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def write(home: Home, runs: int, rows: int, epochs: int = EPOCHS) -> None:
    """Writes `runs` finished runs with about `rows` step numbers in total, and an image for each
    epoch of each run.
    """
    home.prepare()
    random = np.random.default_rng(1)
    steps = max(1, rows // runs // len(METRICS) // epochs)  # per epoch
    png = noise_png(random)
    for number in range(1, runs + 1):
        _write_run(home, number, (epochs, steps), random, png, in_study=number <= runs // 2)


def _write_run(
    home: Home,
    number: int,
    length: tuple[int, int],
    random: np.random.Generator,
    png: bytes,
    in_study: bool,
) -> None:
    """`length`: epochs, and steps per epoch."""
    run, (epochs, steps) = RunDir(home.runs / f"run-{number:04d}"), length
    run.samples.mkdir(parents=True)
    variant = number % len(BATCHES)
    spec = RunSpec.parse(
        {"batch_size_global": BATCHES[variant], "epochs": epochs, "seed": number}
    ).model_dump()
    write_json(run.spec_path, spec)
    at = BEGIN + timedelta(minutes=20 * number)
    place = StudyPlace(
        study_id=f"study-{(number - 1) // 8 + 1:04d}",
        question="batch_size",
        title="Batch size",
        variant=f"batch {BATCHES[variant]}",
        variant_index=variant,
        repeat=1 + (number - 1) % 8 // 4,
    )
    created = journal.Created(
        at=at, spec=spec, accelerator="cpu", color=number % 8, study=place if in_study else None
    )
    journal.append(
        run.supervisor_journal,
        1,
        created,
        journal.StatusChange(at=at, status="queued", reason="waiting", queue_rank=float(number)),
        journal.StatusChange(at=at, status="starting", reason="starting a trainer on cpu"),
    )
    journal.append(run.trainer_journal(), 1, *_records(at, epochs, steps, random))
    for epoch in range(1, epochs + 1):
        (run.samples / f"epoch-{epoch:05d}.png").write_bytes(png)


def _records(
    at: datetime, epochs: int, steps: int, random: np.random.Generator
) -> list[journal.Record]:
    records: list[journal.Record] = [
        journal.AttemptStart(at=at, resume_step=0),
        journal.AttemptPlan(at=at, images=64 * steps, steps_per_epoch=steps, epochs=epochs),
        journal.StatusChange(at=at, status="running", reason="training"),
    ]
    for epoch in range(1, epochs + 1):
        records += epoch_records(at, epoch, steps, random)
    records += [
        journal.PhaseSeconds(at=at, phase=name, seconds=1.0)
        for name in ("trace", "first_call", "compile")
    ]
    records += [
        journal.PhaseSeconds(at=at, phase="steady_step", seconds=0.01),
        journal.StatusChange(
            at=at + timedelta(minutes=15), status="finished", reason=f"all {epochs} epochs done"
        ),
    ]
    return records


def epoch_records(
    at: datetime, epoch: int, steps: int, random: np.random.Generator
) -> list[journal.Record]:
    """A trainer's records of an epoch: its calls, then the measurements at the end."""
    calls = range((epoch - 1) * steps + 1, epoch * steps + 1, STEPS_PER_CALL)
    return [
        *(
            call_scalars(at, epoch, begin, min(STEPS_PER_CALL, epoch * steps - begin + 1), random)
            for begin in calls
        ),
        *end_of_epoch(at, epoch, steps, random),
    ]


def call_scalars(
    at: datetime, epoch: int, first_step: int, count: int, random: np.random.Generator
) -> journal.Scalars:
    """The numbers of one host call of `count` steps."""
    values = {metric: (1.0 + 0.1 * random.standard_normal(count)).tolist() for metric in METRICS}
    wall_s = (0.01 * np.arange(first_step, first_step + count)).tolist()
    return journal.Scalars(at=at, epoch=epoch, first_step=first_step, wall_s=wall_s, values=values)


def end_of_epoch(
    at: datetime, epoch: int, steps: int, random: np.random.Generator
) -> list[journal.Record]:
    """The measurements at the end of an epoch. Does not write the image that they name."""
    last = epoch * steps
    edges = np.linspace(0.0, 1.0, 31)[:-1].tolist()
    scores = {metric: float(random.uniform(0.2, 0.8)) for metric in EPOCH_METRICS}
    histograms = [
        journal.Histogram(
            at=at,
            epoch=epoch,
            step=last,
            name=name,
            bin_left=edges,
            bin_right=1.0,
            count=random.integers(0, 99, 30).tolist(),
        )
        for name in HISTOGRAMS
    ]
    file = f"samples/epoch-{epoch:05d}.png"
    return [
        journal.EpochDone(
            at=at,
            epoch=epoch,
            step=last,
            seconds=0.01 * steps,
            images=64 * steps,
            images_per_s=6400.0,
        ),
        journal.EpochScores(at=at, epoch=epoch, step=last, wall_s=0.01 * last, values=scores),
        *histograms,
        journal.Sample(
            at=at, epoch=epoch, step=last, sample_kind="fixed_latents", file=file, meta={}
        ),
    ]


def noise_png(random: np.random.Generator) -> bytes:
    """An image of noise, as large as a grid of early samples: PNG cannot compress it."""
    buffer = io.BytesIO()
    Image.fromarray(random.integers(0, 255, (232, 232), dtype=np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def create(path: Path, runs: int, rows: int, epochs: int = EPOCHS) -> Home:
    """A new home in `path`."""
    home = Home(path)
    write(home, runs, rows, epochs)
    return home
