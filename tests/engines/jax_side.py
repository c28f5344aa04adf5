"""What the tests ask of the process with JAX. Only that process imports this."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import keras
import numpy as np

from gan_runtime import catalog
from gan_runtime.data.contract import ImageSet
from gan_runtime.engines import jax_probes, jax_step
from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.jax_kernels import CpuKernels, JaxKernels
from gan_runtime.engines.jax_noise import StepNoise
from gan_runtime.engines.jax_spmd import JaxEngine
from gan_runtime.spec import RunSpec
from tests.engines import same_noise

OWN_NOISE = StepNoise
Numbers = dict[str, np.ndarray]


class SameNoise:
    """See `same_noise`."""

    def __init__(self, seed: int, step: jax.Array, share: jax.Array, phase: int = 0) -> None:  # noqa: ARG002
        self._share, self._stream = share, 100 * phase

    def normal(self, rows: int, columns: int) -> jax.Array:
        self._stream += 1
        return jax.lax.dynamic_slice(
            jnp.asarray(same_noise.latents(self._stream, columns)), (self._share * rows, 0), (rows, columns)
        )

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:
        self._stream += 1
        return values * jnp.asarray(same_noise.mask(self._stream, values.shape, rate), values.dtype)


class NoDropout(OWN_NOISE):
    """The engine's own latents, and every unit kept."""

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:  # noqa: ARG002
        return values


NOISES = {"own": OWN_NOISE, "same": SameNoise, "no_dropout": NoDropout}


def _engine(workload: str, images: np.ndarray, noise: str, **options: Any) -> JaxEngine:
    jax_step.StepNoise = jax_probes.StepNoise = NOISES[noise]  # type: ignore[attr-defined]
    spec = RunSpec.parse({"engine": "jax", "precision": "float32", "batch_size_global": 8, "steps_per_loop": 7, **options})
    chosen = importlib.import_module(catalog.WORKLOADS[workload].module).WORKLOAD
    return JaxEngine(spec, chosen, ImageSet("random", images, "test"), "cpu")


def _trained(engine: JaxEngine, *calls: int) -> Numbers:
    engine.trace()
    numbers = [engine.run(steps).values for steps in calls]
    return {metric: np.concatenate([call[metric] for call in numbers]) for metric in numbers[0]}


def trained_from(
    workload: str, images: np.ndarray, options: dict[str, Any], state: Arrays, steps: int
) -> tuple[list[Numbers], list[Arrays], dict[str, float], dict[str, np.ndarray], np.ndarray]:
    """Numbers and states of some steps and of one more; between them scores, histograms and samples."""
    engine = _engine(workload, images, "same", **options)
    engine.load(state)
    engine.trace()
    engine.mark()
    first = engine.run(steps).values
    between, probe, samples = engine.state(), engine.probe(), engine.sample()
    second = engine.run(1).values
    counts = {one.name: one.counts for one in probe.histograms}
    return [first, second], [between, engine.state()], probe.scores, counts, samples


def trained(workload: str, images: np.ndarray, calls: tuple[int, ...], options: dict[str, Any]) -> tuple[Numbers, Arrays]:
    """Numbers and state of a new engine after some calls."""
    engine = _engine(workload, images, "own", **options)
    return _trained(engine, *calls), engine.state()


def trained_without_dropout(
    workload: str, images: np.ndarray, calls: tuple[int, ...], options: dict[str, Any]
) -> tuple[Numbers, Arrays, dict[str, float]]:
    """Numbers, state and probe scores of a new engine after some calls."""
    engine = _engine(workload, images, "no_dropout", **options)
    return _trained(engine, *calls), engine.state(), engine.probe().scores


def resumed(workload: str, images: np.ndarray, options: dict[str, Any], before: int, after: int) -> tuple[Arrays, Arrays]:
    """States of a run of `before` + `after` steps, and of one that another engine takes up between them."""
    straight, first, second = (_engine(workload, images, "own", **options) for _ in range(3))
    _trained(straight, before, after)
    _trained(first, before)
    second.load(first.state())
    _trained(second, after)
    return straight.state(), second.state()


def overflowed(images: np.ndarray, scale: float) -> tuple[Numbers, Arrays, Arrays]:
    """Numbers of two float16 steps that begin with a loss scale, and the states before and after."""
    engine = _engine("mlp_gan", images, "own", precision="mixed_float16", replicas=2)
    state = engine.state()
    huge = {name: np.float32(scale) for name in state if name.endswith("dynamic_scale")}
    engine.load({**state, **huge})
    before = engine.state()
    return _trained(engine, 2), before, engine.state()


