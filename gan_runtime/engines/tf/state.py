"""The variables of a run on the devices: weights, optimizer slots, averages; saved and loaded as
named arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from gan_runtime.base.metrics import UPDATE_RATIO, of_network
from gan_runtime.engines.contract import RATE_FACTOR, Arrays, check_fit


@dataclass(frozen=True)
class Average:
    """A moving average. `owner`: name prefix of its arrays in a checkpoint; `live`: the network in
    training; `network`: the network with the averaged weights.
    """

    owner: str
    live: Any
    network: Any


class NetworkState:
    """The state of all networks. Names are those of one device, so a state of eight replicas loads
    on one replica, and vice versa.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        networks: dict[str, Any],
        optimizers: dict[str, Any],
        averages: tuple[Average, ...],
        rate_factor: Any,
        local_steps: bool,
    ) -> None:
        self._strategy, self._networks, self._optimizers = strategy, networks, optimizers
        self._averages, self._rate_factor, self._local_steps = averages, rate_factor, local_steps
        self._replicas = strategy.num_replicas_in_sync
        self._marked: dict[str, list[tf.Tensor]] = {}
        self._settle_call = tf.function(self._settle_replica, autograph=False)

    def arrays(self) -> Arrays:
        """Every variable by name, from the first replica."""
        return {name: np.asarray(variable) for name, variable in self.variables().items()}

    def assign(self, arrays: Arrays) -> None:
        """Loads a state on every replica.

        Raises:
            CheckpointError: names or shapes differ; nothing is changed.
        """
        variables = self.variables()
        check_fit(arrays, {name: tuple(variable.shape) for name, variable in variables.items()})
        for name, variable in variables.items():
            variable.assign(arrays[name])

    def settle(self) -> None:
        """Makes the replicas equal: batch-norm statistics, which follow each replica's share,
        become their mean, and after local steps also the weights.
        """
        if self._replicas > 1 or self._averages:
            self._strategy.run(self._settle_call)

    def mark(self) -> None:
        """Stores the current weights of the trained networks."""
        self._marked = {
            name: [tf.identity(variable) for variable in self._networks[name].trainable_variables]
            for name in self._optimizers
        }

    def moved_since_mark(self) -> dict[str, float]:
        """`update_ratio_<network>`: ‖w - w₀‖ / ‖w₀‖ over all weights, with w₀ the weights at
        `mark`. Clears the mark.
        """
        ratios = {}
        for name, before in self._marked.items():
            change = [
                tf.identity(now) - then
                for now, then in zip(self._networks[name].trainable_variables, before, strict=True)
            ]
            ratios[of_network(UPDATE_RATIO, name)] = float(
                tf.linalg.global_norm(change) / tf.linalg.global_norm(before)
            )
        self._marked = {}
        return ratios

    # ---- on one replica --------------------------------------------------------------------------

    def follow_average(self, decay: float) -> None:
        """average ← decay · average + (1 - decay) · live, for every averaged weight."""
        for average in self._averages:
            pairs = zip(
                average.network.trainable_variables, average.live.trainable_variables, strict=True
            )
            for averaged, live in pairs:
                averaged.assign(averaged * decay + live * (1.0 - decay))

    def average_everything(self) -> None:
        """Ends local steps: weights, slots and statistics of all replicas become their mean."""
        _average(
            [
                variable
                for variable in self.variables().values()
                if variable is not self._rate_factor
            ]
        )

    def _settle_replica(self) -> None:
        if self._local_steps:
            self.average_everything()
        elif self._replicas > 1:
            _average(statistics(self._networks))
        for average in self._averages:
            stored = average.live.non_trainable_variables
            for averaged, statistic in zip(
                average.network.non_trainable_variables, stored, strict=True
            ):
                averaged.assign(statistic)

    # ---- names -----------------------------------------------------------------------------------

    def variables(self) -> dict[str, Any]:
        """Every variable by its name in a checkpoint."""
        variables: dict[str, Any] = {RATE_FACTOR: self._rate_factor}
        for name, network in self._networks.items():
            variables |= {f"{name}/{variable.path}": variable for variable in network.variables}
        for name, optimizer in self._optimizers.items():
            variables |= {
                f"optimizer_{name}/{variable.path}": variable for variable in optimizer.variables
            }
        for average in self._averages:
            # Under the paths of the original: Keras numbers unnamed layers again.
            paths = [f"{average.owner}/{variable.path}" for variable in average.live.variables]
            variables |= dict(zip(paths, average.network.variables, strict=True))
        return variables


def statistics(networks: dict[str, Any]) -> list[Any]:
    """The variables that no gradient moves, such as the statistics of batch norm."""
    return [
        variable for network in networks.values() for variable in network.non_trainable_variables
    ]


def _average(variables: list[Any]) -> None:
    """Assigns to each float variable its mean over the replicas, in one exchange."""
    floats = [variable for variable in variables if tf.as_dtype(variable.dtype).is_floating]
    if not floats:
        return
    with tf.name_scope("all_reduce_weights"):
        means = tf.distribute.get_replica_context().all_reduce(
            "mean", [tf.identity(variable) for variable in floats]
        )
    for variable, mean in zip(floats, means, strict=True):
        variable.assign(mean)
