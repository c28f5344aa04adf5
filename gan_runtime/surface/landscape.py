"""The losses of a GAN as functions of its weights, on fixed real images and fixed latents, in float32.

G runs with the batch statistics of these latents, so that a point off the path needs no stored ones; D without dropout.
Loads Keras.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from gan_runtime.engines.sample_latents import sample_latents
from gan_runtime.workloads.contract import Workload

IMAGES = 256
_SURE = 1e-7  # how near to 0 or 1 a float32 probability can be told from it


class Landscape:
    """The networks of a workload, movable to any weights."""

    def __init__(self, workload: Workload, images: NDArray[np.uint8]) -> None:
        """`images`: the data set; its first 256 are looked at."""
        self._workload, self.networks = workload, workload.networks()
        real = images[:IMAGES].astype(np.float32) / 127.5 - 1.0
        self._batch = {"images": ops.convert_to_tensor(real)}
        self._latents = ops.convert_to_tensor(sample_latents(workload.latent_size, len(real)))
        self._generated: Any = (
            None  # what G makes of them where it stands now; on D's surface it is the same everywhere
        )

    def filter_axes(self, network: str) -> dict[str, int]:
        """Name of each kernel of a network → its axis of output channels."""
        found: dict[str, int] = {}
        for layer in self.networks[network].layers:
            kernels = [variable for variable in layer.trainable_variables if len(variable.shape) > 1]
            axis = (
                -2 if isinstance(layer, (keras.layers.Conv2DTranspose, keras.layers.Conv3DTranspose)) else -1
            )
            found |= {f"{network}/{kernel.path}": axis for kernel in kernels}
        return found

    def place(self, arrays: Mapping[str, NDArray[np.generic]]) -> None:
        """Moves the networks to these weights; those that are not named stay."""
        for name, network in self.networks.items():
            for variable in network.variables:
                if (array := arrays.get(f"{name}/{variable.path}")) is not None:
                    variable.assign(array)
                    if name == "generator":
                        self._generated = None

    def loss(self, network: str) -> float:
        """Mean binary cross-entropy in nats, 0 to 16: D's over real and generated images; G's non-saturating one."""
        if self._generated is None:
            self._generated = self.networks["generator"](self._latents, training=True)
        networks = {**self.networks, "generator": lambda *_, **__: self._generated}
        scores = self._workload.scores(networks, self._batch, self._latents)
        real, fake = (
            np.clip(ops.convert_to_numpy(scores[kind]).astype(np.float64), _SURE, 1.0 - _SURE)
            for kind in ("real", "fake")
        )
        if network == "generator":
            return float(-np.log(fake).mean())
        return float(-np.log(real).mean() - np.log(1.0 - fake).mean())
