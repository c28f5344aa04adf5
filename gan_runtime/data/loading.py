"""Finds a data set by its name: in the catalog, among the prepared sets of a home, and among the
sets that a run prepares first. `check` says whether the data set fits the workload of a run.

As a program it downloads a set:

python -m gan_runtime.data.loading mnist
"""

from __future__ import annotations

import difflib
import sys
from dataclasses import dataclass

from pydantic import BaseModel

from gan_runtime import catalog
from gan_runtime.base import formats
from gan_runtime.base.errors import DatasetError, GanRuntimeError, HomeError, quoted
from gan_runtime.base.fields import Fields
from gan_runtime.base.importing import loaded
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.catalog.preparation import Promised
from gan_runtime.data import builtin_sets, prepared
from gan_runtime.data.contract import Availability, DataSet
from gan_runtime.data.preparations import PREPARATIONS
from gan_runtime.data.sharded import row_bytes
from gan_runtime.data.summary import Summary
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec
from gan_runtime.spec.presets import PRESETS


def check(spec: RunSpec, home: Home | None = None) -> Fields:
    """The fields that the run's workload reads from its data set. `home`: home of the prepared
    sets.

    Raises:
        DatasetError: there is no such data set, or it does not fit the workload; the message names
            sets that do.
    """
    offered = fields_of(spec.dataset, home)
    try:
        return spec.entry.reads(spec.of_workload, offered)
    except DatasetError as error:
        raise DatasetError(
            f"data set {spec.dataset} does not fit workload {spec.workload}: {error}"
        ) from None


def fields_read(spec: RunSpec, home: Home | None = None) -> Fields:
    """The same for an existing run. Raises DatasetError with the workload's reason."""
    return spec.entry.reads(spec.of_workload, fields_of(spec.dataset, home))


def workloads_for(offered: Fields) -> list[str]:
    """The workloads that read these fields with default or fitted options, in the order of the
    catalog.
    """
    return [
        name
        for name, entry in catalog.WORKLOADS.items()
        if reads(entry, entry.options(**entry.fitted(offered)), offered)
    ]


def reads(entry: WorkloadEntry, options: BaseModel, offered: Fields) -> bool:
    """Whether a workload with these options reads these fields."""
    try:
        entry.reads(options, offered)
    except DatasetError:
        return False
    return True


def rows(name: str, home: Home | None = None) -> int:
    """All rows to train on, of a downloaded set or not. Raises DatasetError as `check`."""
    return (
        catalog.DATASETS[name].rows if name in catalog.DATASETS else availability(name, home).images
    )


FEWEST_EPOCHS, MOST_EPOCHS = 5, 1_000  # each epoch writes images, scores and a checkpoint


def fitted_epochs(preset: str, epochs: int, rows: int) -> int:
    """The epochs in which a run on `rows` rows sees about as many as the preset does in `epochs` on
    its own data set.
    """
    fitted = round(epochs * rows_of_preset(preset) / max(rows, 1))
    return min(max(fitted, min(FEWEST_EPOCHS, epochs)), max(MOST_EPOCHS, epochs))


def rows_of_preset(preset: str) -> int:
    """The rows to train on of the preset's own data set, as the program makes it."""
    return rows(PRESETS[preset].values["dataset"])


def held_out(name: str, home: Home | None = None) -> int:
    """The number of held-out rows, without reading those of a prepared set. Raises DatasetError as
    `load`.
    """
    if _is_embedded(name) or name in catalog.DATASETS:
        return load(name, home).held_out
    return prepared.manifest(_home_of(name, home), name).held_out


PREPARED_BY_THE_RUN = "prepared when a run needs it"


