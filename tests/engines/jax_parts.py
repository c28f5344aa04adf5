"""Parts of the JAX engine by themselves, for the tests. Only the process with JAX imports this."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from gan_runtime.engines.jax import kernels as jax_kernels
from gan_runtime.engines.jax import probes as jax_probes
from gan_runtime.engines.jax.noise import StepNoise


def thinned(values: np.ndarray, upstream: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
    """Values after dropout, and the gradient that comes back for `upstream`."""
    outputs, back = jax.vjp(
        lambda inputs: StepNoise(1, jnp.int32(0), jnp.int32(0)).dropout(inputs, rate), jnp.asarray(values)
    )
    [gradient] = back(jnp.asarray(upstream))
    return np.asarray(outputs), np.asarray(gradient)


def draws(seed: int, step: int, phase: int) -> tuple[np.ndarray, np.ndarray]:
    """Two draws of latents (8, 5), one after another."""
    noise = StepNoise(seed, jnp.int32(step), jnp.int32(0), phase)
    return np.asarray(noise.normal(8, 5)), np.asarray(noise.normal(8, 5))


def counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Counts between 0 and 1, and counts and range from the lowest to the highest value."""
    counts, low_high = jax_probes._ranged([jnp.asarray(half) for half in np.split(values, 2)])
    return jax_probes._fixed(values), np.asarray(counts), np.asarray(low_high)


def batch_norm(values: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> list[np.ndarray]:
    """Values, mean and variance."""
    return [
        np.asarray(one)
        for one in jax_kernels.JaxKernels(None).batch_norm(jnp.asarray(values), gamma, beta, 1e-3)
    ]
