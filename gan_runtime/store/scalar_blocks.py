"""Scalars of long runs in blocks of steps, from which curves are drawn: reading ten million numbers
once a second takes a quarter of a core.
"""

from __future__ import annotations

from gan_runtime.store.store import Writer

BLOCK = 64  # steps
LONG = 100_000  # steps of a run from which it has blocks


def update(writer: Writer, run_id: str, first_step: int, last_step: int) -> None:
    """Computes the blocks of a run again from `first_step` on, the first step whose scalars have
    changed. `last_step`: of the run.
    """
    if last_step < LONG:  # short again where a new attempt began earlier
        writer.execute("DELETE FROM ingest.scalar_blocks WHERE run_id = ?", [run_id])
        return
    begin = first_step // BLOCK
    writer.execute(
        "DELETE FROM ingest.scalar_blocks WHERE run_id = ? AND block >= ?", [run_id, begin]
    )
    writer.execute(
        f"""
        INSERT INTO ingest.scalar_blocks
        SELECT run_id, attempt, metric, step // {BLOCK} AS block, max(epoch), min(step), max(step),
               count(*) FILTER (isfinite(value)), avg(step) FILTER (isfinite(value)),
               min(value) FILTER (isfinite(value)), avg(value) FILTER (isfinite(value)),
               max(value) FILTER (isfinite(value))
        FROM ingest.scalars
        WHERE run_id = $1 AND step >= CASE
            WHEN EXISTS (FROM ingest.scalar_blocks WHERE run_id = $1) THEN $2 ELSE 0 END
        GROUP BY run_id, attempt, metric, block
        """,
        [run_id, begin * BLOCK],
    )
