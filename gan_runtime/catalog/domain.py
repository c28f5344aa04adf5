"""The declarations of a domain: evaluations, which are background jobs that measure a checkpoint
and store the result (records/answer.py), and the preparations of its data sets. Also the scores of
image quality, which are metrics of runs, and the domains of the project.

Loads no framework and no NumPy, so every process can read it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime.base.errors import FieldError
from gan_runtime.base.fields import Fields
from gan_runtime.base.metrics import NOT_DRAWN, Better, Metric, Role
from gan_runtime.base.options import OptionRecord
from gan_runtime.catalog.entries import (
    CompiledEpoch,
    Options,
    Preset,
    PublishedScaling,
    PublishedTimes,
    Renderer,
    WorkloadEntry,
)
from gan_runtime.catalog.facts import FactTypes, MapFacts, QualityFacts, SurfaceFacts


@dataclass(frozen=True)
class PublishedScore:
    """A published score, for comparison. `source`: paper and table; `what`: data and model."""

    score: str
    value: float
    error: float | None
    what: str
    source: str


@dataclass(frozen=True)
class Evaluation:
    """One evaluation of trained networks, declared without a framework.

    `name`: as stored and on the command line, such as "rollout"; `aliases`: names of older
    commands; `earlier_jobs`: names of its jobs in earlier versions. `title`, `summary`: on its page
    and in `evaluate --help`; `verb`: on its button, such as "Measure"; `busy`: the refusal while
    run {run_id} is being evaluated; `stored`: what is left of an evaluation that did not finish.

    `options`: the record of its form, command-line options and errors. Requests with an option
    `checkpoint` (newest, best, every) or `epoch` that the run lacks are refused. `usual(home,
    run)`: defaults of options that depend on the run. `applies(entry, options, fields)`: "" if runs
    of that workload, options and data set can be evaluated, else the reason, for the disabled
    button. `lacking(home, run)`: "" if the run can be evaluated in its current state, else the
    reason. `check(home, run, options)`: raises other errors of a request. `needs_checkpoint`: if
    false, it reads the run's folder in any state.

    `scores`: the numbers that it may give, `published`: values of others. `work`: "module:function"
    that the job calls with a `Subject` and that returns an `EvaluationResult` (evaluation/jobs.py).
    `environment`: variables of its process. `report`: "module:function" that prints the result in a
    terminal (evaluation/catalog.py); default: the scores. `files`: yes-or-no options whose result
    file has this name; the command line copies it to a path.
    """

    name: str
    title: str
    summary: str
    verb: str
    options: type[OptionRecord]
    applies: Callable[[WorkloadEntry, Options, Fields], str]
    scores: tuple[Metric, ...]
    work: str
    aliases: tuple[str, ...] = ()
    earlier_jobs: tuple[str, ...] = ()
    busy: str = ""
    stored: str = "nothing was stored"
    usual: Callable[[Any, Any], Mapping[str, Any]] = lambda _home, _run: {}
    lacking: Callable[[Any, Any], str] = lambda _home, _run: ""
    check: Callable[[Any, Any, Any], None] = lambda _home, _run, _options: None
    needs_checkpoint: bool = True
    published: tuple[PublishedScore, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    report: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def _quality(score: str, title: str, better: Better, form: str, *, log: bool = False) -> Metric:
    """The best epoch can be chosen by scores with a better direction. Precision and density have
    none: noise, blur and equal images can score above real images (docs/metrics.md).
    """
    role: Role = "measured_quality" if better else ""
    return Metric(f"{QUALITY}_{score}", title, title, NOT_DRAWN, role, True, log, better, form)


def _of_features(name: str, network: str) -> tuple[Metric, ...]:
    """Scores of the features of another network than the classifier of the data set."""
    return (
        _quality(f"{name}_precision", f"Precision ({network})", "", ".1%"),
        _quality(f"{name}_recall", f"Recall ({network})", "higher", ".1%"),
        _quality(f"{name}_density", f"Density ({network})", "", ".2f"),
        _quality(f"{name}_coverage", f"Coverage ({network})", "higher", ".1%"),
    )


# Scores of the evaluation of images (evaluation/quality.py); definitions: docs/metrics.md.
QUALITY = "quality"
# Facts of an answer: with other values its scores are not comparable.
DEFINING_FACTS = ("classifier", "weights", "protocol")
INACCURATE = "inaccurate classifier"  # where a score with a warning is only a few words
PRETRAINED_METRICS = (  # with features that need no labels
    _quality("imagenet_kcd", "KCD (ImageNet)", "lower", ".3~g", log=True),
    *_of_features("imagenet", "ImageNet"),
    _quality("fid", "FID", "lower", ".3~g", log=True),
    _quality("kid", "KID", "lower", ".3~g", log=True),
    *_of_features("inception", "Inception"),
)
QUALITY_METRICS = (
    # The first score is the quality of a run, since it is unbiased for few images with any
    # features.
    _quality("kcd", "KCD", "lower", ".3~g", log=True),
    _quality("fcd_infinite", "FCD∞", "lower", ".3~g", log=True),
    _quality("fcd", "FCD", "lower", ".3~g", log=True),
    _quality("classifier_score", "Classifier score", "higher", ".2f"),
    _quality("precision", "Precision", "", ".1%"),
    _quality("recall", "Recall", "higher", ".1%"),
    _quality("density", "Density", "", ".2f"),
    _quality("coverage", "Coverage", "higher", ".1%"),
    _quality("sure", "Classifier confidence", "higher", ".1%"),
    _quality("class_distance", "Class distance", "lower", ".1%"),
    _quality("rarest_class", "Rarest class", "", ".0%"),
    _quality("modes", "Modes", "higher", ",.0f"),
    _quality("copies", "Copies", "", ".1%"),
    _quality("nearest_training", "Distance to training images", "", ".2f"),  # protocols 1 to 3
    *PRETRAINED_METRICS,
)


HDF5_SUFFIXES = (".h5", ".hdf5")
Rule = Callable[[Any], FieldError | None]  # gets a record of options


@dataclass(frozen=True)
class Promised:
    """A data set before it is made: the fields of a row, and its number of training rows."""

    fields: Fields
    rows: int


class NoOptions(OptionRecord):
    """The options of a preparation without options."""


@dataclass(frozen=True)
class Preparation:
    """One way to make a data set.

    `maker`: the module that writes it into the home (data.preparations.Maker); empty: Keras
    downloads it into its cache. `source`: what --from names, in words; empty if not needed.
    `suffixes`: of a source that is a file. `name`: default name of the set. `version`: raised when
    the same source and options give other rows. `has_preview`: a page can preview the source.
    `promises(options)`: fields and rows, known before the set is made. With default options and the
    preparation's name, a run can be submitted before its set exists, and waits until it does.
    """

    title: str
    summary: str
    options: type[OptionRecord] = NoOptions
    maker: str = ""
    source: str = ""
    suffixes: tuple[str, ...] = ()
    name: str = ""
    rules: tuple[Rule, ...] = ()
    version: int = 1
    has_preview: bool = False
    promises: Callable[[Any], Promised] | None = None

    @property
    def promised(self) -> Promised | None:
        """The set with default options, before it is made; None if unknown."""
        return self.promises(self.options()) if self.promises else None

    @property
    def makes_files(self) -> bool:
        """Whether it writes the set into the home."""
        return bool(self.maker)

    @property
    def needs_source(self) -> bool:
        """Whether --from is required."""
        return bool(self.source)


@dataclass(frozen=True)
class Domain:
    """A scientific domain: its data sets, workloads and evaluations, by their stored names.

    `evaluations`: "module:NAME" of each `Evaluation`; `jobs`: modules with JOBS, its other
    background jobs; `facts`: types of the facts of answers, by evaluation. `first_rows`:
    "module:function" that draws the first rows of its data sets; it gets stored arrays by field and
    returns a Pillow image, or None for other rows. `nouns`: what a row with a field is called, by
    field. `describe(fields)`: one line on a row of its data sets; "" for other rows. `examples`:
    names of example bundles in examples/.
    `compiled_epoch`, `scaling`, `times`: published speeds, for comparison.
    """

    name: str
    title: str
    workloads: Mapping[str, WorkloadEntry]
    preparations: Mapping[str, Preparation] = field(default_factory=dict)
    renderers: Mapping[str, Renderer] = field(default_factory=dict)
    presets: Mapping[str, Preset] = field(default_factory=dict)
    evaluations: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    facts: Mapping[str, FactTypes] = field(default_factory=dict)
    first_rows: str = ""
    nouns: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[Fields], str] = lambda _fields: ""
    examples: tuple[str, ...] = ()
    compiled_epoch: CompiledEpoch | None = None
    scaling: PublishedScaling | None = None
    times: PublishedTimes | None = None


# The only table of the core that names the domains. Each module has DOMAIN, and imports the classes
# above from this file, so the table is last.
MODULES = ("gan_runtime.domains.showers.domain", "gan_runtime.domains.flows.domain")
DOMAINS: tuple[Domain, ...] = tuple(importlib.import_module(name).DOMAIN for name in MODULES)
FACTS: Mapping[str, FactTypes] = {
    QUALITY: FactTypes(answer=QualityFacts),
    "loss_surface": FactTypes(answer=SurfaceFacts, curve=MapFacts),
    **{name: types for domain in DOMAINS for name, types in domain.facts.items()},
}
