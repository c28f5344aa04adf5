"""Networks and optimizers of a run on Keras' JAX backend, and every array of theirs by its name in a checkpoint.

The Keras variables only say what there is; in training their values travel as a plain dictionary, the state.
"""

from __future__ import annotations

import os
import random
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np

from gan_runtime.engines.contract import Arrays
from gan_runtime.engines.jax.optimizers import make_optimizer
from gan_runtime.engines.rates import rate_plan
from gan_runtime.engines.schedules import StepRate
from gan_runtime.spec import RunSpec
from gan_runtime.workloads.contract import Workload

RATE_FACTOR = "rate_factor"
State = dict[str, jax.Array]


class Model:
    """`networks`, `optimizers` by network, `average` (the generator's moving average, or None), `variables` by name.

    `trainable` and `statistics`: the names of what gradients move, by network, and of what batch norm stores.
    """

    def __init__(self, spec: RunSpec, workload: Workload, images: int) -> None:
        random.seed(
            spec.seed
        )  # from which Keras draws the seeds of new weights; keras.utils.set_random_seed loads TensorFlow
        keras.config.set_dtype_policy(spec.precision)
        self.rate_factor: Any = 1.0  # of the step that is being traced
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            self.networks = workload.networks()
            self.average = _copy_of_generator(workload, self.networks) if spec.ema_decay else None
            self.optimizers = {name: self._optimizer(spec, name, images) for name in self.networks}
        self.trainable = {
            name: self._names(name, network.trainable_variables) for name, network in self.networks.items()
        }
        self.slots = {
            name: self._names(f"optimizer_{name}", one.variables) for name, one in self.optimizers.items()
        }
        self.statistics = [
            path
            for name, network in self.networks.items()
            for path in self._names(name, network.non_trainable_variables)
        ]
        self.variables = self._variables()

    def initial(self) -> Arrays:
        """The state of a new run, on the host."""
        return {name: np.asarray(variable) for name, variable in self.variables.items()} | {
            RATE_FACTOR: np.asarray(1.0, np.float32)
        }

    def scope(self, state: State) -> keras.StatelessScope:
        """Inside, every variable of the networks has its value of `state`."""
        return keras.StatelessScope([(variable, state[name]) for name, variable in self.variables.items()])

    def _optimizer(self, spec: RunSpec, network: str, images: int) -> keras.optimizers.Optimizer:
        plan = rate_plan(spec, network, spec.steps_per_epoch(images))
        updates = spec.batches_per_step if network == "discriminator" else 1
        optimizer = make_optimizer(spec, network, StepRate(plan, updates, lambda: self.rate_factor))
        optimizer.build(self.networks[network].trainable_variables)
        return optimizer

    def _variables(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, network in self.networks.items():
            found |= dict(zip(self._names(name, network.variables), network.variables, strict=True))
        for name, optimizer in self.optimizers.items():
            found |= dict(zip(self.slots[name], optimizer.variables, strict=True))
        if self.average is not None:
            found |= dict(
                zip(self._names("average", self.average.variables), self.average.variables, strict=True)
            )
        return found

    @staticmethod
    def _names(owner: str, variables: list[Any]) -> list[str]:
        return [f"{owner}/{variable.path}" for variable in variables]


def _copy_of_generator(workload: Workload, networks: dict[str, Any]) -> Any:
    average = workload.networks()["generator"]
    average.set_weights(networks["generator"].get_weights())
    return average