def slowed(images: np.ndarray) -> Numbers:
    """Numbers of two steps, the second at half the rate."""
    engine = _engine("mlp_gan", images, "own")
    first = _trained(engine, 1)
    engine.slow_down(0.5)
    second = engine.run(1).values
    return {metric: np.concatenate([values, second[metric]]) for metric, values in first.items()}


def refused(images: np.ndarray, state: Arrays) -> str:
    """Why a state is not taken up."""
    try:
        _engine("mlp_gan", images, "own").load(state)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def kernels(images: np.ndarray, options: dict[str, Any]) -> dict[str, int | None]:
    """What a traced step is made of, and how often its compiled call exchanges numbers."""
    engine = _engine("dcgan_mnist", images, "own", **options)
    engine.trace()
    text = engine._lowered.compile().as_text()
    return {**asdict(engine.kernels()), "exchanges": text.count(" all-reduce("), "hands_over": text.count("input_output_alias")}


def noise(replicas: int, rate: float) -> dict[str, np.ndarray]:
    """Latents of a batch of 8 in shares, and masks by (step, replica)."""
    rows = 8 // replicas
    normals = [OWN_NOISE(1, jnp.int32(5), jnp.int32(share)).normal(rows, 3) for share in range(replicas)]
    masks = {
        f"mask {step} {share}": OWN_NOISE(1, jnp.int32(step), jnp.int32(share)).dropout(jnp.ones((100, 100)), rate)
        for step in (1, 2)
        for share in (0, 1)
    }
    many = OWN_NOISE(1, jnp.int32(6), jnp.int32(0)).normal(1000, 100)
    return {name: np.asarray(value) for name, value in {"normal": jnp.concatenate(normals), "many": many, **masks}.items()}


def layers_and_kernels(kind: str, shape: tuple[int, int, int], stride: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Values and gradients by input and kernel of (Keras' layer, our kernel), for a convolution and a transposed one."""
    size, channels, filters = shape
    random = np.random.default_rng(0)
    own = {"plain": JaxKernels, "cpu": CpuKernels}[kind](None)
    found = {}
    for name, layer, kernel_of in (
        ("convolution", keras.layers.Conv2D, own.convolution),
        ("transposed", keras.layers.Conv2DTranspose, own.transposed_convolution),
    ):
        images = jnp.asarray(random.standard_normal((2, size, size, channels)), jnp.float32)
        built = layer(filters, 5, stride, padding="same", use_bias=False)
        built.build(images.shape)
        kernel = jnp.asarray(built.kernel)

        def keras_way(images: jax.Array, kernel: jax.Array, layer: Any = built) -> jax.Array:
            outputs, _ = layer.stateless_call([kernel], [], images)
            return outputs

        def our_way(images: jax.Array, kernel: jax.Array, kernel_of: Any = kernel_of) -> jax.Array:
            return kernel_of(images, kernel, stride)

        ways = []
        for way in (keras_way, our_way):
            outputs, back = jax.vjp(way, images, kernel)
            by_images, by_kernel = back(jnp.cos(outputs))
            second = jax.grad(_slope_of_inputs, argnums=2)(way, images, kernel)
            ways.append([np.asarray(one) for one in (outputs, by_images, by_kernel, second)])
        found[name] = list(zip(*ways, strict=True))
    return found


def _slope_of_inputs(way: Any, images: jax.Array, kernel: jax.Array) -> jax.Array:
    """As the R1 penalty has it: a gradient within a gradient."""
    return jnp.square(jax.grad(lambda values: jnp.sin(way(values, kernel)).sum())(images)).sum()


def loaded() -> list[str]:
    """Frameworks in this process."""
    return [name for name in ("tensorflow", "torch") if name in sys.modules]


def probed_in_float16(images: np.ndarray, scale: float) -> tuple[list[str], dict[str, float]]:
    """Names of histograms, and scores, of a probe under a loss scale."""
    engine = _engine("mlp_gan", images, "own", precision="mixed_float16")
    state = engine.state()
    engine.load({**state, **{name: np.float32(scale) for name in state if name.endswith("dynamic_scale")}})
    found = engine.probe()
    return [item.name for item in found.histograms], found.scores
