"""Layers that would train otherwise on each engine, or on each replica, are refused before
the first step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


def refuse_seed_generators(networks: Mapping[str, Any]) -> None:
    """Keras' seeded generators give every replica the same numbers (decision 3), and JAX carries no
    state of theirs along.

    Raises:
        ValueError: such as of a keras.layers.Dropout; the message names the generators and what to
            take instead.
    """
    for name, network in networks.items():
        weights = {id(weight) for weight in network.weights}
        seeds = [variable.path for variable in network.variables if id(variable) not in weights]
        if seeds:
            raise ValueError(
                f"the {name} draws random numbers by Keras' own generators ({', '.join(seeds)}),"
                " which are the same on every replica: take ReplicaDropout of"
                " gan_runtime/workloads/layers.py, or the phase's noise."
            )


@contextmanager
def weights_are_trained_only(networks: Mapping[str, Any]) -> Iterator[None]:
    """Inside, around a forward pass, no layer may assign a weight that gradients move: TensorFlow
    would keep the new value, JAX the old one.

    Raises:
        ValueError: from the layer that tries, such as keras.layers.SpectralNormalization.
    """
    weights = [weight for network in networks.values() for weight in network.trainable_variables]
    for weight in weights:
        vars(weight)["assign"] = _refusal(weight.path)
    try:
        yield
    finally:
        for weight in weights:
            vars(weight).pop("assign", None)


def _refusal(path: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError(
            f"a layer assigns its trained weight {path} in a forward pass, which engines do not do"
            " alike: compute with a changed copy instead, as SpectralNorm of"
            " gan_runtime/workloads/layers.py does in the place of"
            " keras.layers.SpectralNormalization."
        )

    return refuse
