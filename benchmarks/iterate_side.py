"""A rollout as a side: the small generator of Pix2Pix predicts frames of 80 × 192 pixels, in tiles
of 64 pixels or whole (engines/tiles.py). A step is a frame, without tracing and compiling.

The weights are untrained, since their values do not change the time of a step. The process is set
up as that of the background job `iterate`.

python -m benchmarks.iterate_side --engine tensorflow|jax --way naive|map_reduce|whole --cores 2
--precision float32 [--serve] [--steps N]
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable

import numpy as np

from benchmarks import frame_set
from benchmarks.step_timer import arguments, serve_or_print
from gan_runtime import catalog
from gan_runtime.base.fields import SOURCE
from gan_runtime.domains.flows import rollout
from gan_runtime.domains.flows.fields import flow_fields
from gan_runtime.engines.task import workload_of
from gan_runtime.engines.tiles import WAYS, ImageArray, TiledTranslator, Translator
from gan_runtime.spec import RunSpec


def new_translator(spec: RunSpec, cores: int) -> Translator:
    """A translator with untrained weights."""
    import keras

    if spec.engine == "tensorflow":
        from gan_runtime.engines.tf.strategy import simulated_cores

        # The first variable fixes the number of TensorFlow's devices.
        simulated_cores(cores)
    keras.utils.set_random_seed(1)
    keras.config.set_dtype_policy(spec.precision)
    workload, options = workload_of(spec), spec.of_workload
    fields = spec.entry.reads(options, flow_fields(frame_set.HEIGHT, frame_set.WIDTH))
    name = spec.entry.averages[0]
    network = workload.networks(options, fields)[name]
    arrays = {variable.path: np.asarray(variable) for variable in network.variables}
    return Translator(workload, options, fields, name, spec.precision, arrays)  # type: ignore[arg-type]


def make_step(options: argparse.Namespace) -> Callable[[], ImageArray]:
    """A call that predicts the next frame from the previous frame."""
    spec = RunSpec.parse(
        {"workload": "pix2pix", "engine": options.engine, "precision": options.precision}
    )
    rollout.set_flags(spec)
    translator = new_translator(spec, options.cores)
    program = importlib.import_module(catalog.engine(spec.engine).tiles).TILE_PROGRAM
    shape = translator.fields[SOURCE].shape
    source = np.random.default_rng(1).uniform(-1.0, 1.0, shape).astype(np.float32)
    predict = TiledTranslator(program, translator, options.way, shape, options.cores)

    def step() -> ImageArray:
        outputs = predict(source)
        source[..., : outputs.shape[-1]] = outputs
        return outputs

    return step


def main() -> None:
    """Serves turns, or prints one line."""
    parser = arguments("Times a rollout.")
    parser.add_argument("--engine", choices=("tensorflow", "jax"), required=True)
    parser.add_argument("--way", choices=WAYS, required=True)
    parser.add_argument("--cores", type=int, default=2, help="simulated cores of map_reduce")
    options = parser.parse_args()
    serve_or_print(options, make_step(options))


if __name__ == "__main__":
    main()
