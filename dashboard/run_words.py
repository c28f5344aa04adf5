"""A run in short, for lists and legends."""

from __future__ import annotations

from dashboard import option_words, palette, words
from gan_runtime.store.queries import RunRow


def settings(row: RunRow) -> str:
    """A run in short: 2 simulated cores · bfloat16 · batch 64."""
    kind = "simulated cores" if row.accelerator == "cpu" else row.accelerator.upper() + "s"
    where = f"{row.replicas} {kind}" if row.replicas > 1 else row.accelerator.upper()
    where = f"{row.workers} workers × {where}" if row.workers > 1 else where
    algorithm = " · local SGD" if row.sync_every_steps > 1 else ""
    return f"{row.dataset} · {where} · {option_words.choice(row.precision)} · batch {row.batch_size_global}{algorithm}"


def unique_names(rows: list[RunRow]) -> dict[str, str]:
    """run_id → name for legends and tables; the id is added where two runs share a name."""
    names = [words.cell(row.name) for row in rows]
    return {
        row.run_id: name if names.count(name) == 1 else f"{name} ({row.run_id})"
        for row, name in zip(rows, names, strict=True)
    }


def colors(rows: list[RunRow]) -> dict[str, str]:
    """run_id → color: the run's own, or another where one of the runs before it has that."""
    return dict(zip((row.run_id for row in rows), palette.distinct([row.color for row in rows]), strict=True))
