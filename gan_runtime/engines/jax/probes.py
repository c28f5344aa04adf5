"""What is looked at once an epoch: score, weight and gradient histograms, scores of the training, sample grids.

Passes run on all replicas; weights and gradients, which are the same everywhere, are counted on the first one.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from gan_runtime.engines.contract import ProbeResult
from gan_runtime.engines.jax.arrays import on_first_device, placed
from gan_runtime.engines.jax.call import EVERYWHERE
from gan_runtime.engines.jax.model import Model, State
from gan_runtime.engines.jax.noise import StepNoise
from gan_runtime.engines.jax.step import AXIS, Numbers, ReplicaStep, to_unit_range
from gan_runtime.engines.probing import (
    NORM,
    PROBE_IMAGES,
    SCORE_BINS,
    SCORE_RANGE,
    UNDECIDED,
    WEIGHT_BINS,
    parts,
    probed,
)
from gan_runtime.engines.sample_latents import SAMPLES, sample_latents
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload

BY_REPLICA = PartitionSpec(AXIS)


class Probes:
    """Looks at the state of a run without changing it."""

    def __init__(
        self,
        spec: RunSpec,
        workload: Workload,
        mesh: Mesh,
        model: Model,
        step: ReplicaStep,
        images: np.ndarray,
    ) -> None:
        self._spec, self._workload, self._model, self._step = spec, workload, model, step
        share = max(1, min(PROBE_IMAGES, len(images)) // mesh.size)
        self._images = placed(images[: share * mesh.size], NamedSharding(mesh, BY_REPLICA))
        latents = sample_latents(workload.latent_size)
        self._latents = placed(
            np.pad(latents, ((0, -SAMPLES % mesh.size), (0, 0))), NamedSharding(mesh, BY_REPLICA)
        )

        def mapped(function: Any, *specs: PartitionSpec) -> Any:
            return jax.jit(
                jax.shard_map(function, mesh=mesh, in_specs=specs, out_specs=EVERYWHERE, check_vma=False)
            )

        self._probe_call = mapped(self._probe_replica, EVERYWHERE, BY_REPLICA, EVERYWHERE)
        self._sample_call = mapped(self._sample_replica, EVERYWHERE, BY_REPLICA)
        self._summary_call = jax.jit(self._summarised)

    def probe(self, state: State, step: int) -> ProbeResult:
        """On the first images of the set, after `step` steps."""
        scores, gradients, numbers = self._probe_call(state, self._images, np.int32(step))
        counts = {
            f"score/{name}": (_fixed(np.asarray(value)), np.array(SCORE_RANGE))
            for name, value in scores.items()
        }
        weights = {name: state[name] for name in gradients}
        norms: Numbers = {}
        for kind, arrays in (("weight", weights), ("gradient", gradients)):
            ranged, norms = self._summary_call(on_first_device(arrays))
            counts |= {
                f"{kind}/{part}": (np.asarray(bins), np.asarray(ends))
                for part, (bins, ends) in ranged.items()
            }
        found = {**numbers, **{f"{NORM}{name}": norm for name, norm in norms.items()}}
        return probed(counts, found, loss_scaled=self._spec.precision == "mixed_float16")

    def sample(self, state: State) -> np.ndarray:
        """float32 (64, height, width, channels) in [-1, 1], of `sample_latents`."""
        return np.asarray(self._sample_call(state, self._latents))[:SAMPLES]

    def _summarised(self, values: State) -> tuple[dict[str, tuple[jax.Array, jax.Array]], Numbers]:
        """Counts and range (see `_ranged`) of each network as a whole and of each of its layers, and the norm of each network.

        In one call: each shape by itself would be compiled anew, which takes longer than all of them together.
        """
        ranged = {
            part: _ranged([values[names[place]] for place in places])
            for network, names in self._model.trainable.items()
            for part, places in parts(network, self._model.networks[network]).items()
        }
        return ranged, {
            network: _norm([values[name] for name in names])
            for network, names in self._model.trainable.items()
        }

    # ---- on one replica -----------------------------------------------------------------------------------------

    def _probe_replica(
        self, state: State, images: jax.Array, step: jax.Array
    ) -> tuple[Numbers, State, Numbers]:
        """Scores of all images, gradients of the whole probe batch, unscaled, and the numbers of the epoch."""
        noise = StepNoise(self._spec.seed, step, jax.lax.axis_index(AXIS))
        latents = noise.normal(len(images), self._workload.latent_size)
        with self._model.scope(state):
            scores = self._workload.scores(self._model.networks, {"images": to_unit_range(images)}, latents)
            fake = self._workload.preview(self._model.networks, latents, training=True)
        spreads = {"spread_real": _spread(to_unit_range(images)), "spread_fake": _spread(fake)}
        scores = {name: jax.lax.all_gather(value, AXIS, tiled=True) for name, value in scores.items()}
        gradients = self._gradients(state, images[: self._spec.batch_size_per_replica], step)
        return scores, gradients, {**_accuracies(scores), **spreads}

    def _gradients(self, state: State, images: jax.Array, step: jax.Array) -> State:
        found: State = {}
        for phase in self._step.phases:
            gradients, _, _ = self._step.gradients(phase, state, images, step)
            summed = jax.lax.psum(gradients, AXIS)
            for update in phase.updates:
                scale = self._step.loss_scale(update.network, state)
                found |= {name: summed[name] / scale for name in self._model.trainable[update.network]}
        return found

    def _sample_replica(self, state: State, latents: jax.Array) -> jax.Array:
        networks = self._model.networks
        if self._spec.samples_from == "ema":
            networks = {**networks, "generator": self._model.average}
        with self._model.scope(state):
            images = self._workload.preview(networks, latents)
        return jax.lax.all_gather(images, AXIS, tiled=True)


def _ranged(tensors: list[jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Counts int32 (bins,) and [lowest, highest] float32 (2,) over all values; see `tf_histograms`, which counts the same."""
    flat = jnp.concatenate([tensor.reshape(-1).astype(jnp.float32) for tensor in tensors])
    low, high = flat.min(), flat.max()
    high = jnp.maximum(high, low + jnp.maximum(1e-12, 1e-5 * jnp.abs(low)))
    bins = jnp.clip(((flat - low) / (high - low) * WEIGHT_BINS).astype(jnp.int32), 0, WEIGHT_BINS - 1)
    # One pass a bin: scattering millions of values into a few places is what accelerators are worst at.
    at_least = jax.lax.map(lambda number: (bins >= number).sum(), jnp.arange(WEIGHT_BINS + 1))
    return at_least[:-1] - at_least[1:], jnp.stack([low, high])


def _fixed(values: np.ndarray) -> np.ndarray:
    """int (bins,): how many scores fall into each of the bins."""
    low, high = SCORE_RANGE
    bins = np.clip((np.nan_to_num((values - low) / (high - low)) * SCORE_BINS).astype(int), 0, SCORE_BINS - 1)
    return np.bincount(bins, minlength=SCORE_BINS)


def _norm(tensors: list[jax.Array]) -> jax.Array:
    return jnp.sqrt(sum(jnp.square(tensor).sum() for tensor in tensors))


def _accuracies(scores: Numbers) -> Numbers:
    """Share of images that D takes for what they are, and its mean scores; inference mode."""
    right = {"real": scores["real"] > UNDECIDED, "fake": scores["fake"] < UNDECIDED}
    return {
        **{f"d_accuracy_{name}": hits.mean() for name, hits in right.items()},
        **{f"probe_score_{name}": value.mean() for name, value in scores.items()},
    }


def _spread(images: jax.Array) -> jax.Array:
    """Variance over the images of all replicas, mean over the pixels."""
    mean, square = jax.lax.pmean((images.mean(0), jnp.square(images).mean(0)), AXIS)
    return (square - jnp.square(mean)).mean()
