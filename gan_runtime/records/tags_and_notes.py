"""What a person made of a run, read from its journal without any store: tags, a note, whether it is pinned or hidden."""

from __future__ import annotations

from dataclasses import dataclass

from gan_runtime.records import journal
from gan_runtime.records.journal import Marked
from gan_runtime.records.run_folder import RunDir


@dataclass(frozen=True)
class Marks:
    """`remark`: the note. As a run that nobody has touched has them."""

    tags: tuple[str, ...] = ()
    remark: str = ""
    pinned: bool = False
    hidden: bool = False


def of_run(run: RunDir) -> Marks:
    """The newest of each."""
    newest = Marks()
    for _, record in journal.naming(run.supervisor_journal, b'"marked"'):
        if isinstance(record, Marked):
            newest = Marks(
                tags=newest.tags if record.tags is None else tuple(record.tags),
                remark=newest.remark if record.remark is None else record.remark,
                pinned=newest.pinned if record.pinned is None else record.pinned,
                hidden=newest.hidden if record.hidden is None else record.hidden,
            )
    return newest
