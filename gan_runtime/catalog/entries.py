"""The records of the catalog and of published speeds; they load no framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
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

Options = Any  # an instance of the entry's `options`
Rule = Callable[..., FieldError | None]  # parameters: the options that it reads, by name


def refused(option: str, when: Callable[..., bool], sentence: str) -> Rule:
    """The rule that refuses an option while `when` of options holds. `sentence`: says why and what
    to do, with the values of these options in braces.
    """

    def rule(**values: Any) -> FieldError | None:
        return FieldError(option, sentence.format(**values)) if when(**values) else None

    rule.__signature__ = signature(when)  # type: ignore[attr-defined]
    return rule


@dataclass(frozen=True)
class Size:
    """The size of the networks, for the memory estimate. `parameters`: exact number of weights.
    `activations_per_row`: numbers stored for the backward pass per row, within a factor of two.
    """

    parameters: int
    activations_per_row: int


@dataclass(frozen=True)
class Judgement:
    """A number per row of `Workload.judge`, drawn as the histogram score/<name> and, if rows have
    labels, as lines of the means score/<name>/<class>.

    `low`, `high`: its range, for fixed bins; None: bins from the lowest to the highest value.
    `side`: the rows it is about, for its color. `label`: in legends; "": the title.
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
        """The name of the histogram's bars."""
        return self.label or self.title

    @property
    def bounds(self) -> tuple[float, float] | None:
        """The range of values; None if unknown."""
        return None if self.low is None or self.high is None else (self.low, self.high)

    @property
    def by_class(self) -> Panel:
        """The chart of the means by class."""
        return Panel(
            f"{self.title}, by class",
            subtitle="Mean over the measured images or rows of each class.",
            series="Class",
            domain=self.bounds,
        )

    def of_class(self, class_name: str) -> Metric:
        """The metric of the mean over the rows of one class, after each epoch."""
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
    """One kind of sample image per epoch.

    `renderer`: its name in `gan_runtime/pictures`. `arrays`: the arrays of `Workload.show` that it
    draws, in the renderer's order. `title`: above the player.
    """

    name: str
    title: str
    renderer: str
    arrays: tuple[str, ...]


@dataclass(frozen=True)
class Renderer:
    """Draws arrays as an image. `takes`: the contents of the arrays, in order.

    `draw`: "module:function"; it gets (arrays, names of classes, SheetLimits) and returns a Pillow
    image.
    """

    takes: tuple[str, ...]
    draw: str


@dataclass(frozen=True)
class Speed:
    """Seconds of an epoch on a number of devices."""

    system: str
    devices: int
    batch_size_per_replica: int
    seconds: float


@dataclass(frozen=True)
class PublishedSpeeds:
    """Speeds that the authors of a workload published. `images`: rows of an epoch.

    `source`: authors and table. `setting`: how it differs from a run of this program, a sentence.
    """

    source: str
    setting: str
    images: int
    speeds: tuple[Speed, ...]

    def images_per_s(self, speed: Speed) -> float:
        """The rate of all devices together."""
        return self.images / speed.seconds


@dataclass(frozen=True)
class Condition:
    """A single number that conditions a generator, which users choose for images on request.

    `field`: its name in a row. `low`, `high`, `usual`: in `unit`; one `unit` is `factor` of the
    field's value.
    """

    field: str
    title: str
    unit: str
    low: float
    high: float
    usual: float
    factor: float


