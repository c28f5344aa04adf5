"""The evaluation of generated images: its options, and the runs that it applies to.

Scores compare with real images, or for image-to-image networks with targets, by the features of a
small classifier of the same data set, of an ImageNet network, or of the Inception network of FID.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_args

from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import LABELS, TARGET, Fields, imitated
from gan_runtime.base.options import OptionRecord, option
from gan_runtime.catalog.entries import Options, WorkloadEntry
from gan_runtime.catalog.evaluation import Evaluation, WhileTraining
from gan_runtime.catalog.facts import FactTypes
from gan_runtime.data import loading
from gan_runtime.evaluation import image_features, sample_scores
from gan_runtime.evaluation.image_classifier import FEWEST_IMAGES
from gan_runtime.evaluation.mobilenet_file import has_mobilenet
from gan_runtime.evaluation.quality_scores import QUALITY, QUALITY_METRICS, QualityFacts
from gan_runtime.evaluation.sample_scores import Features
from gan_runtime.jobs.job import ON_THE_CPU
from gan_runtime.records.home import Home
from gan_runtime.records.run_folder import RunDir
from gan_runtime.training import checkpoints
from gan_runtime.training.inference import State


class QualityOptions(OptionRecord):
    """The options: checkpoint, number of images, and features."""

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
        le=sample_scores.IMAGES_OF_FID,
        help=(
            "How many are generated and compared with as many real ones; at most half of these. FID"
            " needs 50,000."
        ),
        error="use about 2000.",
    )
    features: Features = option(
        "classifier",
        label="Features",
        choices=get_args(Features),
        help=(
            "'classifier' of the same data set, which needs labels. 'imagenet': MobileNetV2,"
            " downloaded once. 'inception': FID and KID, where its weights are on this machine."
        ),
        error="use classifier, imagenet or inception.",
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
    """Applies to workloads that generate images, single ones or those of pairs."""
    if imitated(fields):
        return ""
    return (
        f"Quality needs a data set of images, single or in pairs, but the {' and '.join(fields)} of"
        " this run's are not images. Pick a run on images."
    )


def lacking(home: Home, run: RunDir) -> str:
    """The reason why a run has no classifier: its data set has no labels, or pairs."""
    name = run.spec().dataset
    fields = loading.fields_of(name, home)
    if imitated(fields) == TARGET:
        return f"A classifier needs labels, but data set {name} has pairs: use features=imagenet."
    if LABELS in fields:
        return ""
    return (
        f"A classifier needs labels, but data set {name} has none: use features=imagenet, or train"
        " on a data set prepared from a folder with one subfolder per class."
    )


def too_few_pairs(home: Home, run: RunDir) -> str:
    """The reason why the pairs of a run are not measured; "" for enough, and for single images."""
    name = run.spec().dataset
    if imitated(loading.fields_of(name, home)) != TARGET:
        return ""
    count = loading.held_out(name, home)
    if count >= FEWEST_IMAGES:
        return ""
    return (
        f"Quality compares outputs for held-out pairs, but data set {name} has {count}: prepare it"
        f" so that {FEWEST_IMAGES} or more are held out."
    )


def check(home: Home, run: RunDir, options: QualityOptions) -> None:
    """Raises DatasetError if the classifier lacks labels or too few pairs are held out, JobError if
    FID lacks its weights.
    """
    if reason := too_few_pairs(home, run):
        raise DatasetError(reason)
    if options.features == "classifier" and (reason := lacking(home, run)):
        raise DatasetError(reason)
    if options.features == "inception":
        image_features.inception_file(folder_of(home))


def usual(home: Home, run: RunDir) -> dict[str, str]:
    """Default options of a run: the best checkpoint if it has one, and ImageNet features without
    labels.
    """
    return {
        "checkpoint": "best" if "best" in checkpoints.steps(run.checkpoints) else "newest",
        "features": "imagenet" if lacking(home, run) else "classifier",
    }


def without_download(home: Home, run: RunDir) -> dict[str, str]:
    """Options of a measurement that no user has requested: ImageNet features only if their weights
    are on this machine. Raises DatasetError.
    """
    features = usual(home, run)["features"]
    if features == "imagenet" and not has_mobilenet():
        features = "classifier"  # refused, as the data set has no labels
    return {"checkpoint": "newest", "features": features}


def folder_of(home: Home) -> Path:
    """The folder of a home with its classifiers and the Inception weights."""
    return home.path / "classifiers"


QUALITY_OF_IMAGES = Evaluation(
    name=QUALITY,
    title="Quality of images",
    summary=(
        "Scores of generated images against real ones, each with a 95% interval. Distances (FCD,"
        " KCD, FID), precision, recall, coverage, classes, and copies of training images."
    ),
    verb="Measure quality",
    options=QualityOptions,
    applies=applies,
    usual=usual,
    lacking=too_few_pairs,
    check=check,
    scores=QUALITY_METRICS,
    facts=FactTypes(answer=QualityFacts),
    defining_facts=("classifier", "weights", "protocol"),
    caution="inaccurate classifier",
    while_training=WhileTraining("quality_every", without_download),
    verdict="gan_runtime.evaluation.quality_verdict:verdict",
    page="dashboard.evaluation.images:PAGE",
    work="gan_runtime.evaluation.quality_measurement:measure",
    busy="the quality of run {run_id} is being measured",
    stored="what was measured until then is stored",
    # With matrices of 128 × 128, several linear-algebra threads slow each other down.
    environment={**ON_THE_CPU, "OPENBLAS_NUM_THREADS": "1"},
)
