"""RunSpec: all options of a run, checked when it is built, before any process starts.

The Launch form, the command line (`--set key=value`) and spec.json are made from its fields.
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
from gan_runtime.spec.run_options import MeasuringOptions, MonitoringOptions, RunOptions
from gan_runtime.spec.training_options import (
    AveragingOptions,
    DistributionOptions,
    OptimizerOptions,
)

# Limits of a spec file, which can come from an untrusted source.
MAX_BYTES = 100_000  # all options together take 1,500
MAX_KEYS = 200
ADVICE = "correct it, or start from the spec.json of a run."


def read_values(path: Path) -> dict[str, Any]:
    """The unchecked options in a JSON file, such as a run's spec.json.

    Raises SpecError when it is missing, too large or no JSON object.
    """
    try:
        values = json.loads(_content(path))
    except OSError as error:
        raise _refused(
            path, f"cannot be read ({error.strerror}): give the path of a JSON file."
        ) from None
    except RecursionError:
        raise _refused(path, f"is nested too deeply: {ADVICE}") from None
    except ValueError as error:
        raise _refused(path, f"is not JSON ({error}): {ADVICE}") from None
    if not isinstance(values, dict):
        raise _refused(
            path, f"contains a {type(values).__name__}: write one JSON object of options."
        )
    if len(values) > MAX_KEYS:
        raise _refused(path, f"has {len(values):,} keys, more than there are options: {ADVICE}")
    return values


def _content(path: Path) -> bytes:
    # Reading a pipe would block, and a device can be endless.
    if not stat.S_ISREG(path.stat().st_mode):
        raise _refused(path, "is not a regular file: give the path of a JSON file.")
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
    MonitoringOptions,
    MeasuringOptions,
    OptionRecord,
):
    """All options of one run; immutable.

    `of_workload`: the record of the workload's own options, in JSON under the workload's name.
    """

    of_workload: Any = None

    @model_validator(mode="wrap")
    @classmethod
    def _check_all(cls, values: Any, check_options: ModelWrapValidatorHandler[RunSpec]) -> RunSpec:
        """Reports all errors at once: rules are checked on those options that are valid."""
        if isinstance(values, RunSpec):
            return values
        nested = nesting.split(dict(values), cls.options())
        entry = nesting.entry_of(nested.shared)
        errors, workload_record, shared = nested.errors, None, nested.shared
        if entry is not None:
            shared = {**entry.defaults, **shared}
            workload_record, own_errors = options.build_valid(
                entry.options.model_validate, nested.of_workload, options.of(entry.options)
            )
            errors += own_errors
        spec, shared_errors = options.build_valid(
            lambda valid: check_options({**valid, "of_workload": workload_record}),
            shared,
            cls.options(),
        )
        errors += shared_errors
        invalid = {error.field for error in errors}
        valid = {name: value for name, value in spec.flat().items() if name not in invalid}
        rules = (*spec_rules.RULES, *(entry.rules if entry else ()))
        all_options = cls.options(spec.workload)
        errors += [
            FieldError(error.field, options.with_label(error.message, all_options[error.field]))
            for error in spec_rules.broken(valid, rules)
        ]
        if errors:
            raise ValidationError.from_exception_data(
                cls.__name__, [_detail(error, values) for error in errors]
            )
        return spec

    @model_serializer(mode="wrap")
    def _nested(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The workload's own options come last, under its name."""
        values = write(self)
        workload_record = values.pop("of_workload")
        return {**values, self.workload: workload_record}

    @classmethod
    def known_options(cls) -> Mapping[str, Option]:
        """The names of all options; read each time, since packages add workloads."""
        return cls.options()

    @classmethod
    def options(cls, workload: str = "") -> dict[str, Option]:
        """The shared options and those of a workload (none for an unknown one), in the order
        of the form.
        """
        return _options(workload, tuple(catalog.WORKLOADS))

    @classmethod
    def named(cls, name: str) -> str:
        """A shared option as sentences call it: "Global batch (batch_size_global)"."""
        return cls.options()[name].named

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> RunSpec:
        """A spec from plain values, nested or flat (`nesting`); numbers may be text, as in forms.

        Raises:
            SpecError: one message per invalid option: its value, what is allowed, what to do.
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

        Raises SpecError when the file is missing, no JSON, or has an invalid value.
        """
        return cls.parse(read_values(path))

    def flat(self) -> dict[str, Any]:
        """All options by plain name, the shared ones first."""
        shared = {name: value for name, value in self if name != "of_workload"}
        return {**shared, **dict(self.of_workload or ())}

    def value(self, name: str) -> Any:
        """An option by its name, plain or as in "dcgan_mnist.label_smoothing". Raises KeyError."""
        return self.flat()[name.removeprefix(f"{self.workload}.")]

    @property
    def entry(self) -> WorkloadEntry:
        """The workload's entry in the catalog."""
        return catalog.WORKLOADS[self.workload]

    def learning_rate(self, network: str) -> float:
        """The learning rate of a network, before schedule and scaling."""
        return float(getattr(self.of_workload, of_network(LEARNING_RATE, network)))

    @property
    def replicas_in_all(self) -> int:
        """Replicas of all workers."""
        return self.replicas * self.workers

    @property
    def batch_size_per_replica(self) -> int:
        """Rows of one replica's share of a batch."""
        return self.batch_size_global // self.replicas_in_all

    @property
    def batches_per_step(self) -> int:
        """Batches of training images that one step takes from the data set."""
        return self.entry.batches(self.of_workload)

    @property
    def images_per_step(self) -> int:
        """Training images that one step takes from the data set: the unit of all rates and
        estimates.
        """
        return self.batch_size_global * self.batches_per_step

    def steps_per_epoch(self, images: int) -> int:
        """Steps of one pass over `images` images; 0 if a step takes more than that."""
        return images // self.images_per_step

    def check_set(self, images: int) -> None:
        """Raises DatasetError when a data set of `images` images does not fill one step."""
        if self.steps_per_epoch(images):
            return
        batch = f"{self.named('batch_size_global')} is {self.batch_size_global}"
        has = f"{self.dataset} has only {images} images"
        if self.batch_size_global > images:
            raise DatasetError(f"{batch}, but {has}: use a smaller batch.")
        raise DatasetError(
            f"{batch} and a step takes {self.batches_per_step} batches, {self.images_per_step}"
            f" images, but {has}: use a smaller batch, or fewer batches per step."
        )

    def changed_from_default(self) -> dict[str, Any]:
        """The options that differ from their default, by plain name."""
        declared = self.options(self.workload)
        return {
            name: value for name, value in self.flat().items() if value != declared[name].default
        }


@cache
def _options(workload: str, workloads: tuple[str, ...]) -> dict[str, Option]:
    """`workloads`: names in the catalog, a part of the cache key."""
    shared = dict(options.of(RunSpec))
    shared["workload"] = replace(shared["workload"], choices=workloads)
    entry = catalog.WORKLOADS.get(workload)
    for name, default in entry.defaults.items() if entry else ():
        shared[name] = replace(shared[name], default=default)
    merged = [*shared.values(), *nesting.own_options(workload).values()]
    merged.sort(key=lambda option: options.GROUPS.index(option.group))
    return {option.name: option for option in merged}


def _detail(error: FieldError, values: Any) -> InitErrorDetails:
    kind = PydanticCustomError("option", "{message}", {"message": error.message})
    return InitErrorDetails(type=kind, loc=(error.field,), input=values)
