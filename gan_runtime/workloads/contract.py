"""What a GAN system must say about itself, so that any engine can train it.

A step is one round of a program: phases in their order. A phase makes ONE forward pass, which gives
named losses, and then changes one or more networks, each following one of these losses. That
covers:

* DCGAN: one phase, generator and discriminator updated from the same forward pass;
* equations 4 and 5 of the paper: k discriminator phases, each on a batch of real rows of its own,
  then one generator phase;
* WGAN-GP: five critic phases on batches of their own, then the generator's.

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
    """Random numbers of one forward pass on one replica. The engine provides it.

    Keyed by (seed, step, the phase's place in the program, row of the global batch): the same draws
    for a row whatever the number of replicas, and after a resume. Every call opens a new stream, in
    the order of the calls.
    """

    def normal(self, rows: int, *shape: int) -> Tensor:
        """This replica's `rows` of the global batch's standard normal draw: float32 (rows,
        *shape).
        """
        ...

    def uniform(self, rows: int, *shape: int) -> Tensor:
        """This replica's `rows` of the global batch's even draw from [0, 1): float32 (rows,
        *shape).
        """
        ...

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """`values` with a share `rate` set to zero and the rest scaled up; another mask on
        every replica.
        """
        ...


@dataclass(frozen=True)
class Forward:
    """The outcome of one forward pass.

    `losses`: named float32 scalars, each a plain mean over this replica's rows. `scalars`: further
    per-step numbers.
    """

    losses: Mapping[str, Tensor]
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Judged:
    """What a workload says of its networks once an epoch.

    `values`: a number for each row, float32 (rows,), drawn as histograms called score/<name>. Where
    rows have labels, the mean over those of each class is told too, so a generated row has the
    label of the real one in its place. `scalars`: single numbers, of which the mean over the
    replicas is stored.
    """

    values: Mapping[str, Tensor] = field(default_factory=dict)
    scalars: Mapping[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Update:
    """Changes the weights of `network` along the gradient of `loss`.

    `loss_when_scaled`: the loss to follow instead where each loss has a scale of its own (float16).
    For a network that else shares another one's backward pass.
    """

    network: str
    loss: str
    loss_when_scaled: str = ""

    def followed(self, loss_scaling: bool) -> str:
        """The name of the loss whose gradient the network takes."""
        return self.loss_when_scaled if loss_scaling and self.loss_when_scaled else self.loss


@dataclass(frozen=True)
class Phase:
    """One forward pass and the updates that share it.

    Updates of one loss share its backward pass too, and its loss scale.

    Inside `forward`, `step_context.current()` offers slopes of networks, means over the replicas
    and the progress of the training.
    `name`: unique in the program. `batch`: which of the step's batches of real rows the phase sees.
    """

    name: str
    forward: Callable[[Networks, Batch, Noise], Forward]
    updates: tuple[Update, ...]
    batch: int = 0


@dataclass(frozen=True)
class Program:
    """The phases of one step.

    How many rows a step takes, and how often it changes each network, is known from here alone.

    Raises:
        ValueError: no phase; two of the same name; a batch that no phase sees; or a phase that
            changes a network twice.
    """

    phases: tuple[Phase, ...]

    def __post_init__(self) -> None:
        names = [phase.name for phase in self.phases]
        if not names:
            raise ValueError("a program without phases trains nothing: give it one.")
        if again := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"several phases are called {', '.join(again)}: give each a name of its own."
            )
        seen = {phase.batch for phase in self.phases}
        if unseen := sorted(set(range(max(seen) + 1)) - seen):
            raise ValueError(
                f"no phase sees batch {unseen[0]}, but one sees batch {max(seen)}: number them 0,"
                " 1, 2, … without gaps."
            )
        for phase in self.phases:
            changed = [update.network for update in phase.updates]
            if len(set(changed)) < len(changed):
                raise ValueError(
                    f"phase {phase.name} changes a network twice: make two phases of it."
                )

    @property
    def batches(self) -> int:
        """Batches of real rows that one step takes."""
        return 1 + max(phase.batch for phase in self.phases)

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that a step changes, in the order of their first update."""
        return tuple(
            dict.fromkeys(update.network for phase in self.phases for update in phase.updates)
        )

    def updates_of(self, network: str) -> int:
        """How often one step changes a network; learning rates count by it.

        0 for one that stays as it is.
        """
        return len(self.phases_of(network))

    def phases_of(self, network: str) -> tuple[Phase, ...]:
        """The phases that change a network, in their order."""
        return tuple(
            phase
            for phase in self.phases
            if any(update.network == network for update in phase.updates)
        )


class Workload(Protocol):
    """One GAN system. No base class is needed.

    `options`: the run's options of this workload. `fields`: the fields of a batch, as the
    workload's entry in the catalog read them from the data set. Rows come as values (see `Field`),
    in every batch equally many.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """New, untrained keras models by name; their weights come from the framework's seed."""
        ...

    def program(self, options: Options, fields: Fields) -> Program:
        """What one step does."""
        ...

    def inputs(self, options: Options, fields: Fields, rows: Batch, noise: Noise) -> Batch:
        """What a generator is asked with, as many rows as `rows` has: latents, labels, frames.

        For the look after an epoch, and on the host, where rows and noise are NumPy arrays, for
        images on request.
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
        """`count` rows to ask a generator with, on the host: of the sample grids, so the same in
        all runs.

        `rows`: held-out rows as values, perhaps fewer than `count`. More rows begin with the same
        ones.
        """
        ...

    def show(
        self, options: Options, networks: Networks, inputs: Batch, noise: Noise
    ) -> Mapping[str, Tensor]:
        """What comes out for given inputs, as named arrays (rows, …), in inference mode.

        `noise`: keyed by the seed of the request (0 for sample grids, whatever the run's seed) and
        the row's place in it, so the same for any number of replicas.
        """
        ...

    def judge(self, options: Options, networks: Networks, rows: Batch, inputs: Batch) -> Judged:
        """What the networks make of real rows, and of what they generate for `inputs`;
        inference mode.
        """
        ...


@runtime_checkable
class Reads(Protocol):
    """A workload whose judging network can be asked about rows that are given, beside `Workload`.

    For jobs after the training.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """As `Workload.networks`."""
        ...

    def read(self, options: Options, networks: Networks, rows: Batch) -> Mapping[str, Tensor]:
        """What it makes of each row, in inference mode: named arrays (rows,)."""
        ...


@runtime_checkable
class Translates(Protocol):
    """A workload whose network makes a picture of a picture, tile by tile, beside `Workload`.

    For jobs after the training.
    """

    def networks(self, options: Options, fields: Fields) -> dict[str, Any]:
        """As `Workload.networks`; the first that the entry calls `averaged` is the one that
        is asked.
        """
        ...

    def tile(self, options: Options, fields: Fields) -> int:
        """Side of the square tiles in pixels."""
        ...

    def translate(self, options: Options, networks: Networks, source: Tensor) -> Tensor:
        """Values (B, height, width, channels in) → float32 (B, height, width, channels out), in
        inference mode: stored statistics, nothing drawn, so that what becomes of a picture depends
        on nothing beside it. Sides: the tile's, or a multiple of it where the network is made for
        any.
        """
        ...
