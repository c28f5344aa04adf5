"""The records of the catalog. They load no framework, so every process may read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import (
    LEARNING_RATE,
    Metric,
    Network,
    Panel,
    Side,
    of_class,
    of_network,
)
from gan_runtime.catalog.published import PublishedSpeeds

Options = Any  # an instance of the entry's `options`
Rule = Callable[..., FieldError | None]  # its parameters are the options that it reads, by name


@dataclass(frozen=True)
class Size:
    """For the memory estimate.

    `parameters`: all weights of all networks, exact. `activations_per_row`: numbers kept for the
    backward pass for each row of a batch, within a factor of two.
    """

    parameters: int
    activations_per_row: int


@dataclass(frozen=True)
class Judgement:
    """A number for each row that `Workload.judge` gives, drawn as a histogram called score/<name>;
    where rows have labels, the means score/<name>/<class> are drawn as lines.

    `low`, `high`: all that it can be, for fixed bins; None for bins from the lowest to the highest
    value. `side`: which rows it judges, for its color. `label`: in legends, beside the others; ""
    for the title.
    """

    name: str
    title: str
    axis: str
    low: float | None = None
    high: float | None = None
    side: Side = ""
    label: str = ""

    @property
    def legend(self) -> str:
        """What its bars are called."""
        return self.label or self.title

    @property
    def bounds(self) -> tuple[float, float] | None:
        """All that it can be; None where that is not known."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def by_class(self) -> Panel:
        """The chart of its means class by class."""
        what = "Mean of the probed rows of each class."
        return Panel(f"{self.title}, by class", subtitle=what, series="Class", domain=self.bounds)

    def of_class(self, class_name: str) -> Metric:
        """Its mean over the rows of one class, after each epoch."""
        return Metric(
            of_class(self.name, class_name),
            f"{self.title}: {class_name}",
            self.axis,
            self.by_class.name,
            per_epoch=True,
            format=".3f",
            label=class_name,
        )


@dataclass(frozen=True)
class Picture:
    """One kind of picture of each epoch.

    `renderer`: its name in the table of gan_runtime/pictures. `arrays`: those of `Workload.show`
    that it draws, in the renderer's order. `title`: above the player.
    """

    name: str
    title: str
    renderer: str
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Renderer:
    """One way to draw arrays as a picture. `takes`: what the arrays hold, in their order.

    `draw`: "module:function", which gets (arrays, names of classes, Room) and returns a Pillow
    image.
    """

    takes: tuple[str, ...]
    draw: str


@dataclass(frozen=True)
class WorkloadEntry:
    """One GAN system: everything that is said of it without loading a framework.

    `options`: the record of its own options, nested in a run's options under the workload's name.
    `reads(options, offered)`: the fields of a batch that it reads, out of those that a data set
    offers. Raises DatasetError with the reason when they do not fit. `fitted(offered)`: its own
    options that must follow the shapes of a data set, by name, for one who chooses the data set
    first. `tile(options)`: side in pixels of the square tiles that its network sees of a picture;
    None for a workload that sees all of it. `batches(options)`: batches of real rows that one step
    takes; `Program.batches` is the same number. `small_layers(options)`: whether splitting its
    operations over cores costs more than it brings, and several beside each other serve better.
    `averaged`: the network, or the networks, of which a moving average may be kept; the first one
    makes the pictures. `rules`: across its options and those of every run. `panels`: how Live draws
    the panels that `metrics` name; one without a row here has its name for a title.
    `defaults`: options that all runs share, by name, whose default is another one with this
    workload. `published`: speeds that its authors measured, which stand beside studies of more
    devices.
    """

    title: str
    summary: str
    source: str
    module: str
    options: type[BaseModel]
    networks: tuple[Network, ...]
    metrics: tuple[Metric, ...]
    judgements: tuple[Judgement, ...]
    pictures: tuple[Picture, ...]
    averaged: str | tuple[str, ...]
    reads: Callable[[Options, Fields], Fields]
    batches: Callable[[Options], int]
    size: Callable[[Options, Fields], Size]
    fitted: Callable[[Fields], Mapping[str, Any]] = lambda _offered: {}
    tile: Callable[[Options], int] | None = None
    small_layers: Callable[[Options], bool] = lambda _options: False
    panels: tuple[Panel, ...] = ()
    rules: tuple[Rule, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    published: PublishedSpeeds | None = None

    @property
    def averages(self) -> tuple[str, ...]:
        """The networks of which a moving average may be kept, the one that makes the pictures
        first.
        """
        return (self.averaged,) if isinstance(self.averaged, str) else self.averaged

    @property
    def rates(self) -> tuple[str, ...]:
        """The options that are learning rates, one for each network in their order."""
        return tuple(of_network(LEARNING_RATE, network.name) for network in self.networks)


@dataclass(frozen=True)
class DatasetEntry:
    """One data set that comes with the project or a package, or is fetched.

    `rows`: to train on, of the full set.

    `load`: "module:function" that gives its `DataSet` (data/contract.py) without a network; "" for
    one that is fetched.
    """

    title: str
    summary: str
    source: str
    rows: int
    fields: Fields
    load: str = ""


@dataclass(frozen=True)
class EngineEntry:
    """One way to run the training step.

    `flags`: the module whose `set_flags` a trainer calls before anything else is loaded.
    `tiles`: the module whose `TILE_PROGRAM` runs a network on the tiles of pictures
    (engines/tiles.py).
    `cluster`: the module whose `place` and `leave` tell a worker which one it is, and end its part.
    """

    title: str
    summary: str
    module: str
    flags: str
    tiles: str
    cluster: str


@dataclass(frozen=True)
class Caution:
    """What was seen to go wrong with a preset from `least` of `option` on while `alike` is
    untouched, and what repairs it.
    """

    option: str
    least: float
    alike: tuple[str, ...]
    text: str
    repair: dict[str, Any]

    def concerns(self, chosen: Mapping[str, Any], preset: Mapping[str, Any]) -> bool:
        """Whether it was seen at these values of all options, flat; `preset`: those that the
        preset gives them.
        """
        untouched = all(chosen.get(name) == preset[name] for name in (*self.alike, *self.repair))
        return untouched and chosen[self.option] >= self.least


@dataclass(frozen=True)
class Preset:
    """A named starting point.

    `suggestions`: values worth trying, offered as buttons beside the field.
    """

    title: str
    summary: str
    values: dict[str, Any]
    suggestions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    caution: Caution | None = None
