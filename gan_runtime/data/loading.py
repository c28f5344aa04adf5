"""Finds a data set by its name: those of the catalog, those that are prepared in a home, and those
that a run has made for it. `check` says whether a run can have the one that it names.

Run as a module it fetches one:

python -m gan_runtime.data.loading mnist
"""

from __future__ import annotations

import difflib
import importlib
import sys
from dataclasses import dataclass

from pydantic import BaseModel

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError, GanRuntimeError, HomeError, quoted
from gan_runtime.base.fields import Fields
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.catalog.domain import Promised
from gan_runtime.data import mnist, prepared
from gan_runtime.data.contract import Availability, DataSet
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.data.sharded import row_bytes
from gan_runtime.data.summary import Summary
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec


def check(spec: RunSpec, home: Home | None = None) -> Fields:
    """The fields of a batch that the run's workload reads from its data set.

    `home`: where prepared sets are looked for.

    Raises:
        DatasetError: no such data set, or it does not fit the workload; the message says why, and
            what does.
    """
    offered = fields_of(spec.dataset, home)
    try:
        return spec.entry.reads(spec.of_workload, offered)
    except DatasetError as error:
        raise DatasetError(
            f"data set {spec.dataset} does not fit workload {spec.workload}: {error}"
        ) from None


def workloads_for(offered: Fields) -> list[str]:
    """The workloads that read such fields with their options as they are by default, or
    fitted to them, in the order of the catalog.
    """
    return [
        name
        for name, entry in catalog.WORKLOADS.items()
        if reads(entry, entry.options(**entry.fitted(offered)), offered)
    ]


def reads(entry: WorkloadEntry, options: BaseModel, offered: Fields) -> bool:
    """Whether a workload with these options of its own reads such fields."""
    try:
        entry.reads(options, offered)
    except DatasetError:
        return False
    return True


def rows(name: str, home: Home | None = None) -> int:
    """Rows to train on of a whole data set, at hand or not. Raises DatasetError as `check`."""
    return (
        catalog.DATASETS[name].rows if name in catalog.DATASETS else availability(name, home).images
    )


MADE_FIRST = "made here first, when a run needs it"


@dataclass(frozen=True)
class KnownSet:
    """A data set that a run may name; one that is promised is made when a run needs it.

    `problem`: why it cannot be used as it is; empty when it can. `preparation`: the summary of one
    that was prepared, or whose files are on this machine.
    """

    name: str
    title: str
    summary: str
    is_prepared: bool
    rows: int
    fields: Fields
    problem: str = ""
    preparation: Summary | None = None


def load(name: str, home: Home | None = None) -> DataSet:
    """The rows of a data set; prepared ones are looked for in `home`.

    Raises:
        DatasetError: unknown, missing or damaged; never falls back to other data.
    """
    if _is_embedded(name):
        return _embedded(name)
    if name in catalog.DATASETS:
        return mnist.load(name)
    return prepared.opened(_home_of(name, home), name)


def _is_embedded(name: str) -> bool:
    """Whether a function of the project or of an installed package gives it."""
    return name in catalog.DATASETS and bool(catalog.DATASETS[name].load)


def _embedded(name: str) -> DataSet:
    """Raises DatasetError when what its function gives is not what is declared of it."""
    entry = catalog.DATASETS[name]
    module, _, function = entry.load.partition(":")
    rows: DataSet = getattr(importlib.import_module(module), function)()
    if (rows.fields, rows.rows) != (entry.fields, entry.rows):
        given, said = (
            f"{count:,} rows of "
            + ", ".join(f"{field} ({each.size}, {each.dtype})" for field, each in fields.items())
            for count, fields in ((rows.rows, rows.fields), (entry.rows, entry.fields))
        )
        raise DatasetError(
            f"{entry.load} gives {given}, but data set {name} is declared with {said}: "
            "rows, shapes, types, scales and classes have to agree."
        )
    return rows


