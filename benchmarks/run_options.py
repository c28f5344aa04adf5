"""The options and the data of those sides that are runs of our trainer: a RunSpec from a
benchmark's command line.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from benchmarks import frame_set, picture_set, shower_set
from benchmarks.step_timer import arguments
from benchmarks.trial import MNIST_IMAGES, random_mnist
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec

MNIST, PICTURES, STREAMED = "mnist", "pictures", "streamed"
SHOWERS, SHOWERS_PER_EPOCH, SHOWERS_FULL = "showers", "showers_anew", "showers_full"
FRAMES = "frames"
_OF_PICTURES = {"workload": "dcgan", "dataset": picture_set.NAME}
_OF_SHOWERS = {"workload": "shower_3dgan", "dataset": shower_set.NAME}
# Table 1 on gray digits; a conditional DCGAN on labeled RGB images, which are held in memory or
# streamed; showers, which are streamed as converted once, or converted again whenever they
# are read, or on the authors' grid in memory; frames of a flow, which are streamed.
OPTIONS = {
    MNIST: {"dataset": "mnist"},
    PICTURES: _OF_PICTURES,
    STREAMED: _OF_PICTURES,
    SHOWERS: _OF_SHOWERS,
    SHOWERS_PER_EPOCH: _OF_SHOWERS,
    SHOWERS_FULL: {**_OF_SHOWERS, "size": "full"},
    FRAMES: {"workload": "pix2pix", "dataset": frame_set.NAME},
}
GRIDS = {SHOWERS: "tiny", SHOWERS_PER_EPOCH: "tiny", SHOWERS_FULL: "full"}
READING = {
    STREAMED: picture_set.streaming,
    SHOWERS: shower_set.converted_once,
    SHOWERS_PER_EPOCH: shower_set.converted_per_epoch,
    FRAMES: picture_set.streaming,
}
WRITING = {FRAMES: frame_set.write}  # all other sets are images


def trainer_arguments(description: str) -> argparse.ArgumentParser:
    """Those of every loop, and any option of a run."""
    parser = arguments(description)
    parser.add_argument("--images", type=int, default=MNIST_IMAGES, help="random images in the set")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="any other option of the run",
    )
    return parser


def add_data_argument(parser: argparse.ArgumentParser) -> None:
    """--data, for sides that can stream."""
    parser.add_argument(
        "--data", choices=tuple(OPTIONS), default=MNIST, help="the workload and its rows"
    )


def spec_of(options: argparse.Namespace, epochs: int, data: str = MNIST) -> RunSpec:
    """The spec of `data`, on the CPU, with further options. Raises SpecError."""
    further = dict(setting.split("=", 1) for setting in options.set)
    usual = {
        "accelerator": "cpu",
        "precision": options.precision,
        "batch_size_global": options.batch,
        "quality_every": 0,  # a job next to the run would also run in the turns of other sides
    }
    return RunSpec.parse({**OPTIONS[data], **usual, "epochs": epochs, **further})


@contextmanager
def random_rows(home: Home, images: int, data: str = MNIST) -> Iterator[None]:
    """Replaces the data set with `images` random rows, for this process and its children."""
    if data == MNIST:
        with random_mnist(images):
            yield
    else:
        if data in GRIDS:
            shower_set.write(home, images, GRIDS[data])
        else:
            WRITING.get(data, picture_set.write)(home, images)
        yield


def reading(data: str) -> AbstractContextManager[None]:
    """The context in which a trainer reads the data set."""
    return READING.get(data, nullcontext)()
