"""What the journals of a run say, read without any store: its state, its marks, the content of its
data set, its answers.

A name of a data set can be given again: a set is removed and another one prepared under its name. A
run that went on with that one would draw one curve over two trainings.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gan_runtime.base.errors import JournalError, RunStateError
from gan_runtime.records import journal, states
from gan_runtime.records.answer import Answer
from gan_runtime.records.earlier_answers import answer_of
from gan_runtime.records.earlier_kinds import Earlier
from gan_runtime.records.journal import Marked, Standing, StatusChange
from gan_runtime.records.kinds import HostFacts
from gan_runtime.records.run_folder import RunDir


def latest_status(run: RunDir) -> StatusChange:
    """The newest state of a run.

    Raises:
        RunStateError: no line of them says in what state it is.
    """
    newest = max(_changes(run), key=lambda item: item[0], default=None)
    if newest is None:
        raise RunStateError(
            f"run {run.run_id} cannot be read: no line of its journals says in what state it is."
        )
    return newest[1]


def _changes(run: RunDir) -> Iterator[tuple[Standing, StatusChange]]:
    """Of a journal that cannot be read to its end, what is before that: a run that is set
    aside for it can be stopped all the same.
    """
    for path in run.journals():
        with contextlib.suppress(JournalError):
            for place, record in journal.naming(path, b'"status"'):
                if isinstance(record, StatusChange):
                    yield journal.standing(record, path.name, place), record


def steps_per_epoch(run: RunDir) -> int:
    """As the newest plan in its journal says; 1 where it has none."""
    path = run.trainer_journal()
    named = journal.naming(path, b'"plan"') if path.exists() else ()
    plans = [record for _, record in named if isinstance(record, journal.Plan)]
    return max(1, plans[-1].steps_per_epoch) if plans else 1


@dataclass(frozen=True)
class Marks:
    """`remark`: the note. As a run that nobody has touched has them."""

    tags: tuple[str, ...] = ()
    remark: str = ""
    pinned: bool = False
    hidden: bool = False


def marks_of(run: RunDir) -> Marks:
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


DATA_FACT = "data_content"  # of the host's facts; missing where the data set comes with the program


def data_content(run: RunDir) -> str:
    """What the newest attempt that read its data has read; empty where none did, or the set
    is none that is prepared.
    """
    told = [str(record.facts.get(DATA_FACT, "")) for record in _facts(run.trainer_journal())]
    return told[-1] if told else ""


def data_refusal(run: RunDir, dataset: str, content_now: str) -> str:
    """Why a run cannot go on with what its data set holds now; empty when it can.

    A run without checkpoints begins anew.

    `content_now`: empty where it is not known.
    """
    if not content_now or not run.has_checkpoint:
        return ""
    before = data_content(run)
    if before in ("", content_now):
        return ""
    return (
        f"run {run.run_id} was trained on another data set {dataset} (content {before[:16]}) than"
        f" the one prepared under this name now (content {content_now[:16]}): prepare the earlier"
        " one under this name again, or start a new run."
    )


def _facts(path: Path) -> Iterator[HostFacts]:
    """What each attempt in a journal says of its host; the other lines, which may be many,
    are not looked at.
    """
    if not path.exists():
        return
    for _, record in journal.naming(path, b'"host"'):
        if isinstance(record, HostFacts):
            yield record


def answers_of(run: RunDir, evaluation: str) -> list[Answer]:
    """Of one evaluation, the newest last. Raises as `journal.chunks`."""
    measured = [path for path in run.journals() if states.is_of_evaluations(path.name)]
    measured.sort(key=lambda path: path.name == states.EVALUATIONS)  # it is newer than the others
    records = [record for path in measured for record in journal.read_all(path)]
    answers = (answer_of(record) if isinstance(record, Earlier) else record for record in records)
    return [
        answer
        for answer in answers
        if isinstance(answer, Answer) and answer.evaluation == evaluation
    ]
