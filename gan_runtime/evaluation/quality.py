"""The evaluation of generated images: scores against held-out images, by the features of a small
classifier of the same data set.

Real images are halved: one half is the reference of all scores, the other one is scored as if it
were generated, which is the floor. The ceiling is uniform noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import IMAGES, LABELS, Fields
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation
from gan_runtime.catalog.pairs import QUALITY, QUALITY_METRICS
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet
from gan_runtime.engines.inputs import host_value
from gan_runtime.evaluation import sample_scores, while_training
from gan_runtime.evaluation.catalog import EvaluationResult, Subject
from gan_runtime.evaluation.sample_scores import ImageSample, ScoreEstimate
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records import processes
from gan_runtime.records.answer import Answer, Curve, CurveSeries, Score
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.inference import State, TrainedNetworks

if TYPE_CHECKING:
    from gan_runtime.evaluation.image_classifier import ImageClassifier

FEWEST_IMAGES = 100  # on each side
FEWEST_A_FEATURE = 4  # images for the extrapolation of FCD
DRAWS_OF_HALVES = 4  # for the interval of FCD∞; fewer widen it
MOST_STATES = 20  # checkpoints of one job
MOST_TRAINING = 10_000  # images among which the nearest one is searched
MOST_NUMBERS = 2**26  # pixels of one set of images, times channels: half a gigabyte
MOST_CLASSES = 40  # in the chart of classes
CLASS_IMAGES = "class_images"  # instead of images, with their labels
PROTOCOL = 1  # changes with the definition of any score


class QualityOptions(OptionRecord):
    """The checkpoint, and the number of compared images."""

    checkpoint: State = option(
        "newest",
        label="Checkpoint",
        choices=get_args(State),
        help="Checkpoint of the run to measure; 'every': the stored weights of each epoch.",
        error="use newest, best or every.",
    )
    samples: int = option(
        2_000,
        label="Images",
        ge=FEWEST_IMAGES,
        le=5_000,
        help="How many are generated and compared with as many real ones; at most half of these.",
        error="use about 2000.",
    )
    while_training: int = option(
        0,
        label="While training, every",
        unit="epochs",
        ge=0,
        le=1_000,
        help="Measures a run in training, each time it is so many epochs further. 0: measure now.",
        error="use 0, or the number of epochs, such as 5.",
    )
    seed: int = option(
        0,
        label="Seed",
        ge=0,
        le=2**32 - 1,
        help="The same seed gives the same images.",
        error="use any whole number, such as 0.",
    )


def applies(_entry: WorkloadEntry, _options: Options, fields: Fields) -> str:
    """To workloads that make images."""
    if IMAGES in fields:
        return ""
    return (
        f"This run generates no images: its data set has {' and '.join(fields)}. Pick a run that"
        " has images."
    )


def lacking(home: Home, run: RunDir) -> str:
    """Why a run cannot be evaluated now: its data set has no labels, so there is no classifier."""
    name = run.spec().dataset
    if LABELS in loading.fields_of(name, home):
        return ""
    return (
        f"Quality needs a classifier, but data set {name} has no labels: prepare it from a folder"
        " with one subfolder per class, and train again."
    )


def check(home: Home, run: RunDir, _options: QualityOptions) -> None:
    """Raises DatasetError for a data set without labels."""
    if reason := lacking(home, run):
        raise DatasetError(reason)


def usual(_home: Home, run: RunDir) -> dict[str, str]:
    """The best checkpoint, where there is one."""
    return {"checkpoint": "best" if "best" in checkpoints.steps(run.checkpoints) else "newest"}


QUALITY_OF_IMAGES = Evaluation(
    name=QUALITY,
    title="Quality of images",
    summary=(
        "Scores of generated images against real ones, each with a 95% interval: distances (FCD,"
        " KCD), precision, recall, coverage, classes, and copies of training images."
    ),
    verb="Measure quality",
    options=QualityOptions,
    applies=applies,
    lacking=lacking,
    usual=usual,
    check=check,
    scores=QUALITY_METRICS,
    work="gan_runtime.evaluation.quality:measure",
    busy="the quality of run {run_id} is being measured",
    stored="what was measured until then is stored",
    # Threads of the linear algebra of 128 × 128 matrices slow each other down.
    environment={**ON_THE_CPU, "OPENBLAS_NUM_THREADS": "1"},
)


# ---- work ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RealImages:
    """Two halves of real images, values (N, height, width, channels), and training images (M, …).

    `are_held_out`: else both halves are training images.
    """

    reference: NDArray[np.float32]
    others: NDArray[np.float32]
    training: NDArray[np.float32]
    are_held_out: bool

    @property
    def noun(self) -> str:
        """In sentences."""
        return "held-out images" if self.are_held_out else "training images"


@dataclass(frozen=True)
class Measurement:
    """What all checkpoints of a job share. `floor`, `ceiling`: by score."""

    real: RealImages
    classifier: ImageClassifier
    reference: ImageSample
    floor: Mapping[str, ScoreEstimate]
    ceiling: Mapping[str, float]


@dataclass(frozen=True)
class MeasuredWeights:
    """Weights of a run: epoch, step, training seconds, their name in an answer, and the arrays."""

    epoch: int
    step: int
    wall_s: float
    name: str
    arrays: dict[str, NDArray[Any]]


def measure(subject: Subject) -> EvaluationResult:
    """Publishes an answer for each checkpoint; the result has their epochs and a warning about an
    inaccurate classifier. The best epoch becomes the best checkpoint.

    Raises:
        CheckpointError, DatasetError, SpecError: as `inference.of_run`.
    """
    options, run = subject.options, subject.run
    if options.while_training:
        processes.lower_priority()
    subject.progress(0, 1, "building the networks")
    networks = inference.of_run(
        run, subject.home, "best" if options.checkpoint == "best" else "newest"
    )
    shared = _measure_real(subject, networks)
    epochs = []
    for state in _weights(subject, networks):
        subject.progress(
            state.epoch, networks.spec.epochs, f"epoch {state.epoch}: comparing images"
        )
        networks.engine.load(state.arrays)
        images = _images(networks.generated(len(shared.reference), options.seed))
        generated = _sample(shared.classifier, shared.real, images)
        answer = _answer(state, generated, shared, options.seed)
        subject.publish(answer)
        while_training.keep_if_best(run, answer, state.arrays, state.wall_s)
        epochs.append(state.epoch)
    warnings = [*networks.checkpoint.warnings, *filter(None, [shared.classifier.warning])]
    return EvaluationResult([], {"epochs": epochs, "warnings": warnings})


def _images(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Of `Workload.show`: (N, height, width, channels), of a conditional pair too."""
    return next(arrays[name] for name in (IMAGES, CLASS_IMAGES) if name in arrays)


