"""RunSpec: every option of a run with its unit, range, default, source and error text.

The Launch form, the command line (`--set key=value`) and spec.json are all made from this one
table. A spec checks itself when it is built, before any process starts; below that line the code
trusts it.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import (
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from gan_runtime import catalog
from gan_runtime.base import options
from gan_runtime.base.errors import DatasetError, FieldError, SpecError
from gan_runtime.base.metrics import LEARNING_RATE, of_network
from gan_runtime.base.options import Option, OptionRecord
from gan_runtime.catalog.entries import WorkloadEntry
from gan_runtime.spec import nesting
from gan_runtime.spec import rules as spec_rules
from gan_runtime.spec.distribution import DistributionOptions
from gan_runtime.spec.optimizer import AveragingOptions, OptimizerOptions
from gan_runtime.spec.run_options import RunOptions
from gan_runtime.spec.watching import MeasuringOptions, WatchingOptions

# ----------------------------------------------------------------------
# A JSON file of options, such as a run's spec.json, read with care: it may come from anyone and may
# be no file at all.

MAX_BYTES = 100_000  # all options together take 1,500
MAX_KEYS = 200
ADVICE = "correct it, or start from the spec.json of a run."


def read_values(path: Path) -> dict[str, Any]:
    """The options that a JSON file gives, unchecked.

    Raises SpecError when it is missing, too large or no JSON object.
    """
    try:
        values = json.loads(_content(path))
    except OSError as error:
        raise _refused(
            path, f"cannot be read ({error.strerror}): give the path of a JSON file."
        ) from None
    except RecursionError:
        raise _refused(path, f"holds brackets within brackets without end: {ADVICE}") from None
    except ValueError as error:
        raise _refused(path, f"is not JSON ({error}): {ADVICE}") from None
    if not isinstance(values, dict):
        raise _refused(
            path, f"holds a {type(values).__name__}: it must hold one JSON object of options."
        )
    if len(values) > MAX_KEYS:
        raise _refused(path, f"holds {len(values):,} keys, more than there are options: {ADVICE}")
    return values


def _content(path: Path) -> bytes:
    if not stat.S_ISREG(
        path.stat().st_mode
    ):  # a pipe would wait for its other end, a device may never end
        raise _refused(path, "is not a plain file: give the path of a JSON file.")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise _refused(path, f"has more than {MAX_BYTES:,} bytes: {ADVICE}")
    return content


def _refused(path: Path, reason: str) -> SpecError:
    return SpecError([FieldError("spec", f"spec file {path} {reason}")])


class RunSpec(
    RunOptions,
    AveragingOptions,
    OptimizerOptions,
    DistributionOptions,
    WatchingOptions,
    MeasuringOptions,
    OptionRecord,
):
    """What one training run is. Immutable; a wrong value never gets past `RunSpec.parse`.

    `of_workload`: the record of the workload's own options, which stands under the workload's name
    in JSON.
    """

    of_workload: Any = None

    @model_validator(mode="wrap")
    @classmethod
    def _check_all(cls, given: Any, check_options: ModelWrapValidatorHandler[RunSpec]) -> RunSpec:
        """Everything that is wrong is told at once: the rules are tried on whatever options
        are right by themselves.
        """
        if isinstance(given, RunSpec):
            return given
        sorted_out = nesting.sort_out(dict(given), cls.options())
        entry = nesting.entry_of(sorted_out.shared)
        wrong, own, shared = sorted_out.wrong, None, sorted_out.shared
        if entry is not None:
            shared = {**entry.defaults, **shared}
            own, its_wrong = options.tried(
                entry.options.model_validate, sorted_out.own, options.of(entry.options)
            )
            wrong += its_wrong
        spec, shared_wrong = options.tried(
            lambda values: check_options({**values, "of_workload": own}), shared, cls.options()
        )
        wrong += shared_wrong
        right = {name: value for name, value in spec.flat().items() if name not in _names(wrong)}
        if wrong_of_rules := spec_rules.broken(
            right, (*spec_rules.RULES, *(entry.rules if entry else ()))
        ):
            known = cls.options(spec.workload)
            wrong += [
                FieldError(error.field, options.labelled(error.message, known[error.field]))
                for error in wrong_of_rules
            ]
        if wrong:
            raise ValidationError.from_exception_data(
                cls.__name__, [_detail(error, given) for error in wrong]
            )
        return spec

    @model_serializer(mode="wrap")
    def _nested(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The own options of the workload under its name, behind all others."""
        values = write(self)
        own = values.pop("of_workload")
        return {**values, self.workload: own}

    @classmethod
    def known_options(cls) -> Mapping[str, Option]:
        """Of these fields; which workloads may be chosen is asked each time."""
        return cls.options()

    @classmethod
    def options(cls, workload: str = "") -> dict[str, Option]:
        """The options that all runs share, and those of a workload (none for an unknown one),
        as in the form.
        """
        return _options(workload, tuple(catalog.WORKLOADS))

    @classmethod
    def named(cls, name: str) -> str:
        """A shared option as sentences call it: "Global batch (batch_size_global)"."""
        return cls.options()[name].named

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> RunSpec:
        """A spec from plain values, nested or flat (see `nesting`); numbers may be text, as a form
        gives them.

        Raises:
            SpecError: one message per wrong option: what was given, what is allowed, what to do.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SpecError(
                [FieldError(str(detail["loc"][0]), detail["msg"]) for detail in error.errors()]
            ) from None

    @classmethod
    def read(cls, path: Path) -> RunSpec:
        """The spec in a JSON file.

        Raises SpecError when the file is missing, no JSON, or holds a wrong value.
        """
        return cls.parse(read_values(path))

    def flat(self) -> dict[str, Any]:
        """Every option by its plain name, those of the workload behind the shared ones."""
        shared = {name: value for name, value in self if name != "of_workload"}
        return {**shared, **dict(self.of_workload or ())}

    def value(self, name: str) -> Any:
        """An option by its name, plain or as in "dcgan_mnist.label_smoothing". Raises KeyError."""
        return self.flat()[name.removeprefix(f"{self.workload}.")]

    @property
    def entry(self) -> WorkloadEntry:
        """What the catalog says of the workload."""
        return catalog.WORKLOADS[self.workload]

    def learning_rate(self, network: str) -> float:
        """The step size that the options give a network, before schedule and scaling."""
        return float(getattr(self.of_workload, of_network(LEARNING_RATE, network)))

    @property
    def replicas_in_all(self) -> int:
        """Copies of the model over all workers together."""
        return self.replicas * self.workers

    @property
    def batch_size_per_replica(self) -> int:
        """Images that one replica sees in a step."""
        return self.batch_size_global // self.replicas_in_all

    @property
    def batches_per_step(self) -> int:
        """Batches of real images that one step takes from the set."""
        return self.entry.batches(self.of_workload)

    @property
    def images_per_step(self) -> int:
        """Real images that one step takes from the set.

        Every rate, estimate and count of images is made from this, never from the batch alone.
        """
        return self.batch_size_global * self.batches_per_step

    def steps_per_epoch(self, images: int) -> int:
        """Steps in one epoch, which is one pass over `images` images; 0 when a step takes
        more than the set has.
        """
        return images // self.images_per_step

    def check_set(self, images: int) -> None:
        """Raises DatasetError when a set of `images` images does not fill one step: there
        would be none to train.
        """
        if self.steps_per_epoch(images):
            return
        batch = f"{self.named('batch_size_global')} is {self.batch_size_global}"
        has = f"{self.dataset} has only {images} images"
        if self.batch_size_global > images:
            raise DatasetError(f"{batch}, but {has}: use a smaller batch.")
        raise DatasetError(
            f"{batch} and a step takes {self.batches_per_step} batches, {self.images_per_step}"
            f" images in all, but {has}: use a smaller batch, or fewer batches in a step."
        )

    def changed_from_default(self) -> dict[str, Any]:
        """The options that differ from their default, by plain name, for showing a run in short."""
        known = self.options(self.workload)
        return {name: value for name, value in self.flat().items() if value != known[name].default}


@cache
def _options(workload: str, workloads: tuple[str, ...]) -> dict[str, Option]:
    """`workloads`: what may be chosen, which a test may add to."""
    shared = dict(options.of(RunSpec))
    shared["workload"] = replace(shared["workload"], choices=workloads)
    entry = catalog.WORKLOADS.get(workload)
    for name, default in entry.defaults.items() if entry else ():
        shared[name] = replace(shared[name], default=default)
    known = {**shared, **nesting.own_options(workload)}
    return dict(sorted(known.items(), key=lambda item: options.GROUPS.index(item[1].group)))


def _names(errors: list[FieldError]) -> set[str]:
    return {error.field for error in errors}


def _detail(error: FieldError, given: Any) -> InitErrorDetails:
    kind = PydanticCustomError("option", "{message}", {"message": error.message})
    return InitErrorDetails(type=kind, loc=(error.field,), input=given)
