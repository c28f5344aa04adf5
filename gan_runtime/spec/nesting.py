"""The two forms of a run's options, and the conversion between them.

Nested, as in spec.json and the journals:
    {"workload": "dcgan_mnist", "epochs": 30, "dcgan_mnist": {"label_smoothing": 0.1}}
Flat, as in the database, in forms and in files of early versions:
    {"workload": "dcgan_mnist", "epochs": 30, "label_smoothing": 0.1}
Users may mix both, and write "dcgan_mnist.label_smoothing". No option of a workload has the name of
a shared option, so both forms say the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from gan_runtime import catalog
from gan_runtime.base import options
from gan_runtime.base.errors import FieldError, quoted
from gan_runtime.base.options import Option
from gan_runtime.catalog.entries import WorkloadEntry

DEFAULT_WORKLOAD = "dcgan_mnist"
EVENT_LOG = "tensorboard"  # of an imported log, whose options are placeholders; not in the catalog


@dataclass(frozen=True)
class NestedOptions:
    """Options of all runs (`shared`) and of the workload (`of_workload`) by plain name;
    `errors`: keys that are neither.
    """

    shared: dict[str, Any] = field(default_factory=dict)
    of_workload: dict[str, Any] = field(default_factory=dict)
    errors: list[FieldError] = field(default_factory=list)


def workload_of(values: Mapping[str, Any]) -> str:
    """The name of the workload; the catalog need not have it."""
    name = values.get("workload", DEFAULT_WORKLOAD)
    return name if isinstance(name, str) else ""


def entry_of(values: Mapping[str, Any]) -> WorkloadEntry | None:
    """The catalog entry of the workload; None if the catalog lacks it, as for a run of another
    version.
    """
    return catalog.WORKLOADS.get(workload_of(values))


def own_options(workload: str) -> Mapping[str, Option]:
    """The workload's own options; empty for an unknown workload."""
    return options.of(catalog.WORKLOADS[workload].options) if workload in catalog.WORKLOADS else {}


def own_defaults(workload: str) -> Mapping[str, Any]:
    """The workload's defaults of shared options; empty for an unknown workload."""
    return catalog.WORKLOADS[workload].defaults if workload in catalog.WORKLOADS else {}


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """All options by plain name. The last of equal names wins."""
    return dict(_flattened(values, workload_of(values)))


def overlaid(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` on top, flat.

    If they change the workload, options of the earlier one stay where the new one has the same
    names; shared options of which either has its own default return to the default.
    """
    before = flat(base)
    workload = workload_of({**before, **changes})
    changed = dict(_flattened(changes, workload))
    unchanged = before
    if workload != workload_of(before):
        dropped = own_options(workload_of(before)).keys() - own_options(workload).keys()
        dropped |= own_defaults(workload_of(before)).keys() | own_defaults(workload).keys()
        unchanged = {name: value for name, value in before.items() if name not in dropped}
    return {**unchanged, **changed}


def split(values: Mapping[str, Any], shared: Mapping[str, Option]) -> NestedOptions:
    """Splits `values` into options of all runs, options of the workload, and errors."""
    workload = workload_of(values)
    workload_options = own_options(workload)
    nested = NestedOptions()
    in_catalog = workload in catalog.WORKLOADS
    for name, value in _flattened(values, workload) if in_catalog else values.items():
        if name in shared:
            nested.shared[name] = value
        elif name in workload_options:
            nested.of_workload[name] = value
        elif error := _error(name, value, workload, shared):
            nested.errors.append(error)
    return nested


def _error(name: str, value: Any, workload: str, shared: Mapping[str, Option]) -> FieldError | None:
    """The error about an unknown key; None if the error about an unknown workload is enough."""
    workload_options, owners = own_options(workload), _owners(name)
    if workload not in catalog.WORKLOADS and (owners or name.partition(".")[0] == workload):
        return None
    if name == workload and workload_options:
        return FieldError(
            workload,
            f"{workload} is {quoted(value)}, but it is an object of the workload's options: "
            f"set one of them, such as {workload}.{next(iter(workload_options))}.",
        )
    if owners and workload not in owners:
        return _of_another(name, owners, workload)
    dotted = {plain: f"{workload}.{plain}" if "." in name else plain for plain in workload_options}
    return options.unknown_option(name, {**{plain: plain for plain in shared}, **dotted})


def _flattened(values: Mapping[str, Any], workload: str) -> Iterator[tuple[str, Any]]:
    """The workload's record is spread by plain names; a key of it that is no option stays
    "workload.key".
    """
    workload_options, in_catalog = own_options(workload), workload in catalog.WORKLOADS
    for name, value in values.items():
        prefix, _, plain = name.partition(".")
        if name == workload and isinstance(value, Mapping):
            for key, its_value in value.items():
                is_plain = key in workload_options or not in_catalog
                yield (key if is_plain else f"{workload}.{key}"), its_value
        else:
            yield (plain if prefix == workload and plain in workload_options else name), value


def _owners(name: str) -> list[str]:
    """The workloads that have an option of this name, plain or dotted, or that have this name."""
    prefix, _, plain = name.partition(".")
    if prefix in catalog.WORKLOADS:
        return [prefix] if not plain or plain in own_options(prefix) else []
    return [workload for workload in catalog.WORKLOADS if name in own_options(workload)]


def _of_another(name: str, owners: list[str], workload: str) -> FieldError:
    names = " and ".join(part for part in (", ".join(owners[:-1]), owners[-1]) if part)
    return FieldError(
        name,
        f"{name} belongs to workload {names}, but workload is {workload}: "
        f"leave it out, or use workload={owners[0]}.",
    )


def images_per_step(values: Mapping[str, Any]) -> int:
    """Training images per step of a stored run, over all batches that its program takes; 0 if
    unknown. An unknown workload takes one batch. Missing options have their default.
    """
    entry, options_by_name = entry_of(values), flat(values)
    if workload_of(values) == EVENT_LOG:
        return 0
    if entry is None:
        return int(options_by_name["batch_size_global"])
    names = own_options(workload_of(options_by_name)).keys() & options_by_name.keys()
    values = {name: options_by_name[name] for name in names}
    batches = entry.batches(entry.options.model_construct(**values))
    return int(options_by_name["batch_size_global"]) * batches