def _weights(subject: Subject, networks: TrainedNetworks) -> Iterator[MeasuredWeights]:
    """The weights to measure, the earliest first; of a run in training as it saves them."""
    if subject.options.while_training:
        return _weights_while_training(subject, networks)
    return _stored_weights(subject.run, networks, subject.options.checkpoint)


def _weights_while_training(
    subject: Subject, networks: TrainedNetworks
) -> Iterator[MeasuredWeights]:
    per_epoch = networks.spec.steps_per_epoch(networks.data.rows)

    def wait(step: int) -> None:
        epoch = step // per_epoch
        subject.progress(epoch, networks.spec.epochs, f"waiting for epoch {epoch}")

    steps = subject.options.while_training * per_epoch
    for new in while_training.new_checkpoints(subject.run, steps, wait):
        epoch = round(new.step / per_epoch)
        yield MeasuredWeights(epoch, new.step, new.wall_s, f"epoch {epoch}", new.arrays)


def _stored_weights(
    run: RunDir, networks: TrainedNetworks, state: State
) -> Iterator[MeasuredWeights]:
    checkpoint = networks.checkpoint
    per_epoch = networks.spec.steps_per_epoch(networks.data.rows)
    epochs = inference.stored_epochs(run) if state == "every" else []
    places = np.linspace(0, max(0, len(epochs) - 1), min(MOST_STATES, len(epochs))).astype(int)
    for epoch in [epochs[place] for place in np.unique(places)]:
        arrays = {**checkpoint.arrays, **checkpoints.load_snapshot(run.snapshots, epoch)}
        step = epoch * per_epoch
        yield MeasuredWeights(epoch, step, checkpoint.wall_s, f"epoch {epoch}", arrays)
    newest = round(checkpoint.step / per_epoch)
    if newest not in epochs:
        name = "newest" if state == "every" else state
        yield MeasuredWeights(newest, checkpoint.step, checkpoint.wall_s, name, checkpoint.arrays)


def _measure_real(subject: Subject, networks: TrainedNetworks) -> Measurement:
    """The classifier, the reference, and both ends of each scale."""
    from gan_runtime.evaluation import image_classifier  # loads Keras

    options = subject.options
    data = loading.load(networks.spec.dataset, subject.home)
    parts = label_parts(networks.spec.dataset, data.fields)
    classifier = image_classifier.classifier_of(data, parts, subject.home, subject.progress)
    subject.progress(0, 1, "comparing real images")
    real = real_images(data, options.samples, options.seed)
    reference = _sample(classifier, real, real.reference, is_real=True)
    others = _sample(classifier, real, real.others, is_real=True)
    low, high = real.reference.min(), real.reference.max()
    noise = np.random.RandomState(options.seed).uniform(low, high, real.reference.shape)
    return Measurement(
        real,
        classifier,
        reference,
        measured(reference, others, options.seed),
        sample_scores.compared(reference, _sample(classifier, real, noise), options.seed),
    )


