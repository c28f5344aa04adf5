"""Networks and optimizers of a run on Keras' JAX backend, and all their arrays by their names in a
checkpoint.

The Keras variables only name the arrays; in training the values are a plain dictionary, the state.
"""

from __future__ import annotations

import os
import random
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "jax")

import jax
import keras
import numpy as np

from gan_runtime.engines.contract import RATE_FACTOR, Arrays
from gan_runtime.engines.optimizers import LOSS_SCALE_GROWTH_STEPS, RMSPROP_RHO, RMSprop, StepRate
from gan_runtime.engines.task import EngineTask, check_networks, rate_plan, refuse_seed_generators
from gan_runtime.spec import RunSpec


def make_optimizer(spec: RunSpec, network: str, rate: StepRate) -> keras.optimizers.Optimizer:
    """The unbuilt optimizer of one network, with a loss scale in float16.

    It clips gradients after they are summed over the replicas.
    """
    common = {
        "learning_rate": rate,
        "global_clipnorm": spec.clip_norm or None,
        "name": f"optimizer_{network}",
    }
    if spec.optimizer == "adam":
        inner = keras.optimizers.Adam(beta_1=spec.adam_beta_1, beta_2=spec.adam_beta_2, **common)
    elif spec.optimizer == "sgd":
        inner = keras.optimizers.SGD(momentum=spec.momentum, **common)
    else:
        inner = RMSprop(spec.rmsprop_epsilon, rho=RMSPROP_RHO, **common)
    if spec.precision != "mixed_float16":
        return inner
    return keras.optimizers.LossScaleOptimizer(
        inner, dynamic_growth_steps=LOSS_SCALE_GROWTH_STEPS, name=f"loss_scale_{network}"
    )


State = dict[str, jax.Array]


class JaxModel:
    """`networks`, and `optimizers` of those that a step changes, by network; `variables` by name.

    `averages`: networks with moving averages, by the network that they follow; can be empty.
    `trainable`: names of the trained arrays, by network. `statistics`: names of the arrays that
    layers such as batch norm store.
    """

    def __init__(self, task: EngineTask) -> None:
        spec, self.task = task.spec, task
        # Keras draws the seeds of weights from it; keras.utils.set_random_seed loads TensorFlow.
        random.seed(spec.seed)
        keras.config.set_dtype_policy(spec.precision)
        self.rate_factor: Any = 1.0  # of the step being traced
        with jax.default_device(jax.local_devices(backend="cpu")[0]):
            self.networks = task.networks()
            check_networks(task.program, self.networks)
            refuse_seed_generators(self.networks)
            self.averages = self._copies()
            self.optimizers = {name: self._optimizer(name) for name in task.program.networks}
        self.trainable = {
            name: self._names(name, self.networks[name].trainable_variables)
            for name in self.optimizers
        }
        self.slots = {
            name: self._names(f"optimizer_{name}", optimizer.variables)
            for name, optimizer in self.optimizers.items()
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
        """A scope in which every variable of the networks has its value from `state`."""
        return keras.StatelessScope(
            [(variable, state[name]) for name, variable in self.variables.items()]
        )

    def in_average(self, names: list[str]) -> dict[str, str]:
        """Maps the averaged arrays among `names` to their names in the average."""
        split = ((name, *name.split("/", 1)) for name in names)
        owners = self.task.averages
        return {
            name: f"{owners[network]}/{path}" for name, network, path in split if network in owners
        }

    def _copies(self) -> dict[str, Any]:
        fresh = self.task.networks() if self.task.averages else {}
        for name in self.task.averages:
            fresh[name].set_weights(self.networks[name].get_weights())
        return {name: fresh[name] for name in self.task.averages}

    def _optimizer(self, network: str) -> keras.optimizers.Optimizer:
        spec, plan = self.task.spec, self.task.plan
        rates = rate_plan(spec, network, plan.steps_per_epoch)
        rate = StepRate(rates, plan.updates[network], lambda: self.rate_factor)
        optimizer = make_optimizer(spec, network, rate)
        optimizer.build(self.networks[network].trainable_variables)
        return optimizer

    def _variables(self) -> dict[str, Any]:
        variables: dict[str, Any] = {}
        for name, network in self.networks.items():
            variables |= dict(
                zip(self._names(name, network.variables), network.variables, strict=True)
            )
        for name, optimizer in self.optimizers.items():
            variables |= dict(zip(self.slots[name], optimizer.variables, strict=True))
        for name, owner in self.task.averages.items():
            # Under the paths of the original: Keras numbers unnamed layers again.
            paths = self._names(owner, self.networks[name].variables)
            variables |= dict(zip(paths, self.averages[name].variables, strict=True))
        return variables

    @staticmethod
    def _names(owner: str, variables: list[Any]) -> list[str]:
        return [f"{owner}/{variable.path}" for variable in variables]