def availability(name: str, home: Home | None = None) -> Availability:
    """Whether the rows are at hand, or will be when a run needs them, and how many, without reading
    them.

    Raises DatasetError for what is unknown or damaged.
    """
    if _is_embedded(name):
        return Availability(True, catalog.DATASETS[name].rows, "embedded")
    if name in catalog.DATASETS:
        return mnist.availability(name)
    if promise := _promise(name, home):
        return Availability(False, promise.rows, PREPARATIONS[name].title, MADE_FIRST)
    known = prepared.manifest(_home_of(name, home), name)
    return Availability(True, known.rows, known.origin)


def content_of(name: str, home: Home | None = None) -> str:
    """What tells a prepared set from another one of its name; empty for those of the catalog.

    Raises as `availability`.
    """
    return "" if name in catalog.DATASETS else prepared.manifest(_home_of(name, home), name).content


def fields_of(name: str, home: Home | None = None) -> Fields:
    """What a row holds, without reading any. Raises DatasetError as `availability`."""
    if _is_embedded(name):
        return catalog.DATASETS[name].fields
    if name in catalog.DATASETS:
        return mnist.fields(name)
    if promise := _promise(name, home):
        return promise.fields
    return prepared.manifest(_home_of(name, home), name).offered


def known(home: Home) -> dict[str, KnownSet]:
    """Every data set by its name: those of the catalog, those that a run has made for it,
    then the prepared ones; some may be damaged.
    """
    of_catalog = {
        name: KnownSet(
            name,
            entry.title,
            entry.summary,
            False,
            entry.rows,
            entry.fields,
            preparation=_summary(name),
        )
        for name, entry in catalog.DATASETS.items()
    }
    of_promises = {
        name: KnownSet(
            name, preparation.title, preparation.summary, False, promise.rows, promise.fields
        )
        for name, preparation in PREPARATIONS.items()
        if (promise := _promise(name, home))
    }
    return of_catalog | of_promises | _all_prepared(home)


def is_streamed(name: str, home: Home | None = None) -> bool:
    """Whether a prepared set, or one that is to be made, holds more than memory should.

    Raises DatasetError as `availability`.
    """
    if name in catalog.DATASETS or home is None:
        return False
    if promise := _promise(name, home):
        return promise.rows * sum(map(row_bytes, promise.fields.values())) > prepared.RESIDENT_BYTES
    return prepared.is_streamed(home, name)


def _all_prepared(home: Home) -> dict[str, KnownSet]:
    """Where their folder cannot be read, its name with the reason as the problem."""
    try:
        return {name: _prepared(home, name) for name in prepared.names(home)}
    except HomeError as error:
        name = home.data.name
        return {name: KnownSet(name, str(home.data), "", True, 0, {}, str(error))}


def _prepared(home: Home, name: str) -> KnownSet:
    try:
        manifest = prepared.manifest(home, name)
    except DatasetError as error:
        return KnownSet(name, name, "", True, 0, {}, str(error))
    summary = ". ".join(filter(None, (manifest.origin, manifest.note)))
    return KnownSet(
        name, name, summary, True, manifest.rows, manifest.offered, preparation=manifest
    )


def _summary(name: str) -> Summary | None:
    """Of a set of the catalog that comes in files; None for those that are embedded."""
    return None if _is_embedded(name) else mnist.summary(name)


def _promise(name: str, home: Home | None) -> Promised | None:
    """What a set will hold that a run has made for it; None for all others, and once it is
    there.
    """
    if name not in PREPARATIONS or (home is not None and prepared.is_there(home, name)):
        return None
    return PREPARATIONS[name].promised


def _home_of(name: str, home: Home | None) -> Home:
    """The home in which a set is prepared. Raises DatasetError with those that there are."""
    if home is not None and prepared.is_there(home, name):
        return home
    way = "prepare it first, on the Data page or with `data prepare"
    if name in PREPARATIONS:
        raise DatasetError(f"data set {name} is not there yet: {way} {name}`.")
    promised = [each for each in PREPARATIONS if _promise(each, home)]
    names = [*catalog.DATASETS, *promised, *(prepared.names(home) if home else ())]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"{way}`."
    raise DatasetError(
        f"no data set is called {quoted(name)}, there are {', '.join(names)}: {hint}"
    )


if __name__ == "__main__":
    try:
        load(sys.argv[1])
    except GanRuntimeError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
