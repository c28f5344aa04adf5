"""The targets of all figures, as a literal table.

The figures themselves come from the results only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Target:
    """`limit`: the lowest (at_least) or highest (at_most) allowed value, in the unit of the figure.

    `unit`: how it is written; a figure in "%" is a share, 0.02 is 2%.
    """

    row: str
    name: str
    title: str
    direction: Literal["at_least", "at_most"]
    limit: float
    unit: Literal["", "%", "s", "MB"] = ""

    def is_met_by(self, figure: dict[str, Any]) -> bool:
        """By the ratio of all steps and all seconds where the figure has one, since a median hides
        rare events. A figure at the limit meets it.
        """
        value = figure.get("of_totals", figure["value"])
        return bool(value >= self.limit if self.direction == "at_least" else value <= self.limit)


TARGETS = (
    Target(
        "training",
        "over_keras_mixed_bfloat16",
        "times the plain Keras loop, bfloat16",
        "at_least",
        1.35,
    ),
    Target(
        "training", "over_keras_float32", "times the plain Keras loop, float32", "at_least", 1.1
    ),
    Target("training", "over_torch_mixed_bfloat16", "times PyTorch, bfloat16", "at_least", 1.75),
    Target("training", "over_torch_float32", "times PyTorch, float32", "at_least", 1.5),
    Target(
        "training",
        "best_over_keras_float32",
        "best setting (bfloat16), times plain float32 Keras",
        "at_least",
        1.65,
    ),
    Target(
        "conditional",
        "over_keras_mixed_bfloat16",
        "conditional, 64 × 64 RGB, times the plain Keras loop, bfloat16",
        "at_least",
        1.15,
    ),
    Target(
        "conditional",
        "over_keras_float32",
        "conditional, 64 × 64 RGB, times the plain Keras loop, float32",
        "at_least",
        1.0,
    ),
    Target(
        "engines",
        "jax_over_tensorflow_mixed_bfloat16",
        "time of a JAX step on a CPU, times TensorFlow's, bfloat16",
        "at_most",
        2.0,
    ),
    Target(
        "engines",
        "jax_over_tensorflow_float32",
        "time of a JAX step on a CPU, times TensorFlow's, float32",
        "at_most",
        2.0,
    ),
    Target("replicas", "replicas_8_over_1", "8 simulated replicas, times one", "at_least", 0.9),
    Target(
        "workers",
        "workers_2_over_1",
        "2 worker processes on the same cores, times one",
        "at_least",
        0.75,
    ),
    Target(
        "overhead",
        "overhead",
        "cost of journal, probes and checkpoints, share of throughput",
        "at_most",
        0.02,
        "%",
    ),
    Target("input", "input_share", "share of input in the profile of a step", "at_most", 0.01, "%"),
    Target(
        "streaming",
        "streaming_overhead",
        "streaming rows from disk, share of a step",
        "at_most",
        0.03,
        "%",
    ),
    Target(
        "streaming",
        "input_share",
        "waiting for streamed rows, in the profile of a step",
        "at_most",
        0.01,
        "%",
    ),
    Target(
        "preprocessing",
        "converted_over_each_epoch",
        "reading showers converted once, times converting in each epoch",
        "at_least",
        3.0,
    ),
    Target(
        "preprocessing",
        "input_share",
        "waiting for showers converted once, in the profile of a step",
        "at_most",
        0.01,
        "%",
    ),
    Target(
        "preprocessing",
        "simulated_per_s",
        "simulated showers of 100 GeV per second, one core",
        "at_least",
        300.0,
    ),
    Target(
        "showers",
        "over_keras_mixed_bfloat16",
        "3DGAN, small, times the plain Keras model, bfloat16",
        "at_least",
        1.2,
    ),
    Target(
        "showers",
        "over_keras_float32",
        "3DGAN, small, times the plain Keras model, float32",
        "at_least",
        1.2,
    ),
    Target(
        "showers",
        "replicas_8_over_1",
        "3DGAN, small, 8 simulated replicas, times one",
        "at_least",
        0.9,
    ),
    Target(
        "showers",
        "full_peak_mb",
        "3DGAN, the authors' networks, memory of a run, 8 showers a step, one after another",
        "at_most",
        16_000.0,
        "MB",
    ),
    Target(
        "pix2pix",
        "over_keras_mixed_bfloat16",
        "Pix2Pix, small, times the plain Keras model, bfloat16",
        "at_least",
        1.2,
    ),
    Target(
        "pix2pix",
        "over_keras_mixed_bfloat16_first_epoch",
        "the same in the first epoch, frames from the disk",
        "at_least",
        1.2,
    ),
    Target(
        "pix2pix",
        "over_keras_float32",
        "Pix2Pix, small, times the plain Keras model, float32",
        "at_least",
        1.2,
    ),
    Target(
        "pix2pix",
        "over_keras_float32_first_epoch",
        "the same in the first epoch, frames from the disk",
        "at_least",
        1.2,
    ),
    Target(
        "iterate",
        "map_reduce_over_whole_tensorflow",
        "map-reduce on 2 simulated cores, times the whole frame, TensorFlow",
        "at_least",
        0.95,
    ),
    Target(
        "iterate",
        "map_reduce_over_whole_jax",
        "map-reduce on 2 simulated cores, times the whole frame, JAX",
        "at_least",
        0.95,
    ),
    Target(
        "matrix",
        "share_of_matrix_rate",
        "share of the machine's bfloat16 rate (yardsticks below)",
        "at_least",
        0.6,
        "%",
    ),
    Target(
        "cycles",
        "cycles_of_keras",
        "cycles of a TPU v3 step, estimated, over plain Keras on JAX",
        "at_most",
        0.687,
        "%",
    ),
    Target(
        "pair_cycles",
        "pair_cycles_of_keras",
        "cycles of full-size Pix2Pix on a TPU v3, estimated, over plain Keras on JAX",
        "at_most",
        0.7,
        "%",
    ),
    Target(
        "cycles",
        "shower_epoch_s",
        "epoch of CERN's 3DGAN on a TPU v3-8, estimated",
        "at_most",
        120.0,
        "s",
    ),
    Target(
        "dashboard",
        "first_page_s",
        "from dashboard start until Home is drawn",
        "at_most",
        3.0,
        "s",
    ),
    Target(
        "dashboard",
        "first_point_s",
        "from the click on Home, once it is drawn, to the first loss on the page",
        "at_most",
        5.0,
        "s",
    ),
    Target(
        "dashboard",
        "next_point_s",
        "the same for a later run, 10 s after Launch is drawn",
        "at_most",
        4.0,
        "s",
    ),
    Target(
        "dashboard",
        "memory_mb",
        "resident memory of the dashboard, after visiting every page",
        "at_most",
        300.0,
        "MB",
    ),
    Target(
        "pages",
        "slowest_first_visit_s",
        "slowest page of a large home, first visit",
        "at_most",
        1.0,
        "s",
    ),
    Target(
        "pages",
        "slowest_page_s",
        "slowest page of a large home, second visit",
        "at_most",
        1.0,
        "s",
    ),
)
