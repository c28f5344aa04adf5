"""Functions that tests call in the process with JAX. Only that process imports this."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime import catalog
from gan_runtime.data.contract import DataSet, picture_set
from gan_runtime.engines.contract import Arrays, ProbeResult
from gan_runtime.engines.inputs import fixed_inputs
from gan_runtime.engines.jax import inference as jax_inference
from gan_runtime.engines.jax import step as jax_step
from gan_runtime.engines.jax.engine import JaxEngine
from gan_runtime.engines.jax.inputs import JaxRequestNoise, JaxStepNoise
from gan_runtime.spec import RunSpec
from tests.support.engines import same_noise
from tests.support.engines.conditional_gan import CONDITIONAL_GAN, SHORT_CONDITIONAL_GAN
from tests.support.engines.overflowing import OVERFLOWING
from tests.support.engines.tiny_gan import REFUSED, SCHEDULED_GAN, SPECTRAL_GAN, TINY_GAN

OWN_NOISE, OWN_REQUEST_NOISE = JaxStepNoise, JaxRequestNoise
RATES = ("learning_rate_generator", "learning_rate_discriminator")
Numbers = dict[str, np.ndarray]


class SameNoise:
    """The noise of `same_noise` in the JAX engine."""

    def __init__(self, seed: int, step: jax.Array, share: jax.Array, place: int = 0) -> None:
        self._seed, self._step, self._share, self._stream = seed, step, share, 100 * place

    def normal(self, rows: int, *shape: int) -> jax.Array:
        return self._own_rows(same_noise.normal, rows, shape)

    def uniform(self, rows: int, *shape: int) -> jax.Array:
        return self._own_rows(same_noise.uniform, rows, shape)

    def _own_rows(self, table_of: Any, rows: int, shape: tuple[int, ...]) -> jax.Array:
        self._stream += 1
        table = jnp.asarray(table_of(self._seed, self._stream, shape))[self._step]
        return jax.lax.dynamic_slice_in_dim(table, self._share * rows, rows)

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:
        self._stream += 1
        if (
            rate == 0.0
        ):  # a table of ones for each unit of a large network would take longer than its step
            return values
        mask = jnp.asarray(same_noise.mask(self._seed, self._stream, values.shape, rate))[
            self._step, self._share
        ]
        return values * (mask / (1.0 - rate)).astype(values.dtype)


class SameRequestNoise(SameNoise):
    """The same noise for requested rows, in one chunk."""

    def __init__(self, seed: jax.Array, share: jax.Array, first: jax.Array) -> None:  # noqa: ARG002
        super().__init__(0, seed, share, 1)


class NoDropout(OWN_NOISE):
    """The engine's own latents, without dropout."""

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:  # noqa: ARG002
        return values


# In addition to the catalog's workloads.
WORKLOADS = {
    "tiny": TINY_GAN,
    "spectral": SPECTRAL_GAN,
    "overflowing": OVERFLOWING,
    "scheduled": SCHEDULED_GAN,
    "conditional": CONDITIONAL_GAN,
    "short_conditional": SHORT_CONDITIONAL_GAN,
    **{name: workload for name, (workload, _) in REFUSED.items()},
}
NOISES = {"own": OWN_NOISE, "same": SameNoise, "no_dropout": NoDropout}
Data = np.ndarray | DataSet  # images, or a whole data set


def new_engine(workload: str, data: Data, noise: str, **options: Any) -> JaxEngine:
    """An engine for a workload of the catalog or of `WORKLOADS`, with one of `NOISES`; batches of
    8, float32.
    """
    jax_step.JaxStepNoise = jax_inference.JaxStepNoise = NOISES[noise]  # type: ignore[attr-defined]
    jax_inference.JaxRequestNoise = SameRequestNoise if noise == "same" else OWN_REQUEST_NOISE  # type: ignore[attr-defined]
    spec = RunSpec.parse(
        {"engine": "jax", "precision": "float32", "batch_size_global": 8, "steps_per_loop": 7}
        | ({"workload": workload} if workload in catalog.WORKLOADS else {})
        | options
    )
    workload_of_spec = (
        WORKLOADS.get(workload)
        or importlib.import_module(catalog.WORKLOADS[workload].module).WORKLOAD
    )
    rows = picture_set("random", data, "test") if isinstance(data, np.ndarray) else data
    return JaxEngine(spec, workload_of_spec, rows, "cpu")


