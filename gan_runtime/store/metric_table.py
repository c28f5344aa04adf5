"""The public view `metrics`: what the catalog of this program declares of each workload's numbers (docs/schema.md).

It is no table: a file that an older or a newer version has written shows what this version knows, and needs no rebuild.
"""

from __future__ import annotations

from gan_runtime import catalog
from gan_runtime.catalog import declared

COLUMNS = "workload, metric, title, axis, panel, role, better, network, per_epoch, place"


def view() -> str:
    """The statement that makes it. `place`: the order in which the workload declares them, from 0."""
    rows = ",\n".join(
        f"({', '.join(map(_text, texts))}, {metric.per_epoch}, {place})"
        for workload in catalog.WORKLOADS
        for place, metric in enumerate(declared.of(workload).table().values())
        for texts in [
            (
                workload,
                metric.name,
                metric.title,
                metric.axis,
                metric.panel,
                metric.role,
                metric.better,
                metric.network,
            )
        ]
    )
    return f"CREATE OR REPLACE VIEW metrics AS SELECT * FROM (VALUES\n{rows}\n) AS declared({COLUMNS})"


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
