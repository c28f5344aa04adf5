"""The options of those sides that are runs of our trainer: a RunSpec from the command line of a benchmark."""

from __future__ import annotations

import argparse

from benchmarks.step_timer import arguments
from benchmarks.trial import MNIST_IMAGES
from gan_runtime.spec import RunSpec


def trainer_arguments(description: str) -> argparse.ArgumentParser:
    """Those of every loop, and any option of a run."""
    parser = arguments(description)
    parser.add_argument("--images", type=int, default=MNIST_IMAGES, help="random images in the set")
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE", help="any other option of the run"
    )
    return parser


def spec_of(given: argparse.Namespace, epochs: int) -> RunSpec:
    """Table 1 on random MNIST images. Raises SpecError."""
    further = dict(setting.split("=", 1) for setting in given.set)
    usual = {
        "dataset": "mnist",
        "accelerator": "cpu",
        "precision": given.precision,
        "batch_size_global": given.batch,
    }
    return RunSpec.parse({**usual, "epochs": epochs, **further})