@dataclass(frozen=True)
class DataSetInfo:
    """A data set that a run can name.

    `problem`: why it cannot be used; empty when it can. `preparation`: the summary of a prepared
    set, or of files on this machine.
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
    """The rows of a data set. `home`: home of the prepared sets.

    Raises:
        DatasetError: the set is unknown, missing or damaged; no other data is used instead.
    """
    if _is_embedded(name):
        return _embedded(name)
    if name in catalog.DATASETS:
        return builtin_sets.load(name)
    return prepared.open_set(_home_of(name, home), name)


def _is_embedded(name: str) -> bool:
    """Whether a function of the project or of an installed package loads it."""
    return name in catalog.DATASETS and bool(catalog.DATASETS[name].load)


def _embedded(name: str) -> DataSet:
    """Raises DatasetError when the rows of the function differ from the declaration."""
    entry = catalog.DATASETS[name]
    rows: DataSet = loaded(entry.load)()
    if (rows.fields, rows.rows) != (entry.fields, entry.rows):
        actual, declared = (
            f"{formats.count(count)} rows of "
            + ", ".join(f"{field} ({each.size}, {each.dtype})" for field, each in fields.items())
            for count, fields in ((rows.rows, rows.fields), (entry.rows, entry.fields))
        )
        raise DatasetError(
            f"{entry.load} returns {actual}, but data set {name} declares {declared}: correct one"
            " of them. Rows, shapes, types, scales and classes must agree."
        )
    return rows


def availability(name: str, home: Home | None = None) -> Availability:
    """Whether the rows can be read now, and how many there are, without reading them.

    Raises DatasetError for an unknown or damaged set.
    """
    if _is_embedded(name):
        return Availability(True, catalog.DATASETS[name].rows, "embedded")
    if name in catalog.DATASETS:
        return builtin_sets.availability(name)
    if promise := _promised(name, home):
        return Availability(False, promise.rows, PREPARATIONS[name].title, PREPARED_BY_THE_RUN)
    data_sets = prepared.manifest(_home_of(name, home), name)
    return Availability(True, data_sets.rows, data_sets.origin)


def content_of(name: str, home: Home | None = None) -> str:
    """The content hash of a prepared set; empty for the catalog. Raises as `availability`."""
    return "" if name in catalog.DATASETS else prepared.manifest(_home_of(name, home), name).content


def fields_of(name: str, home: Home | None = None) -> Fields:
    """The fields of a row, without reading any. Raises DatasetError as `availability`."""
    if _is_embedded(name):
        return catalog.DATASETS[name].fields
    if name in catalog.DATASETS:
        return builtin_sets.fields(name)
    if promise := _promised(name, home):
        return promise.fields
    return prepared.manifest(_home_of(name, home), name).offered


def data_sets(home: Home) -> dict[str, DataSetInfo]:
    """All data sets by name: sets of the catalog, then sets that a run prepares first, then
    prepared sets, some of which can be damaged.
    """
    of_catalog = {
        name: DataSetInfo(
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
        name: DataSetInfo(
            name, preparation.title, preparation.summary, False, promise.rows, promise.fields
        )
        for name, preparation in PREPARATIONS.items()
        if (promise := _promised(name, home))
    }
    return of_catalog | of_promises | _all_prepared(home)


def is_streamed(name: str, home: Home | None = None) -> bool:
    """Whether a set is prepared, or will be, and is larger than RESIDENT_BYTES. Raises DatasetError
    as `availability`.
    """
    if name in catalog.DATASETS or home is None:
        return False
    if promise := _promised(name, home):
        return promise.rows * sum(map(row_bytes, promise.fields.values())) > prepared.RESIDENT_BYTES
    return prepared.is_streamed(home, name)


def _all_prepared(home: Home) -> dict[str, DataSetInfo]:
    """All prepared sets; if their folder cannot be read, one entry with the reason."""
    try:
        return {name: _prepared(home, name) for name in prepared.names(home)}
    except HomeError as error:
        name = home.data.name
        return {name: DataSetInfo(name, str(home.data), "", True, 0, {}, str(error))}


def _prepared(home: Home, name: str) -> DataSetInfo:
    try:
        manifest = prepared.manifest(home, name)
    except DatasetError as error:
        return DataSetInfo(name, name, "", True, 0, {}, str(error))
    summary = ". ".join(filter(None, (manifest.origin, manifest.note)))
    return DataSetInfo(
        name, name, summary, True, manifest.rows, manifest.offered, preparation=manifest
    )


def _summary(name: str) -> Summary | None:
    """The summary of a catalog set that consists of files; None for an embedded set."""
    return None if _is_embedded(name) else builtin_sets.summary(name)


def _promised(name: str, home: Home | None) -> Promised | None:
    """The fields and rows of a set that a run prepares first; None for other sets, and once it
    exists.
    """
    if name not in PREPARATIONS or (home is not None and prepared.exists(home, name)):
        return None
    return PREPARATIONS[name].promised


def _home_of(name: str, home: Home | None) -> Home:
    """The home of a prepared set. Raises DatasetError, which lists the data sets."""
    if home is not None and prepared.exists(home, name):
        return home
    advice = "prepare it first, on the Data page or with `data prepare"
    if name in PREPARATIONS:
        raise DatasetError(f"data set {name} does not exist yet: {advice} {name}`.")
    promised = [each for each in PREPARATIONS if _promised(each, home)]
    names = [*catalog.DATASETS, *promised, *(prepared.names(home) if home else ())]
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"{advice}`."
    raise DatasetError(f"there is no data set {quoted(name)}, only {', '.join(names)}: {hint}")


if __name__ == "__main__":
    try:
        load(sys.argv[1])
    except GanRuntimeError as problem:
        print(problem, file=sys.stderr)
        sys.exit(2)
