"""What is looked at once an epoch: score, weight and gradient histograms, scores of the training, sample grids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from gan_runtime.engines.contract import ProbeResult
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
from gan_runtime.engines.tf import histograms
from gan_runtime.engines.tf.noise import StepNoise
from gan_runtime.engines.tf.state import statistics
from gan_runtime.engines.tf.step import Numbers, ReplicaStep, replica_id, to_unit_range
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload

Found = dict[str, Any]


class Probes:
    """Looks at the networks of a run without changing them. Built and called like the engine that owns it."""

    def __init__(
        self,
        spec: RunSpec,
        workload: Workload,
        strategy: tf.distribute.Strategy,
        networks: dict[str, Any],
        shown: dict[str, Any],
        step: ReplicaStep,
        images: np.ndarray,
    ) -> None:
        self._spec, self._workload, self._strategy, self._networks = spec, workload, strategy, networks
        self._shown, self._step = shown, step  # `shown`: the networks that make the sample grids
        self._replicas = strategy.num_replicas_in_sync
        self._batch = self._probe_batch(images)
        # Nothing in them depends on a tensor's value: AutoGraph would rewrite their code in vain, which takes a second.
        self._probe_call = tf.function(self._probe_everywhere, autograph=False)
        self._sample_call = tf.function(self._sample_everywhere, autograph=False)

    def trace(self) -> None:
        """Builds both graphs, so that the end of the first epoch does not have to."""
        self._probe_call.get_concrete_function(self._batch, tf.constant(0, tf.int32))
        self._sample_call.get_concrete_function()

    def probe(self, step: int) -> ProbeResult:
        """On the first images of the set, after `step` steps."""
        found = self._probe_call(self._batch, tf.constant(step, tf.int32))
        local = tf.nest.map_structure(lambda value: value.numpy(), found)
        return probed(
            local["histograms"], local["scores"], loss_scaled=self._spec.precision == "mixed_float16"
        )

    def sample(self) -> np.ndarray:
        """float32 (64, height, width, channels) in [-1, 1], of `sample_latents`."""
        return np.concatenate([share.numpy() for share in self._sample_call()])[:SAMPLES]

    # ---- on all replicas ----------------------------------------------------------------------------------------

    def _probe_everywhere(self, batch: Any, step: tf.Tensor) -> dict[str, Found]:
        """What the first replica of this process found: all have the same numbers."""
        found = self._strategy.run(self._probe_replica, args=(batch, step))
        first: dict[str, Found] = tf.nest.map_structure(
            lambda value: self._strategy.experimental_local_results(value)[0], found
        )
        return first

    def _sample_everywhere(self) -> tuple[tf.Tensor, ...]:
        """The share of images of each replica of this process."""
        return tuple(self._strategy.experimental_local_results(self._strategy.run(self._sample_replica)))

    # ---- on one replica -----------------------------------------------------------------------------------------

    def _probe_replica(self, images: tf.Tensor, step: tf.Tensor) -> dict[str, Found]:
        noise = StepNoise(self._spec.seed, step, replica_id(), self._replicas)
        latents = noise.normal(images.shape[0], self._workload.latent_size)
        scores = self._workload.scores(self._networks, {"images": to_unit_range(images)}, latents)
        stored = statistics(self._networks)
        before = [tf.identity(variable) for variable in stored]
        gradients = self._gradients(images[: self._spec.batch_size_per_replica], step)
        spreads = self._spreads(images, latents)
        for variable, value in zip(stored, before, strict=True):  # passes in training mode have moved them
            variable.assign(value)
        return {
            "histograms": {
                **_score_histograms(scores),
                **self._histograms("gradient", gradients),
                **self._weight_histograms(),
            },
            "scores": {**_accuracies(scores), **spreads, **_norms(gradients)},
        }

    def _gradients(self, images: tf.Tensor, step: tf.Tensor) -> dict[str, list[tf.Tensor]]:
        """Gradients of the whole probe batch, unscaled."""
        found: dict[str, list[tf.Tensor]] = {}
        scales = self._step.loss_scales()
        for phase in self._step.phases:
            gradients, _ = self._step.gradients(phase, images, step, replica_id(), tf.constant(0), scales)
            for name, values in gradients.items():
                found[name] = [
                    value / tf.cast(scales[name], value.dtype)
                    for value in _mean_gradients(values, self._spec)
                ]
        return found

    def _weight_histograms(self) -> Found:
        weights = {
            name: [tf.convert_to_tensor(variable) for variable in network.trainable_variables]
            for name, network in self._networks.items()
        }
        return self._histograms("weight", weights)

    def _histograms(self, kind: str, values: dict[str, list[tf.Tensor]]) -> Found:
        """Of each network as a whole and of each of its layers; `values` by network, in the order of its trainable variables.

        Zeros on all replicas but the first, whose numbers are the ones that are read: all have the same values.
        """
        wanted = {
            f"{kind}/{part}": [tensors[place] for place in places]
            for name, tensors in values.items()
            for part, places in parts(name, self._networks[name]).items()
        }
        return _on_the_first_replica(
            lambda: {part: histograms.ranged(tensors, WEIGHT_BINS) for part, tensors in wanted.items()},
            dict.fromkeys(wanted, (tf.zeros([WEIGHT_BINS], tf.int32), tf.zeros([2]))),
        )

    def _spreads(self, images: tf.Tensor, latents: tf.Tensor) -> Numbers:
        """Mean over the pixels of their variance within a batch: of real images, and of as many generated ones.

        In training mode, since stored batch-norm statistics lag behind at first and flatten every image.
        """
        fake = self._workload.preview(self._networks, latents, training=True)
        return {"spread_real": _spread(to_unit_range(images)), "spread_fake": _spread(fake)}

    def _sample_replica(self) -> tf.Tensor:
        share = -(-SAMPLES // self._replicas)
        everyone = tf.constant(sample_latents(self._workload.latent_size))
        padded = tf.pad(everyone, [[0, share * self._replicas - SAMPLES], [0, 0]])
        images = self._workload.preview(self._shown, tf.slice(padded, [replica_id() * share, 0], [share, -1]))
        # A worker has the images of its own replicas only; so that the first can write the grid, all go to everyone.
        return (
            images
            if self._spec.workers == 1
            else tf.distribute.get_replica_context().all_gather(images, axis=0)
        )

    def _probe_batch(self, images: np.ndarray) -> Any:
        share = max(1, min(PROBE_IMAGES, len(images)) // self._replicas)
        rows = images[: share * self._replicas].reshape(self._replicas, share, *images.shape[1:])
        return self._strategy.experimental_distribute_values_from_function(
            lambda context: tf.constant(rows[context.replica_id_in_sync_group])
        )


def _all_reduce(kind: str, value: Any) -> Any:
    return tf.distribute.get_replica_context().all_reduce(kind, value)


def _mean_gradients(values: list[tf.Tensor], spec: RunSpec) -> list[tf.Tensor]:
    """Each replica's gradients are its share of the sum, or in local training the mean over its own images."""
    summed: list[tf.Tensor] = _all_reduce("mean" if spec.sync_every_steps > 1 else "sum", values)
    return summed


