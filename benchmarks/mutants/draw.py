"""A random sample of cosmic-ray's mutants: each location is equally likely, then each mutation of
it.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import Any


def select_sample(session: Path, root: Path, seed: int, count: int) -> None:
    """Marks all but `count` mutants of the session as skipped. `root`: of the source files."""
    from cosmic_ray.work_db import use_db  # needs cosmic-ray, which only `make mutants` installs
    from cosmic_ray.work_item import WorkerOutcome, WorkResult

    with use_db(session) as work:
        pending = work.pending_work_items
        mutants = (
            next((mutant for mutant in at_location if _is_valid(root, mutant)), None)
            for at_location in by_location(pending, seed)
        )
        selection = {mutant.job_id for mutant in islice(filter(None, mutants), count)}
        skipped = [mutant.job_id for mutant in pending if mutant.job_id not in selection]
        work.set_multiple_results(skipped, WorkResult(WorkerOutcome.SKIPPED, output="not drawn"))


def by_location(items: Iterable[Any], seed: int) -> Iterator[list[Any]]:
    """The mutants of each location, in random order.

    Ranks depend only on the seed and the location, so an edit of one file redraws no other.
    """

    def location(mutant: Any) -> tuple[str, Any]:
        return str(mutant.mutations[0].module_path), mutant.mutations[0].start_pos

    def rank(mutant: Any) -> tuple[float, float]:
        change = mutant.mutations[0]
        identity = (*location(mutant), change.operator_name, change.occurrence)
        return (
            random.Random(f"{seed} {location(mutant)}").random(),
            random.Random(f"{seed} {identity}").random(),
        )

    return (list(mutants) for _, mutants in groupby(sorted(items, key=rank), key=location))


def _is_valid(root: Path, mutant: Any) -> bool:
    from cosmic_ray import plugins
    from cosmic_ray.mutating import mutate_code

    change = mutant.mutations[0]
    source = (root / change.module_path).read_text(encoding="utf-8")
    operator = plugins.get_operator(change.operator_name)(**change.operator_args)
    return is_different_program(source, mutate_code(source, operator, change.occurrence) or source)


def is_different_program(source: str, changed: str) -> bool:
    """Whether `changed` parses and differs from `source`. A mutated `*` between parameters, which
    is not a product, does not parse.
    """
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False
