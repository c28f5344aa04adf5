"""Of all that cosmic-ray can change, a sample: every place is as likely, then every way to
change it. A filter of its sessions.
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
    from cosmic_ray.work_db import use_db  # wants cosmic-ray, which only `make mutants` installs
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    with use_db(session) as work:
        pending = work.pending_work_items
        ways = (
            next((item for item in place if _is_fit(root, item)), None)
            for place in places(pending, seed)
        )
        kept = {item.job_id for item in islice(filter(None, ways), count)}
        others = [item.job_id for item in pending if item.job_id not in kept]
        work.set_multiple_results(others, WorkResult(WorkerOutcome.SKIPPED, output="not drawn"))


def places(items: Iterable[Any], seed: int) -> Iterator[list[Any]]:
    """All ways to change each place.

    Ranks depend on the seed and the place alone, so an edit of one file redraws no other.
    """

    def place(item: Any) -> tuple[str, Any]:
        return str(item.mutations[0].module_path), item.mutations[0].start_pos

    def rank(item: Any) -> tuple[float, float]:
        way = (*place(item), item.mutations[0].operator_name, item.mutations[0].occurrence)
        return (
            random.Random(f"{seed} {place(item)}").random(),
            random.Random(f"{seed} {way}").random(),
        )

    return (list(ways) for _, ways in groupby(sorted(items, key=rank), key=place))


def _is_fit(root: Path, item: Any) -> bool:
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    change = item.mutations[0]
    source = (root / change.module_path).read_text(encoding="utf-8")
    operator = plugins.get_operator(change.operator_name)(**change.operator_args)
    return is_another_program(source, mutate_code(source, operator, change.occurrence) or source)


def is_another_program(source: str, changed: str) -> bool:
    """Python can read `changed` (the `*` between parameters is no product), and it is not
    what was there.
    """
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