def _score_histograms(scores: Numbers) -> Found:
    return {
        f"score/{name}": (
            _all_reduce("sum", histograms.fixed(value, *SCORE_RANGE, SCORE_BINS)),
            tf.constant(SCORE_RANGE),
        )
        for name, value in scores.items()
    }


def _on_the_first_replica(make: Callable[[], Found], nothing: Found) -> Found:
    """What `make` gives, on the first replica; `nothing` on the others. A TPU learns only when it runs which replica it is."""
    known = tf.get_static_value(replica_id())
    if known is None:
        return dict(tf.cond(tf.equal(replica_id(), 0), make, lambda: nothing))
    return make() if known == 0 else nothing


def _accuracies(scores: Numbers) -> Numbers:
    """Share of images that D takes for what they are, and its mean scores; inference mode."""
    right = {"real": scores["real"] > UNDECIDED, "fake": scores["fake"] < UNDECIDED}
    shares = {
        f"d_accuracy_{name}": _all_reduce("mean", tf.reduce_mean(tf.cast(hits, tf.float32)))
        for name, hits in right.items()
    }
    means = {
        f"probe_score_{name}": _all_reduce("mean", tf.reduce_mean(value)) for name, value in scores.items()
    }
    return {**shares, **means}


def _norms(gradients: dict[str, list[tf.Tensor]]) -> Numbers:
    return {f"{NORM}{name}": tf.linalg.global_norm(values) for name, values in gradients.items()}


def _spread(images: tf.Tensor) -> tf.Tensor:
    """Variance over the images of all replicas, mean over the pixels."""
    mean, square = tf.reduce_mean(images, 0), tf.reduce_mean(tf.square(images), 0)
    mean, square = _all_reduce("mean", mean), _all_reduce("mean", square)
    return tf.reduce_mean(square - tf.square(mean))
