"""A random sample of cosmic-ray's changes: every place is equally likely, then every way to change
it. A filter of its sessions.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any


def leave(session: Path, root: Path, seed: int, count: int) -> None:
    """Marks all but `count` of the session's changes as skipped. `root`: of the files."""
    from cosmic_ray.work_db import use_db  # needs cosmic-ray, which only `make mutants` installs
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    with use_db(session) as work:
        pending = work.pending_work_items
        ways = (
            next((change for change in place if _is_fit(root, change)), None)
            for place in places(pending, seed)
        )
        selection = {change.job_id for change in islice(filter(None, ways), count)}
        skipped = [change.job_id for change in pending if change.job_id not in selection]
        work.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED, output="not drawn"))


def places(items: Iterable[Any], seed: int) -> Iterator[list[Any]]:
    """All ways to change each place.

    Ranks depend on the seed and the place alone, so an edit of one file redraws no other.
    """

    def place(change: Any) -> tuple[str, Any]:
        return str(change.mutations[0].module_path), change.mutations[0].start_pos

    def rank(change: Any) -> tuple[float, float]:
        way = (*place(change), change.mutations[0].operator_name, change.mutations[0].occurrence)
        return (
            random.Random(f"{seed} {place(change)}").random(),
            random.Random(f"{seed} {way}").random(),
        )

    return (list(ways) for _, ways in groupby(sorted(items, key=rank), key=place))


def _is_fit(root: Path, change_item: Any) -> bool:
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    change = change_item.mutations[0]
    source = (root / change.module_path).read_text(encoding="utf-8")
    operator = plugins.get_operator(change.operator_name)(**change.operator_args)
    return is_another_program(source, mutate_code(source, operator, change.occurrence) or source)


def is_another_program(source: str, changed: str) -> bool:
    """Python can read `changed` (the `*` between parameters is no product), and it differs from
    `source`.
    """
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
