"""The work of the evaluation of generated images (quality.py): measures checkpoints of a run.

Real images are split in halves: one is the reference of all scores, and scores of the other half
are the floor. The ceiling is uniform noise; images of one class can be farther. FID
(`images_of_fid`) and pairs of images (image_pairs.py) split them otherwise.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.errors import JobError
from gan_runtime.base.fields import SOURCE
from gan_runtime.data import loading
from gan_runtime.data.contract import DataSet, Progress
from gan_runtime.evaluation import (
    image_classifier,
    image_features,
    image_pairs,
    sample_scores,
    while_training,
)
from gan_runtime.evaluation.catalog import EvaluationResult, Subject
from gan_runtime.evaluation.image_classifier import RealImages, real_images
from gan_runtime.evaluation.quality import QualityOptions, folder_of
from gan_runtime.evaluation.quality_scores import QUALITY
from gan_runtime.evaluation.sample_scores import ImageReader, ImageSample, ScoreEstimate
from gan_runtime.evaluation.while_training import Pace
from gan_runtime.records import processes
from gan_runtime.records.answer import Answer, Curve, CurveSeries, Score
from gan_runtime.training import checkpoints, inference
from gan_runtime.training.inference import EpochWeights, TrainedNetworks

MOST_EPOCHS = 20  # that one job measures, evenly spread
MOST_NOISE = 2_000  # noise images that a large network reads
MOST_CLASSES = 40  # in the chart of classes
PROTOCOL = 4  # changes with the definition of any score


@dataclass(frozen=True)
class Measurement:
    """The measurements that all checkpoints of a job share. `floor`, `ceiling`: by score name.
    `images_of_modes`: images whose modes are counted; 0 if labels have a single part. `inputs`: of
    an image-to-image network, for the held-out pairs; empty for others.
    """

    real: RealImages
    reader: ImageReader
    reference: ImageSample
    floor: Mapping[str, ScoreEstimate]
    ceiling: Mapping[str, float]
    images_of_modes: int
    inputs: Mapping[str, NDArray[Any]] = field(default_factory=dict)


def measure(subject: Subject) -> EvaluationResult:
    """Publishes an answer for each checkpoint. The result lists the epochs, with a warning if the
    classifier is inaccurate. The best epoch becomes the best checkpoint.

    Raises:
        CheckpointError, DatasetError, SpecError: as for `inference.of_run`.
    """
    options, run, pace = subject.options, subject.run, Pace(while_training.age_s(subject.run))
    with contextlib.ExitStack() as until_measured:
        if options.while_training:
            processes.lower_priority()
            subject = replace(subject, progress=while_training.paced(subject.progress, run, pace))
            if not while_training.is_training(run):
                until_measured.enter_context(while_training.alone(subject.home, subject.progress))
        return _measured(subject, pace)


def _measured(subject: Subject, pace: Pace) -> EvaluationResult:
    options, run = subject.options, subject.run
    subject.progress(0, 1, "building the networks")
    pace.begin()
    networks = inference.of_run(
        run, subject.home, "best" if options.checkpoint == "best" else "newest"
    )
    shared = _measure_real(subject, networks)
    count = image_classifier.images_to_generate(
        shared.real, options.samples, options.features == "inception"
    )
    epochs, skipped = [], []
    for state in _weights(subject, networks, pace):
        subject.progress(
            state.epoch, networks.spec.epochs, f"epoch {state.epoch}: comparing images"
        )
        if broken := checkpoints.first_not_finite(state.arrays):
            skipped.append(f"epoch {state.epoch} was not measured: {broken} is not finite.")
            continue
        networks.engine.load(state.arrays)
        generated = _generated(shared, networks, count, options.seed, subject.progress)
        modes = _modes(shared, networks, options.seed)
        answer = _answer(state, generated, shared, options, modes)
        subject.publish(answer)
        while_training.keep_if_best(run, answer, state.arrays, state.wall_s)
        epochs.append(state.epoch)
    if not epochs and skipped:
        raise JobError(skipped[-1])
    warnings = [
        *networks.checkpoint.warnings,
        *skipped,
        *filter(None, [shared.reader.warning, fid_obstacle(shared.real, options)]),
    ]
    return EvaluationResult([], {"epochs": epochs, "warnings": warnings})


def _generated(
    shared: Measurement, networks: TrainedNetworks, count: int, seed: int, progress: Progress
) -> ImageSample:
    if shared.inputs:
        chunks = image_pairs.generated(networks, shared.inputs, seed)
    else:
        chunks = networks.representative(count, seed)
    return ImageSample.joined(
        [
            _sample(shared.reader, shared.real, inference.images_of(chunk), progress)
            for chunk in chunks
        ]
    )


def fid_obstacle(real: RealImages, options: QualityOptions) -> str:
    """The reason why there is no FID, although it was requested; else empty."""
    if options.features != "inception" or options.samples < sample_scores.IMAGES_OF_FID:
        return ""
    if real.is_whole:
        return ""
    return (
        f"No FID: of training images this large, only {len(real.reference):,} are read, to limit"
        " memory; FID needs all of them, or 50,000."
    )


def _modes(shared: Measurement, networks: TrainedNetworks, seed: int) -> Score | None:
    if not shared.images_of_modes:
        return None
    chunks = networks.representative(shared.images_of_modes, seed)
    probabilities = [shared.reader.read(inference.images_of(chunk))[1] for chunk in chunks]
    modes = sample_scores.modes(np.concatenate(probabilities), seed)
    return _score("modes", modes, shared, shared.images_of_modes)


def _weights(subject: Subject, networks: TrainedNetworks, pace: Pace) -> Iterator[EpochWeights]:
    """The weights to measure, earliest first; for a run in training, as it saves them."""
    if subject.options.while_training:
        return _weights_while_training(subject, networks, pace)
    return inference.epoch_weights(subject.run, networks, subject.options.checkpoint, MOST_EPOCHS)


def _weights_while_training(
    subject: Subject, networks: TrainedNetworks, pace: Pace
) -> Iterator[EpochWeights]:
    per_epoch = networks.spec.steps_per_epoch(networks.data.rows)

    def wait(step: int) -> None:
        epoch = step // per_epoch
        subject.progress(epoch, networks.spec.epochs, f"waiting for epoch {epoch}")

    steps = subject.options.while_training * per_epoch
    for new in while_training.new_checkpoints(subject.run, steps, wait, pace):
        epoch = round(new.step / per_epoch)
        yield EpochWeights(epoch, new.step, new.wall_s, f"epoch {epoch}", new.arrays)


def _measure_real(subject: Subject, networks: TrainedNetworks) -> Measurement:
    """Prepares the network that reads images and the reference, and measures floor and ceiling of
    each score.
    """
    options = subject.options
    data = loading.load(networks.spec.dataset, subject.home)
    reader = _reader(subject, data)
    subject.progress(0, 1, "comparing real images")
    inputs: Mapping[str, NDArray[Any]] = {}
    if SOURCE in networks.data.fields:
        real, inputs = image_pairs.samples(networks, options.samples, options.seed)
    elif options.features == "inception":
        real = image_classifier.images_of_fid(data, options.samples, options.seed)
    else:
        real = real_images(data, options.samples, options.seed)
    sample = partial(_sample, reader, real, progress=subject.progress)
    reference = sample(real.reference, are_real=True)
    if len(real.others):
        halves = reference, sample(real.others, are_real=True)
    else:
        halves = reference.halves(options.seed)
    low, high = real.reference.min(), real.reference.max()
    most = len(real.reference) if options.features == "classifier" else MOST_NOISE
    shape = (min(len(real.reference), most), *real.reference.shape[1:])
    noise = sample(np.random.RandomState(options.seed).uniform(low, high, shape))
    floor = sample_scores.measured(*halves, options.seed, options.features)
    if options.features == "inception":
        floor["fid"] = sample_scores.fid_of_few(*halves)
    images_of_modes = 0
    if len(reader.parts) > 1:
        images = image_classifier.images_of_modes(data)
        floor["modes"] = sample_scores.modes(reader.read(images)[1], options.seed)
        images_of_modes = len(images)
    ceiling = _ceiling(reference, noise, options)
    return Measurement(real, reader, reference, floor, ceiling, images_of_modes, inputs)


def _ceiling(
    reference: ImageSample, noise: ImageSample, options: QualityOptions
) -> dict[str, float]:
    """Each score of noise."""
    scores = sample_scores.numbers_of(options.features)(reference, noise, options.seed)
    if options.features == "inception":
        scores["fid"] = sample_scores.fid_of_few(reference, noise).value
    if options.features == "classifier":
        probabilities = reference.probabilities, noise.probabilities
        scores["rarest_class"] = sample_scores.rarest_class(*probabilities, options.seed).value
        scores["modes"] = sample_scores.classes_present(noise.probabilities)
    return scores


def _reader(subject: Subject, data: DataSet) -> ImageReader:
    """The network that reads images, trained or downloaded if it is missing here. Loads Keras."""
    home, features = subject.home, subject.options.features
    if features == "imagenet":
        return image_features.imagenet_network(subject.progress)
    if features == "inception":
        path = image_features.inception_file(folder_of(home))
        return image_features.inception_network(path, subject.progress)
    return image_classifier.classifier_of(
        data, image_classifier.label_parts(data.name, data.fields), home, subject.progress
    )


def _sample(
    reader: ImageReader,
    real: RealImages,
    images: NDArray[np.floating],
    progress: Progress,
    *,
    are_real: bool = False,
) -> ImageSample:
    """The features of images, and the distances to their nearest training images."""
    nearest = image_classifier.nearest_training(images, real, progress, are_real=are_real)
    return ImageSample(*reader.read(images), nearest)


def _answer(
    weights: EpochWeights,
    generated: ImageSample,
    shared: Measurement,
    options: QualityOptions,
    modes: Score | None = None,
) -> Answer:
    """Scores with interval, floor and ceiling, and the shares of the classes."""
    reader, reference, features = shared.reader, shared.reference, options.features
    scores = [
        _score(name, estimate, shared, len(generated))
        for name, estimate in sample_scores.measured(
            reference, generated, options.seed, features
        ).items()
        if name != "copies" or shared.real.searched is not None
    ]
    if features == "inception":
        fid = sample_scores.fid(reference, generated, shared.real.is_whole, options.seed)
        scores.append(_score("fid", fid, shared, len(generated)))
    if modes is not None:
        scores.append(modes)
    return Answer(
        evaluation=QUALITY,
        key=f"epoch {weights.epoch}{'' if features == 'classifier' else f' {features}'}",
        epoch=weights.epoch,
        step=weights.step,
        checkpoint=weights.name,
        facts={
            "samples": len(generated),
            "references": len(reference),
            "reference": shared.real.noun,
            "held_out": shared.real.are_held_out,
            "copies_searched": shared.real.searched is not None,
            "seed": options.seed,
            "protocol": PROTOCOL,
            "features": features,
            "warning": reader.warning,
            **reader.facts,
        },
        metric_prefix=f"{QUALITY}_",
        scores=scores,
        curves=_curves(generated, reference) if reader.parts else [],
    )


def _score(name: str, estimate: ScoreEstimate, shared: Measurement, samples: int) -> Score:
    low, high = estimate.interval(name)
    floor = shared.floor.get(name, ScoreEstimate(math.nan, math.nan))
    return Score(
        name=name,
        value=estimate.value,
        error=estimate.error,
        low=low,
        high=high,
        floor=floor.value,
        floor_error=floor.error,
        ceiling=shared.ceiling.get(name, math.nan),
        samples=samples,
    )


def _curves(generated: ImageSample, reference: ImageSample) -> list[Curve]:
    """The share of images by class; empty for more than MOST_CLASSES classes."""
    sides = {"real": reference, "generated": generated}
    shares = {side: sample_scores.class_shares(own.probabilities) for side, own in sides.items()}
    classes = len(shares["real"])
    if classes > MOST_CLASSES:
        return []
    series = [CurveSeries(name=side, values=list(values)) for side, values in shares.items()]
    return [Curve(name="share of images by class", x=list(range(classes)), series=series)]
