"""The options of a run in two forms, and the way from one to the other.

Nested, as in spec.json and the journals:
    {"workload": "dcgan_mnist", "epochs": 30, "dcgan_mnist": {"label_smoothing": 0.1}}
Flat, as in the store, in forms and in files from before the nesting:
    {"workload": "dcgan_mnist", "epochs": 30, "label_smoothing": 0.1}
A person may mix both, and write "dcgan_mnist.label_smoothing". No option of a workload has the name
of a shared one, so that a flat form says the same as a nested one.
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


@dataclass(frozen=True)
class NestedOptions:
    """What was given, by where it belongs, under plain names; `wrong`: what belongs nowhere."""

    shared: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)
    wrong: list[FieldError] = field(default_factory=list)


def workload_of(values: Mapping[str, Any]) -> str:
    """The workload that options are for; it may be none of the catalog."""
    given = values.get("workload", DEFAULT_WORKLOAD)
    return given if isinstance(given, str) else ""


def entry_of(values: Mapping[str, Any]) -> WorkloadEntry | None:
    """Its entry; None when the catalog has none, as for a run of another version."""
    return catalog.WORKLOADS.get(workload_of(values))


def own_options(workload: str) -> Mapping[str, Option]:
    """The options that a workload has for itself; none for one that is not in the catalog."""
    return options.of(catalog.WORKLOADS[workload].options) if workload in catalog.WORKLOADS else {}


def own_defaults(workload: str) -> Mapping[str, Any]:
    """The shared options of which a workload has a default of its own; none for one that is
    not in the catalog.
    """
    return catalog.WORKLOADS[workload].defaults if workload in catalog.WORKLOADS else {}


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """All options by plain name, the record of the workload spread out. What stands later wins."""
    return dict(_spread(values, workload_of(values)))


def overlaid(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` on top, flat.

    Where they choose another workload, the options of the earlier one stay as far as the other has
    options of that name; shared ones of which either has a default of its own begin anew.
    """
    before = flat(base)
    workload = workload_of({**before, **changes})
    changed = dict(_spread(changes, workload))
    kept = before
    if workload != workload_of(before):
        lost = own_options(workload_of(before)).keys() - own_options(workload).keys()
        lost |= own_defaults(workload_of(before)).keys() | own_defaults(workload).keys()
        kept = {name: value for name, value in before.items() if name not in lost}
    return {**kept, **changed}


def sort_out(values: Mapping[str, Any], shared: Mapping[str, Option]) -> NestedOptions:
    """Which of `values` are options of all runs, which are the workload's own, and which are
    neither.
    """
    workload = workload_of(values)
    own = own_options(workload)
    given = NestedOptions()
    known = workload in catalog.WORKLOADS
    for name, value in _spread(values, workload) if known else values.items():
        if name in shared:
            given.shared[name] = value
        elif name in own:
            given.own[name] = value
        elif wrong := _why_wrong(name, value, workload, shared):
            given.wrong.append(wrong)
    return given


def _why_wrong(
    name: str, value: Any, workload: str, shared: Mapping[str, Option]
) -> FieldError | None:
    """What is wrong with a key that is no option; None where the sentence about an unknown
    workload is enough.
    """
    own, owners = own_options(workload), _owners(name)
    if workload not in catalog.WORKLOADS and (owners or name.partition(".")[0] == workload):
        return None
    if name == workload and own:
        return _no_record(workload, own, value)
    if owners and workload not in owners:
        return _of_another(name, owners, workload)
    dotted = {plain: f"{workload}.{plain}" if "." in name else plain for plain in own}
    return options.unknown(name, {**{plain: plain for plain in shared}, **dotted})


def _spread(values: Mapping[str, Any], workload: str) -> Iterator[tuple[str, Any]]:
    """Options of the workload's record by plain name; a key of it that is no own option keeps
    the workload.
    """
    own, known = own_options(workload), workload in catalog.WORKLOADS
    for name, value in values.items():
        place, _, plain = name.partition(".")
        if name == workload and isinstance(value, Mapping):
            for key, its_value in value.items():
                yield (key if key in own or not known else f"{workload}.{key}"), its_value
        else:
            yield (plain if place == workload and plain in own else name), value


def _owners(name: str) -> list[str]:
    """The workloads that have an option of this name, with or without theirs before it, or
    are called so.
    """
    place, _, plain = name.partition(".")
    if place in catalog.WORKLOADS:
        return [place] if not plain or plain in own_options(place) else []
    return [workload for workload in catalog.WORKLOADS if name in own_options(workload)]


def _of_another(name: str, owners: list[str], workload: str) -> FieldError:
    theirs = " and ".join(part for part in (", ".join(owners[:-1]), owners[-1]) if part)
    return FieldError(
        name,
        f"{name} belongs to workload {theirs}, but workload is {workload}: "
        f"leave it out, or use workload={owners[0]}.",
    )


def _no_record(workload: str, own: Mapping[str, Option], value: Any) -> FieldError:
    example = next(iter(own))
    return FieldError(
        workload,
        f"{workload} is {quoted(value)}, but it holds the workload's own options by name: "
        f"set one of them, such as {workload}.{example}.",
    )


def images_per_step(values: Mapping[str, Any]) -> int:
    """Real images of one step of a stored run: a batch for each that its workload's program takes.

    A workload that the catalog does not know takes one. Options that the run lacks are at their
    default.
    """
    entry, given = entry_of(values), flat(values)
    if entry is None:
        return int(given["batch_size_global"])
    own = {name: given[name] for name in own_options(workload_of(given)) if name in given}
    return int(given["batch_size_global"]) * entry.batches(entry.options.model_construct(**own))
