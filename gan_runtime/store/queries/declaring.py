"""What the workloads of stored runs declare of their numbers (gan_runtime/catalog/declared.py)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gan_runtime.base.metrics import Metric
from gan_runtime.catalog import declared
from gan_runtime.catalog.declared import Declared
from gan_runtime.store.queries.metrics import once_an_epoch, recorded
from gan_runtime.store.store import Store


def declared_of(store: Store, run_ids: list[str] | None = None) -> Declared:
    """What the workloads of these runs declare together; without `run_ids`, those of all stored runs."""
    asked = "" if run_ids is None else "WHERE list_contains(?, run_id)"
    rows = store.rows(
        f"SELECT spec->>'workload' AS workload FROM ingest.created {asked} GROUP BY ALL ORDER BY min(created_at)",
        [] if run_ids is None else [run_ids],
    )
    return declared.together(workload for (workload,) in rows if workload)


def metric_table(store: Store, run_ids: list[str]) -> dict[str, Metric]:
    """Every number that these runs have recorded or their workloads declare, by its name. A number that is not declared is one
    of an epoch if the runs show it so."""
    known, names = declared_of(store, run_ids), recorded(store, run_ids)
    own, table = known.table(), known.table(names)
    strangers = [name for name, metric in table.items() if name not in own and not metric.per_epoch]
    once = once_an_epoch(store, run_ids, strangers) if strangers else set()
    return {
        name: replace(metric, per_epoch=True) if name in once else metric for name, metric in table.items()
    }


def columns_of(metrics: Iterable[Metric], expression: str, ending: str = "") -> str:
    """Columns of a SELECT over `scalars`, one a metric, of its name and `ending`, each after a comma: `expression` of its rows."""
    return "".join(
        f", {expression} FILTER (metric = {_text(metric.name)}) AS {_name(metric.name + ending)}"
        for metric in metrics
    )


def names_of(metrics: Iterable[Metric], table: str) -> str:
    """Columns of `table` with the names of metrics, each after a comma."""
    return "".join(f", {table}.{_name(metric.name)}" for metric in metrics)


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
