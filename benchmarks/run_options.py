"""Options and data of sides that run our trainer or engine: a RunSpec from a command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from benchmarks import frame_set, image_set, shower_set
from benchmarks.step_timer import arguments
from benchmarks.trial import MNIST_IMAGES, random_mnist
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec

MNIST, PICTURES, STREAMED = "mnist", "pictures", "streamed"
SHOWERS, SHOWERS_PER_EPOCH, SHOWERS_FULL = "showers", "showers_per_epoch", "showers_full"
FRAMES = "frames"
_IMAGE_OPTIONS = {"workload": "dcgan", "dataset": image_set.NAME}
_SHOWER_OPTIONS = {"workload": "shower_3dgan", "dataset": shower_set.NAME}
# Table 1 on gray digits; a conditional DCGAN on labeled RGB images, in memory or streamed; showers,
# streamed after one conversion, converted at each reading, or on the authors' grid in memory; flow
# frames, streamed.
OPTIONS = {
    MNIST: {"dataset": "mnist"},
    PICTURES: _IMAGE_OPTIONS,
    STREAMED: _IMAGE_OPTIONS,
    SHOWERS: _SHOWER_OPTIONS,
    SHOWERS_PER_EPOCH: _SHOWER_OPTIONS,
    SHOWERS_FULL: {**_SHOWER_OPTIONS, "size": "full"},
    FRAMES: {"workload": "pix2pix", "dataset": frame_set.NAME},
}
GRIDS = {SHOWERS: "tiny", SHOWERS_PER_EPOCH: "tiny", SHOWERS_FULL: "full"}
READ_CONTEXTS = {
    STREAMED: image_set.streaming,
    SHOWERS: shower_set.converted_once,
    SHOWERS_PER_EPOCH: shower_set.converted_per_epoch,
    FRAMES: image_set.streaming,
}
WRITERS = {FRAMES: frame_set.write}  # of sets other than showers and images


def trainer_arguments(description: str) -> argparse.ArgumentParser:
    """The parser of every side, with --images and --set."""
    parser = arguments(description)
    parser.add_argument(
        "--images", type=int, default=MNIST_IMAGES, help="random images in the data set"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="any other option of the run",
    )
    return parser


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """Adds --data, for sides with several data sets."""
    parser.add_argument(
        "--data", choices=tuple(OPTIONS), default=MNIST, help="the workload and its rows"
    )


def spec_of(options: argparse.Namespace, epochs: int, data: str = MNIST) -> RunSpec:
    """The spec of a run on `data`, on the CPU, with the options of --set. Raises SpecError."""
    set_options = dict(setting.split("=", 1) for setting in options.set)
    common = {
        "accelerator": "cpu",
        "precision": options.precision,
        "batch_size_global": options.batch,
        "quality_every": 0,  # the job would run during turns of other sides
    }
    return RunSpec.parse({**OPTIONS[data], **common, "epochs": epochs, **set_options})


@contextmanager
def random_rows(home: Home, images: int, data: str = MNIST) -> Iterator[None]:
    """Makes the data set `images` random rows, for this process and its children."""
    if data == MNIST:
        with random_mnist(images):
            yield
    else:
        if data in GRIDS:
            shower_set.write(home, images, GRIDS[data])
        else:
            WRITERS.get(data, image_set.write)(home, images)
        yield


def reading(data: str) -> AbstractContextManager[None]:
    """The context in which a process reads the data set."""
    return READ_CONTEXTS.get(data, nullcontext)()
