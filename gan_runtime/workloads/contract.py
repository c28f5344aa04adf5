"""The contract between a workload and the engines that train it.

A step runs a program: phases in order. A phase makes ONE forward pass with named losses, then
updates one or more networks, each along the gradient of one of these losses. Examples:

* DCGAN: one phase, generator and discriminator updated from the same forward pass;
* equations 4 and 5 of the paper: k discriminator phases, each on its own batch, then one generator
  phase;
* WGAN-GP: five critic phases on their own batches, then one generator phase.

The engine turns each update into gradients, all-reduce and apply, and scales the losses for the
replicas, once.
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
Arrays = Mapping[str, NDArray[Any]]  # the same on the host
Options = Any  # an instance of the record that the workload's entry in the catalog names


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
        """`values` with a share `rate` set to 0 and the rest scaled up; each replica has another
        mask.
        """
        ...


@dataclass(frozen=True)
class Forward:
    """Result of one forward pass.

    `losses`: named float32 scalars, plain means over this replica's rows. `scalars`: further
    numbers per step.
    """

    losses: Mapping[str, Tensor]
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """Measurements of the networks after an epoch.

    `values`: a number per row, float32 (rows,), drawn as the histogram score/<name>. If rows have
    labels, means by class are stored too; a generated row has the label of the training row at its
    index. `scalars`: single numbers, stored as means over the replicas.
    """

    values: Mapping[str, Tensor] = field(default_factory=dict)
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """Updates the weights of `network` along the gradient of `loss`.

    `loss_when_scaled`: the loss to follow instead if each loss has its own scale (float16), for a
    network that otherwise shares another one's backward pass.
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

    Updates of one loss share its backward pass and its loss scale. Within `forward`,
    `step_context.current()` offers input gradients, means over the replicas and the progress.
    `name`: unique in the program. `batch`: index of the step's batch of training rows that it uses.
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
        """Number of updates of a network per step, by which its learning rate counts."""
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

    `options`: the run's options of this workload. `fields`: those of a batch, selected by `reads`
    of its catalog entry. Rows come as scaled values (`Field`), equally many in each batch.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """New keras models by name; their weights come from the framework's seed."""
        ...

    def program(self, options: Options, fields: Fields) -> Program:
        """The phases of one step."""
        ...

    def inputs(self, options: Options, fields: Fields, rows: Batch, noise: Noise) -> Batch:
        """Inputs of the generator for as many rows as `rows` has: latents, labels, frames.

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
        """`count` input rows of the sample images, on the host and the same in all runs.

        `rows`: held-out rows as values, perhaps fewer than `count`. More rows start with the same
        ones.
        """
        ...

    def show(
        self, options: Options, networks: Networks, inputs: Batch, noise: Noise
    ) -> Mapping[str, Tensor]:
        """Outputs for `inputs` as named arrays (rows, …), in inference mode.

        `noise`: keyed by the seed of the request (0 for sample images) and the row's index in it,
        so the same for any number of replicas.
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
        """Its outputs for each row, in inference mode: named arrays (rows,)."""
        ...


@runtime_checkable
class Translates(Protocol):
    """A `Workload` that also translates whole images tile by tile, for jobs after the training."""

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """As `Workload.networks`; the first `averaged` one of the entry translates."""
        ...

    def tile(self, options: Options, fields: Fields) -> int:
        """Side of the square tiles in pixels."""
        ...

    def translate(self, options: Options, networks: Networks, source: Tensor) -> Tensor:
        """Values (B, height, width, channels in) → float32 (B, height, width, channels out).

        Inference mode: stored statistics and no noise, so no image affects another. Sides: the
        tile's, or a multiple of it if the network takes any.
        """
        ...
