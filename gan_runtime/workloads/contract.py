"""The contract between a workload and the engines that train it.

A step runs a program: phases in order. A phase runs ONE forward pass with named losses, then
updates one or more networks, each along the gradient of one of these losses. Examples:

* DCGAN: one phase, generator and discriminator updated from the same forward pass;
* equations 4 and 5 of the paper: k discriminator phases, each on its own batch, then one generator
  phase;
* WGAN-GP: five critic phases on their own batches, then one generator phase.

The engine turns each update into gradients, all-reduce and apply. It alone scales the losses for
the replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from gan_runtime.base.fields import Fields

Tensor = Any
Networks = Mapping[str, Any]  # keras models by name
Batch = Mapping[str, Tensor]  # values (rows, *shape) by field
Arrays = Mapping[str, NDArray[Any]]  # NumPy arrays by name, on the host
Options = Any  # an instance of `WorkloadEntry.options`


class Noise(Protocol):
    """Random numbers of one forward pass on one replica, provided by the engine.

    Keyed by (seed, step, position of the phase, row of the global batch): a row gets the same draws
    for any number of replicas and after a resume. Each call takes the next stream.
    """

    def normal(self, rows: int, *shape: int) -> Tensor:
        """Standard normal draws for this replica's rows: float32 (rows, *shape)."""
        ...

    def uniform(self, rows: int, *shape: int) -> Tensor:
        """Uniform draws from [0, 1) for this replica's rows: float32 (rows, *shape)."""
        ...

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """`values` with a share `rate` set to 0 and the rest scaled up; the mask differs between
        replicas.
        """
        ...


@dataclass(frozen=True)
class Forward:
    """Result of one forward pass.

    `losses`: named float32 scalars, each a plain mean over this replica's rows. `scalars`: other
    numbers to record per step.
    """

    losses: Mapping[str, Tensor]
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """Measurements of the networks after an epoch.

    `values`: one number per row, float32 (rows,), stored as the histogram score/<name>. If rows
    have labels, means by class are stored too; a generated row has the label of the training row at
    its index. `scalars`: single numbers, averaged over the replicas.
    """

    values: Mapping[str, Tensor] = field(default_factory=dict)
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """Updates the weights of `network` along the gradient of `loss`.

    `loss_when_scaled`: the loss to follow instead where each loss has a separate scale (float16),
    for a network that otherwise shares the backward pass of another network.
    """

    network: str
    loss: str
    loss_when_scaled: str = ""

    def followed(self, loss_scaling: bool) -> str:
        """The name of the loss that the network follows."""
        return self.loss_when_scaled if loss_scaling and self.loss_when_scaled else self.loss


@dataclass(frozen=True)
class Phase:
    """One forward pass and the updates that share it.

    Updates along the same loss share its backward pass and its loss scale. Within `forward`,
    `step_context.current()` offers input gradients, means over the replicas and the training
    progress. `name`: unique in the program. `batch`: index of the step's batch of training rows
    that it uses.
    """

    name: str
    forward: Callable[[Networks, Batch, Noise], Forward]
    updates: tuple[Update, ...]
    batch: int = 0


@dataclass(frozen=True)
class Program:
    """The phases of one step, which define its number of rows and of updates.

    Raises:
        ValueError: no phase; two of the same name; a batch that no phase uses; or a phase that
            updates a network twice.
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        names = [phase.name for phase in self.phases]
        if not names:
            raise ValueError("a program without phases trains nothing: add a phase.")
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"several phases have the name {', '.join(repeated)}: use unique names."
            )
        batches = {phase.batch for phase in self.phases}
        if unused := sorted(set(range(max(batches) + 1)) - batches):
            raise ValueError(
                f"no phase uses batch {unused[0]}, but one uses batch {max(batches)}: number them"
                " 0, 1, 2, … without gaps."
            )
        for phase in self.phases:
            networks = [update.network for update in phase.updates]
            if len(set(networks)) < len(networks):
                raise ValueError(
                    f"phase {phase.name} updates a network twice: split it into two phases."
                )

    @property
    def batches(self) -> int:
        """Batches of training rows that one step takes."""
        return 1 + max(phase.batch for phase in self.phases)

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that a step updates, in the order of their first update."""
        return tuple(
            dict.fromkeys(update.network for phase in self.phases for update in phase.updates)
        )

    def updates_of(self, network: str) -> int:
        """The number of updates of a network per step, which its learning-rate schedule counts."""
        return len(self.phases_of(network))

    def phases_of(self, network: str) -> tuple[Phase, ...]:
        """The phases that update a network, in order."""
        return tuple(
            phase
            for phase in self.phases
            if any(update.network == network for update in phase.updates)
        )


class Workload(Protocol):
    """A GAN; no base class is needed.

    `options`: the workload's options in a run. `fields`: the fields of a batch, selected by
    `WorkloadEntry.reads`. Rows are scaled values (`Field`), and all batches of a step have equally
    many.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """New keras models by name; their weights come from the framework's seed."""
        ...

    def program(self, options: Options, fields: Fields) -> Program:
        """The phases of one step."""
        ...

    def inputs(self, options: Options, fields: Fields, rows: Batch, noise: Noise) -> Batch:
        """Inputs of the generator, one row for each of `rows`: latents, labels, frames.

        Used for measurements after an epoch and, with NumPy arrays on the host, for images on
        request.
        """
        ...

    def fixed_inputs(
        self,
        options: Options,
        fields: Fields,
        rows: Arrays,
        random: np.random.RandomState,
        count: int,
    ) -> dict[str, NDArray[Any]]:
        """Inputs of the sample images: `count` rows on the host, the same in all runs.

        `rows`: values of held-out rows, possibly fewer than `count`. A larger `count` begins with
        the same rows.
        """
        ...

    def show(
        self, options: Options, networks: Networks, inputs: Batch, noise: Noise
    ) -> Mapping[str, Tensor]:
        """Outputs for `inputs` as named arrays (rows, …), in inference mode.

        `noise`: keyed by the seed of the request (0 for sample images) and the row's index in the
        request, so it does not depend on the number of replicas.
        """
        ...

    def judge(self, options: Options, networks: Networks, rows: Batch, inputs: Batch) -> Judged:
        """Measures training rows, and rows generated for `inputs`, in inference mode."""
        ...


@runtime_checkable
class Reads(Protocol):
    """A `Workload` whose judging network also scores arbitrary rows, for jobs after the
    training.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """As `Workload.networks`."""
        ...

    def read(self, options: Options, networks: Networks, rows: Batch) -> Mapping[str, Tensor]:
        """The judging network's outputs for each row, in inference mode: named arrays (rows,)."""
        ...


@runtime_checkable
class Translates(Protocol):
    """A `Workload` that also translates whole images tile by tile, for jobs after the training."""

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """As `Workload.networks`; the first of the entry's `averaged` networks translates."""
        ...

    def tile(self, options: Options, fields: Fields) -> int:
        """The side of the square tiles, in pixels."""
        ...

    def translate(self, options: Options, networks: Networks, source: Tensor) -> Tensor:
        """Values (B, height, width, channels in) → float32 (B, height, width, channels out).

        Runs in inference mode, with stored statistics and no noise, so no image affects another.
        Sides equal the tile's side, or a multiple of it if the network accepts one.
        """
        ...