def label_parts(name: str, fields: Fields) -> tuple[int, ...]:
    """Sizes of the independent parts of a label; one part of K classes for most data sets."""
    declared = catalog.DATASETS[name].label_parts if name in catalog.DATASETS else ()
    return declared or (len(fields[LABELS].classes),)


def real_images(data: DataSet, count: int, seed: int) -> RealImages:
    """Random halves of the held-out images, or of the training images where too few are held out.

    Raises:
        DatasetError: there are fewer than 200.
    """
    random = np.random.RandomState(seed)
    are_held_out = data.held_out >= 2 * FEWEST_IMAGES
    available = data.held_out if are_held_out else data.rows
    most = MOST_NUMBERS // math.prod(data.fields[IMAGES].shape)
    half = min(count, available // 2, most)
    if half < FEWEST_IMAGES:
        raise DatasetError(
            f"data set {data.name} has {data.rows:,} images, but quality needs"
            f" {2 * FEWEST_IMAGES}: prepare more."
        )
    rows = random.permutation(available)[: 2 * half]
    if are_held_out:
        images = data.read_held_out(available)[IMAGES][rows]
    else:
        images = data.read(rows)[IMAGES]
    training = np.sort(random.permutation(data.rows)[: min(MOST_TRAINING, most)])
    if not are_held_out:  # so that each image finds itself, and skips it
        training = np.union1d(training, rows)
    value = partial(host_value, field=data.fields[IMAGES])
    return RealImages(
        value(images[:half]),
        value(images[half:]),
        value(data.read(training)[IMAGES]),
        are_held_out,
    )


def _sample(
    classifier: ImageClassifier,
    real: RealImages,
    images: NDArray[np.floating],
    is_real: bool = False,
) -> ImageSample:
    """Images as the classifier sees them, and their nearest training images."""
    nearest = sample_scores.nearest_distances(
        images.astype(np.float64),
        real.training.astype(np.float64),
        are_among=is_real and not real.are_held_out,
    )
    return ImageSample(*classifier.read(images), nearest)


def measured(reference: ImageSample, sample: ImageSample, seed: int) -> dict[str, ScoreEstimate]:
    """Every score with its error; FCD∞ is NaN for fewer than four images a feature."""
    scores = sample_scores.estimates(
        lambda first, second: sample_scores.compared(
            reference.rows(first), sample.rows(second), seed, draws=DRAWS_OF_HALVES
        ),
        sample_scores.compared(reference, sample, seed),
        (len(reference), len(sample)),
        seed,
    )
    if len(sample) < FEWEST_A_FEATURE * sample.features.shape[1]:
        scores["fcd_infinite"] = ScoreEstimate(math.nan, math.nan)
    return scores


def _answer(
    weights: MeasuredWeights, generated: ImageSample, shared: Measurement, seed: int
) -> Answer:
    """Scores with interval, floor and ceiling, and the shares of the classes."""
    classifier, reference = shared.classifier, shared.reference
    scores = [
        _score(name, estimate, shared, len(generated))
        for name, estimate in measured(reference, generated, seed).items()
    ]
    if len(classifier.parts) > 1:
        modes = [
            float(sample_scores.classes_present(sample.probabilities))
            for sample in (generated, reference)
        ]
        scores.append(Score(name="modes", value=modes[0], floor=modes[1], samples=len(generated)))
    return Answer(
        evaluation=QUALITY,
        key=f"epoch {weights.epoch}",
        epoch=weights.epoch,
        step=weights.step,
        checkpoint=weights.name,
        facts={
            "samples": len(generated),
            "reference": shared.real.noun,
            "seed": seed,
            "protocol": PROTOCOL,
            "features": "classifier",
            "classifier": classifier.digest,
            "accuracy": classifier.accuracy,
            "warning": classifier.warning,
        },
        metric_prefix=f"{QUALITY}_",
        scores=scores,
        curves=_curves(generated, reference),
    )


def _score(name: str, estimate: ScoreEstimate, shared: Measurement, samples: int) -> Score:
    low, high = estimate.interval
    return Score(
        name=name,
        value=estimate.value,
        error=estimate.error,
        low=low,
        high=high,
        floor=shared.floor[name].value,
        floor_error=shared.floor[name].error,
        ceiling=shared.ceiling[name],
        samples=samples,
    )


def _curves(generated: ImageSample, reference: ImageSample) -> list[Curve]:
    """The share of images by class; none for very many classes."""
    sides = {"real": reference, "generated": generated}
    shares = {side: sample_scores.class_shares(own.probabilities) for side, own in sides.items()}
    classes = len(shares["real"])
    if classes > MOST_CLASSES:
        return []
    series = [CurveSeries(name=side, values=list(values)) for side, values in shares.items()]
    return [Curve(name="share of images by class", x=list(range(classes)), series=series)]
