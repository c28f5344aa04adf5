"""On which content of a prepared data set a run has trained, as its own journal tells.

A name can be given again: a set is removed and another one prepared under its name. A run that went on with that one would
draw one curve over two trainings.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from gan_runtime.records import journal
from gan_runtime.records.kinds import HostFacts
from gan_runtime.records.run_folder import RunDir

FACT = "data_content"  # of the host's facts; missing where the data set comes with the program


def content(run: RunDir) -> str:
    """What the newest attempt that read its data has read; empty where none did, or the set is none that is prepared."""
    told = [str(record.facts.get(FACT, "")) for record in _facts(run.trainer_journal())]
    return told[-1] if told else ""


def refusal(run: RunDir, dataset: str, content_now: str) -> str:
    """Why a run cannot go on with what its data set holds now; empty when it can. A run without checkpoints begins anew.

    `content_now`: empty where it is not known.
    """
    if not content_now or not run.has_checkpoint:
        return ""
    before = content(run)
    if before in ("", content_now):
        return ""
    return (
        f"run {run.run_id} was trained on another data set {dataset} (content {before[:16]}) than the one prepared under "
        f"this name now (content {content_now[:16]}): prepare the earlier one under this name again, or start a new run."
    )


def _facts(path: Path) -> Iterator[HostFacts]:
    """What each attempt in a journal says of its host; the other lines, which may be many, are not looked at."""
    if not path.exists():
        return
    for _, record in journal.naming(path, b'"host"'):
        if isinstance(record, HostFacts):
            yield record