def _trained(engine: JaxEngine, *calls: int) -> Numbers:
    engine.trace()
    numbers = [engine.run(steps).values for steps in calls]
    return {
        metric: np.concatenate([call[metric] for call in numbers])
        for metric in (numbers[0] if numbers else {})
    }


def trained_from(
    workload: str, data: Data, options: dict[str, Any], state: Arrays, steps: int
) -> tuple[list[Numbers], list[Arrays], ProbeResult, Arrays]:
    """Numbers and states of `steps` steps and of one more, with a probe and samples in between."""
    engine = new_engine(workload, data, "same", **options)
    engine.load(state)
    engine.trace()
    engine.mark()
    first = engine.run(steps).values
    between, probe, samples = engine.state(), engine.probe(), engine.sample()
    second = engine.run(1).values
    return [first, second], [between, engine.state()], probe, samples


def trained(
    workload: str, data: Data, calls: tuple[int, ...], options: dict[str, Any]
) -> tuple[Numbers, Arrays]:
    """Numbers and state of a new engine after some calls."""
    engine = new_engine(workload, data, "own", **options)
    return _trained(engine, *calls), engine.state()


def averaged(
    images: np.ndarray, networks: tuple[str, ...], options: dict[str, Any], steps: int
) -> list[Arrays]:
    """States of the tiny workload before its first step and after each step, with averages of these
    networks.
    """
    name = RunSpec.parse({}).workload
    entry = catalog.WORKLOADS[name]
    catalog.WORKLOADS[name] = replace(entry, averaged=networks)  # type: ignore[index]
    try:
        engine = new_engine("tiny", images, "own", **options)
        states = [engine.state()]
        engine.trace()
        for _ in range(steps):
            engine.run(1)
            states.append(engine.state())
    finally:
        catalog.WORKLOADS[name] = entry  # type: ignore[index]
    return states


def trained_and_shown(
    workload: str, data: Data, calls: tuple[int, ...], options: dict[str, Any]
) -> tuple[Numbers, Arrays]:
    """Numbers of a new engine, and its samples after them."""
    engine = new_engine(workload, data, "own", **options)
    numbers = _trained(engine, *calls)
    return numbers, engine.sample()


def state_before_and_after(
    workload: str, data: Data, steps: int, options: dict[str, Any]
) -> tuple[Arrays, Arrays, Arrays]:
    """A copy of a state, the original arrays after `steps` further steps, and the state then."""
    engine = new_engine(workload, data, "own", **options)
    _trained(engine, 1)
    state = engine.state()
    before = {name: array.copy() for name, array in state.items()}
    _trained(engine, steps)
    return before, state, engine.state()


def trained_and_probed(
    data: Data, calls: tuple[int, ...], options: dict[str, Any]
) -> tuple[Numbers, Arrays, Numbers]:
    """Numbers and state of the conditional workload, and its judgements before the training."""
    engine = new_engine("conditional", data, "own", **options)
    scores = engine.probe().scores
    judged = {
        name: np.asarray(value) for name, value in scores.items() if not name.startswith("gradient")
    }
    return _trained(engine, *calls), engine.state(), judged


def generated(
    data: Data, count: int, options: dict[str, Any], *seeds: int
) -> tuple[Arrays, list[Arrays]]:
    """The samples of the conditional workload, and for each seed `count` rows generated from the
    same inputs.
    """
    engine = new_engine("conditional", data, "own", **options)
    inputs = fixed_inputs(CONDITIONAL_GAN, None, data, count)
    return engine.sample(), [engine.generate(inputs, seed) for seed in seeds]


def trained_without_dropout(
    workload: str, images: np.ndarray, calls: tuple[int, ...], options: dict[str, Any]
) -> tuple[Numbers, Arrays, dict[str, float], float]:
    """Numbers, state and probe scores of a new engine after some calls, and the spread of its
    images as computed by NumPy.
    """
    engine = new_engine(workload, images, "no_dropout", **options)
    return (
        _trained(engine, *calls),
        engine.state(),
        engine.probe().scores,
        _spread_of_generated(engine, len(images)),
    )


def _spread_of_generated(engine: JaxEngine, images: int) -> float:
    """Mean over the pixels of their variance over `images` generated images; each replica's batch
    norm sees only its own share.
    """
    replicas = engine.mesh.size
    noise = OWN_NOISE(engine.spec.seed, jnp.int32(engine.state()["step"]), jnp.int32(0))
    latents = noise.normal(images, engine.task.workload.latent_size)  # type: ignore[attr-defined]
    state = {name: jnp.asarray(array) for name, array in engine.state().items()}
    with engine.model.scope(state):
        generator = engine.model.networks["generator"]
        shares = [
            np.asarray(generator(share, training=True)) for share in jnp.split(latents, replicas)
        ]
    return float(np.concatenate(shares).var(axis=0).mean())