@dataclass(frozen=True)
class WorkloadEntry:
    """The declaration of a GAN, readable without a framework.

    `options`: the record of the workload's options, nested in a run's options under its name.
    `reads(options, offered)`: which of a data set's fields it reads; raises DatasetError if they do
    not fit. `fitted(offered)`: workload options that follow from the shapes of a data set.
    `tile(options)`: side in pixels of the square tiles that its network sees; None: it sees whole
    images. `batches(options)`: batches of training rows per step, equal to `Program.batches`.
    `small_layers(options)`: whether its operations are too small to split over cores, so that
    several at once are faster. `averaged`: the networks that may have a moving average; the first
    one generates images. `rules`: across its options and the shared ones. `panels`: the charts that
    `metrics` name; an undeclared one has its name as title. `defaults`: its own defaults of shared
    options. `in_nats`: values of its option `loss` with the unit of `metrics`; others have none.
    `published`: speeds that its authors measured, shown in studies of devices.
    `conditions`: numbers that its generator reads if its data has them. `has_latents`: whether its
    generator draws from random vectors, or only changes images.
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
    in_nats: frozenset[str] = frozenset()
    conditions: tuple[Condition, ...] = ()
    has_latents: bool = True

    @property
    def averages(self) -> tuple[str, ...]:
        """The networks that can have a moving average, the generating network first."""
        return (self.averaged,) if isinstance(self.averaged, str) else self.averaged

    @property
    def rates(self) -> tuple[str, ...]:
        """The learning-rate options, one per network in order."""
        return tuple(of_network(LEARNING_RATE, network.name) for network in self.networks)


@dataclass(frozen=True)
class DatasetEntry:
    """One data set of the project or a package. `rows`: training rows of the full set.

    `load`: "module:function" that returns its `DataSet` (data/contract.py) without a network; "":
    it is downloaded. `label_parts`: sizes of the independent parts of a label, the most significant
    first, such as (10, 10, 10) for three digits; (): labels have no parts. `license`: of the rows;
    "": unknown.
    """

    title: str
    summary: str
    source: str
    rows: int
    fields: Fields
    load: str = ""
    label_parts: tuple[int, ...] = ()
    license: str = ""


@dataclass(frozen=True)
class EngineEntry:
    """A framework that runs the training step.

    `flags`: module whose `set_flags` a trainer calls before it loads the framework. `tiles`: module
    whose `TILE_PROGRAM` runs a network on the tiles of images (engines/tiles.py). `cluster`: module
    whose `place` returns a worker's rank and whose `leave` ends its part.
    """

    title: str
    summary: str
    module: str
    flags: str
    tiles: str
    cluster: str


@dataclass(frozen=True)
class Caution:
    """A known problem of a preset when `option` is at least `least` and the options in
    `preset_options` are unchanged, and its repair, which changes one of these.
    """

    option: str
    least: float
    preset_options: tuple[str, ...]
    text: str
    repair: dict[str, Any]

    def concerns(self, values: Mapping[str, Any], preset: Mapping[str, Any]) -> bool:
        """Whether it applies to these flat values of all options; `preset`: the preset's values."""
        unchanged = all(values.get(name) == preset[name] for name in self.preset_options)
        return unchanged and values[self.option] >= self.least


@dataclass(frozen=True)
class Preset:
    """A named starting point. `suggestions`: values on buttons next to a field. `cautions`: the
    first one that concerns a run counts.
    """

    title: str
    summary: str
    values: dict[str, Any]
    suggestions: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    cautions: tuple[Caution, ...] = ()


@dataclass(frozen=True)
class PublishedScaling:
    """Published seconds per epoch for several numbers of devices. `who`: name in a legend; `title`:
    of the table; `source`: for the caption.
    """

    who: str
    title: str
    source: str
    speeds: tuple[Speed, ...]


@dataclass(frozen=True)
class TrainingTime:
    """Seconds on a device or all its cores; `batch_size`: as in the table."""

    device: str
    batch_size: int
    seconds: float


@dataclass(frozen=True)
class PublishedTimes:
    """Published training times by device and batch size.

    `title`: of the table; `source`: of its caption; `setting`: how they were measured.
    """

    title: str
    source: str
    setting: str
    times: tuple[TrainingTime, ...]

    @property
    def seconds(self) -> dict[str, dict[int, float]]:
        """Published seconds by device and batch size."""
        by_device: dict[str, dict[int, float]] = {}
        for time in self.times:
            by_device.setdefault(time.device, {})[time.batch_size] = time.seconds
        return by_device


@dataclass(frozen=True)
class CompiledMachine:
    """A machine for which an epoch is compiled.

    `topology`: its name in the compiler; `system`: the name of its devices in `Speed`.
    """

    topology: str
    title: str
    system: str


@dataclass(frozen=True)
class CompiledEpoch:
    """A compiled epoch whose cycles are counted, next to the authors' measured time.

    `what`: the setting, a sentence; `batch_per_core`, `cores`: of the authors' training. `plain`,
    `project`: titles of the authors' program and of this project's.
    """

    what: str
    published: PublishedSpeeds
    batch_per_core: int
    cores: int
    plain: str
    project: str
    machines: tuple[CompiledMachine, ...]

    def measured(self, system: str) -> Speed:
        """The authors' speed on as many cores of a system."""
        speeds = self.published.speeds
        return next(
            speed for speed in speeds if (speed.system, speed.devices) == (system, self.cores)
        )
