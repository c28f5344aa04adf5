"""Short runs of real workloads on a few rows, trained in this process.

No framework is imported until an engine is requested.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gan_runtime import catalog
from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.engines.inputs import digest, fixed_inputs
from gan_runtime.records.journal import JournalWriter
from gan_runtime.records.run_folder import RunDir
from gan_runtime.spec import RunSpec
from gan_runtime.training import loop
from gan_runtime.training.recorder import SampleWriter
from tests.support.engines.small_engines import random_images
from tests.support.engines.small_frames import small_flows
from tests.support.engines.small_showers import small_showers

EPOCHS, STEPS_PER_EPOCH, BATCH = 2, 2, 4
COMMON = {"batch_size_global": BATCH, "epochs": EPOCHS, "precision": "float32"}
ROWS = STEPS_PER_EPOCH * BATCH


@dataclass(frozen=True)
class ToyRun:
    """The options and rows of a catalog workload."""

    options: dict[str, Any]
    data: DataSet


PICTURES = picture_set("random", random_images(ROWS), "test")
RUNS: dict[str, ToyRun] = {
    "mlp_gan": ToyRun({}, PICTURES),
    "dcgan_mnist": ToyRun({}, PICTURES),
    "dcgan": ToyRun({"base_channels": 4, "latent_size": 8}, PICTURES),
    "shower_3dgan": ToyRun(
        {"latent_size": 8, "size": "tiny"}, small_showers(ROWS, first_is_empty=False)
    ),
    "pix2pix": ToyRun({"tile": 16, "flip": "vertical"}, small_flows(ROWS)),
}


def trained(name: str, engine_name: str, folder: Path) -> loop.Outcome:
    """Trains one of `RUNS` to its end on the named engine, like a trainer; its records are in
    `folder`.
    """
    toy, module = RUNS[name], importlib.import_module(catalog.WORKLOADS[name].module)
    spec = RunSpec.parse({"workload": name, "engine": engine_name, **COMMON, **toy.options})
    engine = importlib.import_module(catalog.ENGINES[engine_name].module).ENGINE(
        spec, module.WORKLOAD, toy.data, "cpu"
    )
    samples = SampleWriter.of(
        spec, (), digest(fixed_inputs(module.WORKLOAD, spec.of_workload, toy.data), ())
    )
    run = RunDir(folder)
    with JournalWriter(run.trainer_journal(), 1) as writer:
        return loop.train(spec, toy.data.rows, engine, run, writer, lambda: False, samples=samples)
