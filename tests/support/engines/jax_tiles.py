"""Tiled images on the JAX engine. Only the process with JAX imports this."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime.engines.jax import tiles as products
from gan_runtime.engines.jax.tiles import JaxTileProgram, split
from gan_runtime.engines.tiles import TiledTranslator
from gan_runtime.evaluation.jobs import evaluate
from gan_runtime.jobs.folder import JobDir, JobRequest
from gan_runtime.jobs.process import Task
from gan_runtime.records.home import Home
from tests.support.engines import tile_places, toy_translator


def painted_in_tiles(
    sides: tuple[int, int], precision: str, *ways: tuple[Any, ...]
) -> tuple[list[np.ndarray], list[list[str]]]:
    """The image of each way, and the stages that took time.

    `ways`: the way, and the arguments of `TiledTranslator` after the source.
    """
    source, translator = toy_translator.picture(*sides), toy_translator.translator(precision)
    images, stages = [], []
    for way, *division in ways:
        painter = TiledTranslator(JaxTileProgram, translator, way, source.shape, *division)
        images.append(painter(source))
        stages.append([time.stage for time in painter.stopwatch.times() if time.seconds > 0.0])
    return images, stages


def painted_by_order(precision: str) -> list[np.ndarray]:
    """Like `tile_places.by_order`."""
    return tile_places.by_order(JaxTileProgram, precision)


def transposed_as_product(
    values: np.ndarray, kernel: np.ndarray, strides: tuple[int, ...], padding: str
) -> np.ndarray:
    """Like `transposed` of engines/jax/tiles.py."""
    return np.asarray(
        products.transposed(jnp.asarray(values), jnp.asarray(kernel), strides, padding)
    )


def convolution_as_product(
    values: np.ndarray, kernel: np.ndarray, strides: tuple[int, ...], padding: str
) -> tuple[np.ndarray, list[str]]:
    """Like `JaxProductKernels.convolution`; also returns the names of its operations."""

    def product(values: jax.Array, kernel: jax.Array) -> jax.Array:
        return products.JaxProductKernels(None).convolution(values, kernel, strides, padding)

    traced = jax.make_jaxpr(product)(values, kernel)
    return np.asarray(product(jnp.asarray(values), jnp.asarray(kernel))), [
        equation.primitive.name for equation in traced.jaxpr.eqns
    ]


def split_product(
    weight: np.ndarray, bias: np.ndarray, values: np.ndarray
) -> tuple[np.ndarray, Any, bool]:
    """values @ (2 weight)ᵀ + bias, in two parts; the shapes of the values between them, and whether
    the first part computes (2 weight)ᵀ.
    """

    def function(weights: dict[str, jax.Array], values: jax.Array) -> jax.Array:
        return values @ (2.0 * weights["weight"]).T + weights["bias"]

    weights = {"weight": weight, "bias": bias}
    parts = split(function, weights, values)
    between = parts.ahead(weights)
    turned = any(np.array_equal(np.asarray(array), 2.0 * weight.T) for array in between)
    return (
        np.asarray(parts.rest(*between, values)),
        sorted(shape.shape for shape in parts.between),
        turned,
    )


def iterated(home: Path, run_id: str, options: dict[str, Any]) -> None:
    """Runs the job of a rollout."""
    job = JobDir(home / "jobs" / "iterate-0001")
    job.results.mkdir(parents=True)
    document = {"evaluation": "rollout", "run_id": run_id, **options}
    job.write_request(JobRequest(kind="rollout", options=document, asker="a test"))
    evaluate(Task(Home(home), job, document))