def resumed(
    workload: str, data: Data, options: dict[str, Any], before: int, after: int
) -> tuple[Arrays, Arrays]:
    """Final states of a run of `before` + `after` steps, and of a run that another engine resumes
    in between.
    """
    straight, second = (new_engine(workload, data, "own", **options) for _ in range(2))
    _trained(straight, before)
    second.load(straight.state())
    straight.run(after)
    _trained(second, after)
    return straight.state(), second.state()


def scaled(images: np.ndarray, scales: dict[str, float]) -> tuple[Arrays, Arrays]:
    """States before and after a float16 step whose networks have separate loss scales."""
    engine = new_engine(
        "mlp_gan",
        images,
        "own",
        precision="mixed_float16",
        optimizer="sgd",
        **dict.fromkeys(RATES, 1.0),
    )
    engine.load({**engine.state(), **_loss_scales(engine, scales)})
    before = engine.state()
    _trained(engine, 1)
    return before, engine.state()


def overflowed(images: np.ndarray, seed: int) -> tuple[Numbers, list[Arrays]]:
    """Numbers of two float16 steps on two replicas, and the states before, between and after;
    see `Overflowing`.
    """
    engine = new_engine(
        "overflowing", images, "own", precision="mixed_float16", replicas=2, seed=seed
    )
    engine.trace()
    states, numbers = [engine.state()], []
    for _ in range(2):
        numbers.append(engine.run(1).values)
        states.append(engine.state())
    return {
        metric: np.concatenate([call[metric] for call in numbers]) for metric in numbers[0]
    }, states


def _loss_scales(engine: JaxEngine, scales: dict[str, float]) -> Arrays:
    names = [name for name in engine.state() if name.endswith("dynamic_scale")]
    return {
        name: np.float32(scales[network])
        for name in names
        for network in scales
        if f"optimizer_{network}/" in name
    }


def slowed(images: np.ndarray) -> Numbers:
    """Numbers of two steps, the second at half the rate."""
    engine = new_engine("mlp_gan", images, "own")
    first = _trained(engine, 1)
    engine.slow_down(0.5)
    second = engine.run(1).values
    return {metric: np.concatenate([values, second[metric]]) for metric, values in first.items()}


def refused(images: np.ndarray, state: Arrays) -> str:
    """The error that loading a state raises; empty if it raises none."""
    try:
        new_engine("mlp_gan", images, "own").load(state)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def kernels(workload: str, images: np.ndarray, options: dict[str, Any]) -> dict[str, int | None]:
    """Kernel counts of a traced step, and exchanges and buffer aliases of its compiled call."""
    engine = new_engine(workload, images, "own", **options)
    engine.trace()
    text = engine.lowered.compile().as_text()
    return {
        **asdict(engine.kernels()),
        "exchanges": text.count(" all-reduce("),
        "hands_over": text.count("input_output_alias"),
    }


def noise(replicas: int, rate: float) -> dict[str, np.ndarray]:
    """Latents of a batch of 8, drawn in shares, and dropout masks by (step, replica)."""
    rows = 8 // replicas
    normals = [
        OWN_NOISE(1, jnp.int32(5), jnp.int32(share)).normal(rows, 3) for share in range(replicas)
    ]
    masks = {
        f"mask {step} {share}": (
            OWN_NOISE(1, jnp.int32(step), jnp.int32(share)).dropout(jnp.ones((100, 100)), rate)
        )
        for step in (1, 2)
        for share in (0, 1)
    }
    many = OWN_NOISE(1, jnp.int32(6), jnp.int32(0)).normal(1000, 100)
    return {
        name: np.asarray(value)
        for name, value in {"normal": jnp.concatenate(normals), "many": many, **masks}.items()
    }


def loaded() -> list[str]:
    """The other frameworks that this process has loaded."""
    return [name for name in ("tensorflow", "torch") if name in sys.modules]


def probed_in_float16(images: np.ndarray, scale: float) -> tuple[list[str], dict[str, float]]:
    """Histogram names and scores of a probe under a loss scale."""
    engine = new_engine("mlp_gan", images, "own", precision="mixed_float16")
    state = engine.state()
    engine.load(
        {**state, **{name: np.float32(scale) for name in state if name.endswith("dynamic_scale")}}
    )
    probe = engine.probe()
    return [histogram.name for histogram in probe.histograms], probe.scores
