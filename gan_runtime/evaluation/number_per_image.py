"""An evaluation made from one number per image, such as its brightness: the mean of the number, and
how far its distribution is from that of held-out images.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import IMAGES, Fields
from gan_runtime.base.metrics import NOT_DRAWN, Better, Metric
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.training.checkpoints import Which

if TYPE_CHECKING:
    from gan_runtime.evaluation.catalog import EvaluationResult, Subject
    from gan_runtime.records.answer import Score

BINS = 24
RESAMPLES = 200  # of the bootstrap
Number = Callable[[NDArray[Any]], NDArray[Any]]  # (N, height, width, channels) → (N,)
Numbers = NDArray[np.float64]  # (N,)


class PerImageOptions(OptionRecord):
    """Which networks are asked, and for how many images."""

    checkpoint: Which = option(
        "newest",
        label="Checkpoint",
        choices=get_args(Which),
        help="Checkpoint of the run to evaluate.",
        error="use newest or best.",
    )
    images: int = option(
        512,
        label="Images",
        ge=16,
        le=10_000,
        help="How many are generated, and how many held-out ones they are compared with.",
        error="use a whole number from 16 to 10000, such as 512.",
    )
    seed: int = option(
        0,
        label="Seed",
        ge=0,
        le=2**31 - 1,
        help="The same seed gives the same images.",
        error="use a whole number from 0.",
    )


def per_image(name: str, title: str, number: Number, better: Better = "") -> Evaluation:
    """The evaluation with this name. `number`: images in the range of the data, mostly [-1, 1], to
    one number each. `better`: which means are better; "" if those of real images are.
    """
    noun = title[:1].lower() + title[1:]
    return Evaluation(
        name=name,
        title=title,
        summary=f"The {noun} of generated images, next to that of held-out ones.",
        verb="Measure",
        options=PerImageOptions,
        applies=_applies,
        scores=(
            _metric(f"{name}_distance", f"Distance of the {noun}", "Distance (σ)", "lower"),
            _metric(f"{name}_mean", f"Mean {noun}", title, better),
        ),
        work=partial(_measure, name, number),
        environment=ON_THE_CPU,
    )


def _metric(name: str, title: str, axis: str, better: Better) -> Metric:
    return Metric(name, title, axis, NOT_DRAWN, per_epoch=True, better=better)


def _applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    if IMAGES in fields:
        return ""
    return f"its data set has {' and '.join(fields)}, but this is measured on images."


def distance(first: Numbers, second: Numbers) -> float:
    """Wasserstein-1 distance of two samples, in standard deviations of the second, 0 to infinity;
    without a spread, in its own unit.
    """
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(first, second) / (second.std() or 1.0))


def distance_error(first: Numbers, second: Numbers, seed: int) -> float:
    """The standard deviation of `distance` when both samples are drawn again (bootstrap)."""
    random = np.random.default_rng(seed)
    drawn = [
        distance(random.choice(first, len(first)), random.choice(second, len(second)))
        for _ in range(RESAMPLES)
    ]
    return float(np.std(drawn, ddof=1))


def _measure(name: str, number: Number, subject: Subject) -> EvaluationResult:
    """Raises CheckpointError, DatasetError, SpecError as `inference.of_run`."""
    from gan_runtime.evaluation.catalog import EvaluationResult
    from gan_runtime.records.answer import Answer
    from gan_runtime.training import inference

    options = subject.options
    subject.progress(0, 2, "building the networks")
    networks = inference.of_run(subject.run, subject.home, options.checkpoint)
    subject.progress(1, 2, "generating")
    data, checkpoint = networks.data, networks.checkpoint
    chunks = networks.representative(options.images, options.seed)
    # The last training rows: without held-out rows, the first ones are the reference.
    field, last = data.fields[IMAGES], np.arange(max(0, data.rows - options.images), data.rows)
    generated, real, training = (
        np.asarray(number(np.asarray(images, np.float32)), np.float64)
        for images in (
            np.concatenate([inference.images_of(chunk) for chunk in chunks]),
            data.read_held_out(options.images)[IMAGES] * field.scale + field.shift,
            data.read(last)[IMAGES] * field.scale + field.shift,
        )
    )
    answer = Answer(
        evaluation=name,
        key=subject.key,
        epoch=checkpoint.step // networks.spec.steps_per_epoch(data.rows),
        step=checkpoint.step,
        checkpoint=options.checkpoint,
        metric_prefix=f"{name}_",
        scores=scores(generated, real, training, options.seed),
        curves=[_histogram(generated, real)],
    )
    subject.progress(2, 2, "done")
    return EvaluationResult([answer], {"warnings": list(checkpoint.warnings)})


def scores(generated: Numbers, real: Numbers, training: Numbers, seed: int) -> list[Score]:
    """The distance, whose floor is that of training images, and the mean, whose floor is that of
    held-out ones.
    """
    from gan_runtime.records.answer import Score

    return [
        Score(
            name="distance",
            value=distance(generated, real),
            error=distance_error(generated, real, seed),
            floor=distance(training, real),
            floor_error=distance_error(training, real, seed),
            samples=len(real),
        ),
        Score(
            name="mean",
            value=float(generated.mean()),
            error=_error_of_mean(generated),
            floor=float(real.mean()),
            floor_error=_error_of_mean(real),
            samples=len(real),
        ),
    ]


def _error_of_mean(numbers: Numbers) -> float:
    return float(numbers.std(ddof=1) / len(numbers) ** 0.5)


def _histogram(generated: Numbers, real: Numbers) -> Any:
    """The share of images in each of BINS equal ranges."""
    from gan_runtime.records.answer import Curve, CurveSeries

    edges = np.histogram_bin_edges(np.concatenate([generated, real]), BINS)
    lines = {"real": real, "generated": generated}
    return Curve(
        name="images by number",
        x=list((edges[1:] + edges[:-1]) / 2),
        series=[
            CurveSeries(name=side, values=list(np.histogram(numbers, edges)[0] / len(numbers)))
            for side, numbers in lines.items()
        ],
    )
