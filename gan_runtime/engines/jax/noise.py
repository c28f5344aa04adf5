"""The noise of one step on one replica, from JAX's generators.

Each row of the global batch has numbers of its own key (seed, step, row), so the same ones are
drawn whatever the number of replicas, and a replica draws no more than its own rows. Dropout masks
are keyed by the replica as well, and come from the device's own generator (on a TPU 72 % of a step
went into random numbers made in software, by the compiler's estimate). That one gives other numbers
on another kind of device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp

from gan_runtime.engines.jax.tpu_passes import flat
from gan_runtime.engines.jax.tpu_volumes import is_volume

STREAMS_PER_PHASE = 1000  # more than any phase opens
REQUEST_PLACE = 1000  # in place of a phase's: more than a program has
# an 8-bit number decides over each unit: a quarter of the random bits that floats would take
LEVELS = 256


class JaxStepNoise:
    """See `workloads.contract.Noise`. Every call opens a new stream, in the order of the trace.

    `share`: which part of the global batch this is, counted over replicas and accumulation steps.
    `place`: of the phase in the program, each with streams of its own.
    """

    def __init__(self, seed: int, step: jax.Array, share: jax.Array, place: int = 0) -> None:
        self._seed, self._step, self._share = seed, step, share
        self._streams = place * STREAMS_PER_PHASE

    def normal(self, rows: int, *shape: int) -> jax.Array:
        """float32 (rows, *shape)."""
        return self._by_row(rows, lambda key: jax.random.normal(key, shape))

    def uniform(self, rows: int, *shape: int) -> jax.Array:
        """float32 (rows, *shape), from 0 up to 1 without it."""
        return self._by_row(rows, lambda key: jax.random.uniform(key, shape))

    def dropout(self, values: jax.Array, rate: float) -> jax.Array:
        """Same shape and dtype as `values`; the kept share is rounded to a 256th and scaled
        exactly.
        """
        kept_levels = round((1.0 - rate) * LEVELS)
        if kept_levels == LEVELS:  # which no byte can hold: it would wrap to 0 and drop everything
            return values
        words = jax.random.bits(jax.random.fold_in(self._step_key(), self._share), (4,), jnp.uint32)
        # Volumes as they lie between a TPU's convolutions: bytes of another shape would be laid out
        # anew.
        lying = flat(values) if is_volume(values) else values
        _, levels = jax.lax.rng_bit_generator(words, lying.shape, jnp.uint8)
        return _thinned(lying, jax.lax.optimization_barrier(levels), kept_levels).reshape(
            values.shape
        )

    def _by_row(self, rows: int, draw: Callable[[jax.Array], jax.Array]) -> jax.Array:
        key, numbers = self._step_key(), self._row_numbers(rows)
        return jax.vmap(lambda number: draw(jax.random.fold_in(key, number)))(numbers)

    def _row_numbers(self, rows: int) -> jax.Array:
        return self._share * rows + jnp.arange(rows)

    def _step_key(self) -> jax.Array:
        self._streams += 1
        return jax.random.fold_in(
            jax.random.fold_in(jax.random.key(self._seed), self._streams), self._step
        )


class JaxRequestNoise(JaxStepNoise):
    """Of rows on request.

    `seed`: of the request, not of the run; `first`: place of the chunk's first row in the request.
    """

    def __init__(self, seed: jax.Array, share: jax.Array, first: jax.Array) -> None:
        super().__init__(0, seed, share, place=REQUEST_PLACE)
        self._first = first

    def _row_numbers(self, rows: int) -> jax.Array:
        return self._first + super()._row_numbers(rows)


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def _thinned(values: jax.Array, levels: jax.Array, kept_levels: int) -> jax.Array:
    return jnp.where(
        levels < kept_levels, values * jnp.asarray(LEVELS / kept_levels, values.dtype), 0
    )


def _forward(values: jax.Array, levels: jax.Array, kept_levels: int) -> tuple[jax.Array, jax.Array]:
    return _thinned(values, levels, kept_levels), levels


def _backward(kept_levels: int, levels: jax.Array, upstream: jax.Array) -> tuple[jax.Array, None]:
    """Compares again: left alone, a TPU's compiler packs the mask into bits for the way back:
    slower.
    """
    return _thinned(upstream, jax.lax.optimization_barrier(levels), kept_levels), None


_thinned.defvjp(_forward, _backward)
