"""Whether a run can have the data set that it names: known here, with the fields that its workload reads."""

from __future__ import annotations

from pydantic import BaseModel

from gan_runtime import catalog
from gan_runtime.base.errors import DatasetError
from gan_runtime.base.fields import Fields
from gan_runtime.catalog import WorkloadEntry
from gan_runtime.data import loading
from gan_runtime.records.home import Home
from gan_runtime.spec import RunSpec


def check(spec: RunSpec, home: Home | None = None) -> Fields:
    """The fields of a batch that the run's workload reads from its data set.

    `home`: where prepared sets are looked for.

    Raises:
        DatasetError: no such data set, or it does not fit the workload; the message says why, and what does.
    """
    offered = loading.fields_of(spec.dataset, home)
    try:
        return spec.entry.reads(spec.of_workload, offered)
    except DatasetError as error:
        raise DatasetError(
            f"data set {spec.dataset} does not fit workload {spec.workload}: {error}"
        ) from None


def workloads_for(offered: Fields) -> list[str]:
    """The workloads that read such fields with their options as they are by default, or fitted to them, in the order of the catalog."""
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
        catalog.DATASETS[name].rows if name in catalog.DATASETS else loading.availability(name, home).images
    )
